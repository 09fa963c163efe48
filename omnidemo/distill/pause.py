"""Training gives way to chats: an update waits until no answer is being written, and its process is stopped while one is.

Niced, it would still take some of the processor beside an answer (`payback.PRICE`). The trainer's state is "waiting" then; "paused" is
what somebody has said on the page (`Distiller.pause`): no more updates are started.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from types import TracebackType

from omnidemo.distill.worker import Worker

log = logging.getLogger(__name__)
POLL_SECONDS = 0.01  # most time until an answer is noticed


class PauseController:
    """Delays one update while `busy()` is true (an answer is being written), by at most `patience` seconds in all.

    First `wait()`, then `with controller:` around the worker's call. `held_seconds` counts both, `paused_seconds` the time in which the
    worker was stopped. `on_pause(True)` is called when it stops, `on_pause(False)` when it goes on. Polling takes place only meanwhile.
    """

    def __init__(
        self, worker: Worker, busy: Callable[[], bool], patience: float, on_pause: Callable[[bool], None] = lambda paused: None
    ) -> None:
        self.worker, self.busy, self.patience, self.on_pause = worker, busy, patience, on_pause
        self.held_seconds = self.paused_seconds = 0.0
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run, name="pause controller", daemon=True)

    def wait(self, closing: threading.Event) -> None:
        """Return at the first quiet moment, when patience has ended, or when `closing` is set."""
        began = time.monotonic()
        while not closing.is_set() and self._busy() and time.monotonic() - began < self.patience:
            closing.wait(POLL_SECONDS)
        self.held_seconds += time.monotonic() - began

    def __enter__(self) -> PauseController:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._done.set()
        self._thread.join()

    def _run(self) -> None:
        since: float | None = None
        try:
            while not self._done.wait(POLL_SECONDS):
                now = time.monotonic()
                wanted = self._busy() and self.held_seconds + (now - since if since is not None else 0.0) < self.patience
                if wanted and since is None:
                    since = now
                    self.worker.pause()
                    self.on_pause(True)
                elif since is not None and not wanted:
                    self._resume(since)
                    since = None
        finally:  # nobody else would let the process go on
            if since is not None:
                self._resume(since)

    def _resume(self, since: float) -> None:
        self.worker.resume()
        seconds = time.monotonic() - since
        self.held_seconds, self.paused_seconds = self.held_seconds + seconds, self.paused_seconds + seconds
        self.on_pause(False)

    def _busy(self) -> bool:
        try:
            return self.busy()
        except Exception:  # an error of the caller's function must not end an update
            log.exception("busy() failed")
            return False
