"""Learning steps aside for a chat: an update waits for a quiet moment, and its process stands still while an answer is written."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Protocol

log = logging.getLogger(__name__)
POLL_SECONDS = 0.01  # an answer is noticed within this


class Pausable(Protocol):
    def pause(self) -> None: ...
    def go_on(self) -> None: ...


class PauseController:
    """Holds one update up while `busy()` says that somebody waits for an answer, but not longer than `patience` seconds in all.

    First `wait()`, then `with pacer:` around the work of the child process. `held` counts the seconds of both, `stood` those in which the
    process stood still. `moved(True)` is called when it stands still, `moved(False)` when it goes on. It polls only meanwhile.
    """

    def __init__(self, child: Pausable, busy: Callable[[], bool], patience: float, moved: Callable[[bool], None]) -> None:
        self.child, self.busy, self.patience, self.moved = child, busy, patience, moved
        self.held = self.stood = 0.0
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._pace, name="pacer", daemon=True)

    def wait(self, closing: threading.Event) -> None:
        """Return at the first quiet moment, when patience has ended, or when `closing` is set."""
        began = time.monotonic()
        while not closing.is_set() and self._busy() and time.monotonic() - began < self.patience:
            closing.wait(POLL_SECONDS)
        self.held += time.monotonic() - began

    def __enter__(self) -> PauseController:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._done.set()
        self._thread.join()

    def _pace(self) -> None:
        since: float | None = None
        try:
            while not self._done.wait(POLL_SECONDS):
                now = time.monotonic()
                wanted = self._busy() and self.held + (now - since if since is not None else 0.0) < self.patience
                if wanted and since is None:
                    since = now
                    self.child.pause()
                    self.moved(True)
                elif since is not None and not wanted:
                    self._go_on(since)
                    since = None
        finally:  # whatever happens, nobody else would wake the process
            if since is not None:
                self._go_on(since)

    def _go_on(self, since: float) -> None:
        self.child.go_on()
        stood = time.monotonic() - since
        self.held, self.stood = self.held + stood, self.stood + stood
        self.moved(False)

    def _busy(self) -> bool:
        try:
            return self.busy()
        except Exception:  # the owner's trouble must not end an update
            log.exception("busy() failed")
            return False
