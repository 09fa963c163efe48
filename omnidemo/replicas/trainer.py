"""Training in an actor of Ray, one for each adapter line: traces go there, and weights come back through the object store."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omnidemo.distill.process_worker import ProcessWorker
from omnidemo.distill.worker import TrainRequest, Worker, WorkerError
from omnidemo.models import model_files

if TYPE_CHECKING:
    import numpy as np

    from omnidemo.adapters.version_folders import AdapterState
    from omnidemo.distill.worker import Trained
    from omnidemo.probes.probe import ProbeRequest
    from omnidemo.records import Agreement, Replayed

RETRIES = 5  # of a call whose actor died, also while it starts again: each carries the newest version and changes nothing here


class Trainer:
    """The actor: a niced process that trains, which can be paused, on whatever machine Ray has put it."""

    def __init__(self, drafter: str, hub: bool) -> None:
        """`drafter`: its name, for its files may lie elsewhere on this machine; `hub`: whether they may be downloaded."""
        self._drafter, self._hub = drafter, hub
        self._worker = ProcessWorker()
        self._lock, self._number = threading.Lock(), 0

    def train(self, request: TrainRequest) -> Trained:
        return self._worker.train(replace(request, folder=self._folder()))

    def evaluate(self, elsewhere: Path, *asked: Any) -> list[np.ndarray]:
        return self._worker.evaluate(self._folder(), *asked)

    def agree(self, elsewhere: Path, *asked: Any) -> list[Agreement]:
        return self._worker.agree(self._folder(), *asked)

    def hold(self, held: bool, number: int) -> None:
        """Pause, or go on. Calls may overtake each other: the one of the highest number counts."""
        with self._lock:
            if number > self._number:
                self._number = number
                (self._worker.pause if held else self._worker.resume)()

    def _folder(self) -> Path:
        return model_files.find(self._drafter, hub=self._hub)


class RayTrainer(Worker):
    """A `Worker` whose work an actor does. Ray restarts the actor when it dies and repeats the call, which goes on from the newest version.

    Every method raises WorkerError, one sentence, where that did not help."""

    def __init__(self, start: Callable[[], Any]) -> None:
        """`start`: starts the actor and returns its handle."""
        super().__init__()
        self._start, self._actor = start, None
        self._lock = threading.Lock()
        self._numbers = count(1)
        self._closed = False

    def replay(self, request: ProbeRequest, adapter: AdapterState | None, prompts: Sequence[str]) -> list[Replayed]:
        """WorkerError: recorded answers lie beside the app, where they are replayed."""
        raise WorkerError("An actor replays no recorded answers.")

    def pause(self) -> None:
        self._hold(True)

    def resume(self) -> None:
        self._hold(False)

    def _hold(self, held: bool) -> None:
        with self._lock:
            if self._actor is not None:
                self._actor.hold.remote(held, next(self._numbers))

    def close(self) -> None:
        """End the actor; a call in flight raises WorkerError."""
        import ray

        with self._lock:
            self._closed, actor, self._actor = True, self._actor, None
        if actor is not None and ray.is_initialized():
            ray.kill(actor)

    def _call(self, name: str, *given: Any) -> Any:
        import ray
        from ray.exceptions import RayError, RayTaskError

        with self._lock:
            if self._closed:
                raise WorkerError("Training has been closed.")
            actor = self._actor = self._actor or self._start()
        try:
            return ray.get(getattr(actor, name).remote(*given))
        except RayTaskError as error:
            raise WorkerError(str(error.cause)) from error
        except RayError as error:
            raise WorkerError(f"The trainer was lost ({type(error).__name__}) and is started again.") from error
