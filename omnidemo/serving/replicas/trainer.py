"""Training in a Ray actor for each adapter line: it gets traces and returns weights, through the object
store."""

from __future__ import annotations

import threading
from collections.abc import Callable
from itertools import count
from typing import Any

from omnidemo.learning.distill.process_worker import ProcessWorker
from omnidemo.learning.distill.worker import Worker, WorkerError
from omnidemo.models import model_files

RETRIES = 5  # of a call whose actor died; a call carries all of its state, so it may be repeated


class Trainer(ProcessWorker):
    """The actor: a niced process that trains and can be paused, on the machine that Ray chose."""

    def __init__(self, drafter: str, hub: bool, nice: int) -> None:
        """`drafter`: its name, because another machine has its files elsewhere. `hub`: whether they may be
        downloaded. `nice`: as in `ProcessWorker`."""
        super().__init__(nice)
        self._drafter, self._hub = drafter, hub
        self._hold_lock, self._number = threading.Lock(), 0

    def _call(self, name: str, *given: Any) -> Any:
        return super()._call(name, model_files.find(self._drafter, hub=self._hub), *given[1:])

    def hold(self, held: bool, number: int) -> None:
        """Pause or resume. Calls may overtake each other: the highest `number` counts."""
        with self._hold_lock:
            if number > self._number:
                self._number = number
                self._set_paused(held)


class RayTrainer(Worker):
    """A `Worker` that calls an actor. Ray restarts a dead actor and repeats its call; WorkerError, one
    sentence, where that fails too."""

    def __init__(self, start: Callable[[], Any]) -> None:
        """`start`: starts the actor and returns its handle."""
        super().__init__()
        self._start, self._actor = start, None
        self._lock = threading.Lock()
        self._numbers = count(1)
        self._closed = False

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
            raise WorkerError(
                f"The trainer was lost ({type(error).__name__}) and is started again."
            ) from error
