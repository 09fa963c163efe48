"""The thread that distils one target into one drafter: traces in, numbered versions out. Answers wait for it
only in the mode `inline`."""

from __future__ import annotations

import atexit
import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from omnidemo.core.config import Settings
from omnidemo.core.records import Trace
from omnidemo.learning.distill.evaluation import Evaluation
from omnidemo.learning.distill.in_process_worker import InProcessWorker
from omnidemo.learning.distill.process_worker import ProcessWorker
from omnidemo.learning.distill.trace_buffer import TraceBuffer, usable
from omnidemo.learning.distill.trainer_status import State, TrainerStatus, explain, hanging
from omnidemo.learning.distill.update import Update
from omnidemo.learning.distill.worker import PauseController, Worker
from omnidemo.models.adapters.adapter_state import AdapterState
from omnidemo.storage.line_versions import DraftingVersions, Publish
from omnidemo.storage.store import Store

log = logging.getLogger(__name__)
THREADED = ("idle", "concurrent")


class Distiller:
    """Adapts a drafter to a target (one line: drafter, target, domain).

    `publish(version, weights, head)` gets the changed matrices (float32, under the base model's parameter
    names) and the acceptance head ({}: none) of a version that is on disk (0: the base weights again). It is
    called by this object's thread and by callers of `restore`, `activate`, `adopt`, `reset` and
    `run_pending`; it must not wait for a lock that such a caller holds. `busy()`: whether a request is in
    flight. Errors of training are not raised: see `status().error`.

    Before an update trains on the answers since the last one, the published version is evaluated on them
    beside the trusted one. A version that guesses worse is rolled back.
    """

    def __init__(
        self,
        drafter_folder: Path | str,
        drafter_name: str,
        target_name: str,
        settings: Settings,
        storage: Path,
        *,
        publish: Publish,
        store: Store,
        domain: str = "default",
        busy: Callable[[], bool] = lambda: False,
        worker: Worker | None = None,
        closes: bool = False,
    ) -> None:
        """`worker`: shared with other lines, and closed by its owner, unless this line `closes` it."""
        self.folder, self.settings = Path(drafter_folder), settings
        names = target_name, drafter_name, domain
        self.versions = DraftingVersions(storage, store, *names, self.folder, publish)
        self._busy = busy
        self._worker: Worker = worker or ProcessWorker()
        self._owns_worker = closes or worker is None
        self._inline_worker = worker if isinstance(worker, InProcessWorker) else InProcessWorker()
        # guards buffer, evaluation and state; held for microseconds, taken last
        self.condition = threading.Condition()
        self._state: State = "idle"
        self._paused = False
        self.closing = threading.Event()
        self._begin()
        self._thread: threading.Thread | None = None
        self._start()
        atexit.register(self.close)

    def _begin(self) -> None:
        """Set all that a reset forgets."""
        self.buffer = TraceBuffer(
            self.settings.buffer_mb << 20, self.settings.training_seed, self.settings.buffer_order
        )
        self.evaluation = Evaluation()

    @property
    def mode(self) -> str:
        return self.settings.training

    def observe(self, trace: Trace) -> None:
        """Collect the trace of an answer. Returns at once; an unusable trace (no spelled token, NaN) is
        dropped."""
        if self.mode == "off" or not usable(trace):
            return
        with self.condition:
            self.buffer.add(trace)
            self.evaluation.answer(trace)
            self.condition.notify()

    def fresh_traces(self) -> list[Trace]:
        """The answers that no update has taken yet, oldest first."""
        with self.condition:
            return self.buffer.fresh_traces()

    def run_pending(self) -> bool:
        """In the mode `inline`: run the due update in this thread; whether one was due. It stays due while
        another thread uses the worker."""
        if self.mode != "inline" or not self._due() or not self._worker.turn.acquire(blocking=False):
            return False
        try:
            due = self.mode == "inline" and self._due() and not self.closing.is_set()
            if due:
                self._update(PauseController(self._inline_worker, self._busy, patience=0.0))
            return due
        finally:
            self._worker.turn.release()

    def configure(self, settings: Settings) -> None:
        """Use these settings from the next update on. A line with versions keeps its rank until a reset."""
        with self.versions.lock:
            if not self.versions.untouched:
                settings = settings.model_copy(update={"lora_rank": self.settings.lora_rank})
            with self.condition:
                self.settings = settings
                self.buffer.order = settings.buffer_order
                self.condition.notify_all()
            self._start()

    def status(self) -> TrainerStatus:
        with self.condition:
            evaluation, current = self.evaluation, self.versions.current
            state, error = self._state, self.versions.error
            if self.mode == "off":
                state = "off"
            elif state not in ("training", "waiting") and self._paused:
                state = "paused"
            elif state == "idle" and error:
                state = "failed"
            silent = self._worker.silent if state == "training" else 0.0
            left = max(0, self.settings.update_interval - evaluation.waiting)
            return TrainerStatus(
                state=state,
                why=hanging(silent) or explain(state, left, evaluation.remark, self.mode),
                version=current.version,
                step=current.optimiser.step if current.optimiser else 0,
                loss=current.loss,
                requests_seen=evaluation.requests,
                next_in=left,
                last_swap=current.since,
                seconds=evaluation.seconds,
                error=error,
                mode=self.mode,
                domain=self.versions.domain,
                rolled_back=evaluation.rolled_back,
            )

    def pause(self) -> None:
        """Start no further update; a running one is finished. Answers are still collected."""
        with self.condition:
            self._paused = True

    def resume(self) -> None:
        with self.condition:
            self._paused = False
            self.condition.notify()

    def restore(self) -> int:
        """As `DraftingVersions.restore`, after a restart."""
        with self._choice():
            return self.versions.restore()

    def activate(self, version: int) -> None:
        """As `DraftingVersions.activate`, by hand."""
        with self._choice():
            self.versions.activate(version)

    def adopt(self, adapter: AdapterState) -> int:
        """Make an imported adapter the newest version, publish and trust it; its number. ValueError where it
        does not fit."""
        with self._choice():
            return self.versions.adopt(adapter, self.evaluation.requests, self.settings.adapters_kept)

    def reset(self) -> None:
        """Back to the base drafter: versions, loss curve and collected answers of the line are deleted."""
        with self.versions.lock:
            self.versions.reset()
            with self.condition:
                self._begin()

    def close(self) -> None:
        """Stop the thread, and the worker unless it is shared, within three seconds. A running update is
        lost."""
        self.closing.set()
        atexit.unregister(self.close)
        with self.condition:
            self.condition.notify_all()
        if self._owns_worker:
            self._worker.close()
        if self._thread and self._thread is not threading.current_thread():
            self._thread.join(1.0)

    @contextmanager
    def _choice(self) -> Iterator[None]:
        """Within the block the published version is chosen by hand or by a restart."""
        with self.versions.lock:
            yield
            with self.condition:
                self.evaluation.chosen(self.versions.current.requests)

    def _start(self) -> None:
        if self.mode in THREADED and self._thread is None:
            name = f"distiller {self.versions.target} {self.versions.domain}"
            self._thread = threading.Thread(target=self._run, name=name, daemon=True)
            self._thread.start()

    def _run(self) -> None:
        while not self.closing.is_set():
            with self.condition:
                self.condition.wait_for(
                    lambda: self.closing.is_set() or (self.mode in THREADED and self._due())
                )
                if self.closing.is_set():
                    return
                self._state = "waiting"
            with self._worker.turn:
                patience = self.settings.patience if self.mode == "idle" else 0.0
                pauses = PauseController(self._worker, self._busy, patience, self._on_pause)
                pauses.wait(self.closing)
                if not self.closing.is_set() and self.mode in THREADED and self._due():
                    self._update(pauses)
            self._set_state("idle")

    def _on_pause(self, paused: bool) -> None:
        """The worker was paused for an answer, or resumed."""
        self._set_state("waiting" if paused else "training")

    def _set_state(self, state: State) -> None:
        with self.condition:
            self._state = state

    def _due(self) -> bool:
        return not self._paused and self.evaluation.waiting >= self.settings.update_interval

    def _update(self, pauses: PauseController) -> None:
        """Run an update in the worker of `pauses`. On any failure the published version stays."""
        with self.versions.lock, self.condition:
            update = Update(self)
            self._state = "training"
        try:
            with pauses:
                update.run(pauses)
        except Exception as error:  # of disk, worker, model or publisher: chats must not fail by it
            if not self.closing.is_set():
                log.warning("An update of %s failed: %s", self.versions.target, error)
                now = self.versions.current.version
                self.versions.error = (
                    f"{error} The drafter stays at version {now}; the next answers start another attempt."
                )
        finally:
            self._set_state("idle")
