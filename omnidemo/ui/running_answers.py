"""The answers that are being written, so that Stop ends exactly one of them."""

from __future__ import annotations

import threading
from typing import Any

from omnidemo.ui.shell import PRIVATE

MOST_EARLY_STOPS = 256


class Running:
    """The stop flags of the answers being written, by (session, run). Shared by all visitors, so guarded by a lock."""

    def __init__(self) -> None:
        self._flags: dict[tuple[str, str], threading.Event] = {}
        self._early: dict[tuple[str, str], threading.Event] = {}  # stopped while they still waited in the queue
        self._lock = threading.Lock()

    def start(self, session: str, run: str) -> threading.Event:
        with self._lock:
            flag = self._early.pop((session, run), None) or threading.Event()
            return self._flags.setdefault((session, run), flag)

    def stop(self, session: str, run: str) -> bool:
        """End an answer at its next round; one that has not started ends as it starts. False where it is not running yet."""
        with self._lock:
            flag = self._flags.get((session, run))
            if flag is None:
                while len(self._early) >= MOST_EARLY_STOPS:
                    self._early.pop(next(iter(self._early)))
                self._early[session, run] = threading.Event()
                self._early[session, run].set()
        if flag is not None:
            flag.set()
        return flag is not None

    def stopped_by(self, event: Any, inputs: list[Any], js: str, api_name: str) -> None:
        """Have an event of the page end the answer whose session and run `js` puts into its inputs."""

        def stop(session: str, run: str) -> None:
            self.stop(session, run)

        event(stop, inputs, None, js=js, api_name=api_name, queue=False, **PRIVATE)

    def flag(self, session: str, run: str) -> threading.Event | None:
        """The stop flag of one answer; None when it is not running."""
        with self._lock:
            return self._flags.get((session, run))

    def finish(self, session: str, run: str) -> None:
        with self._lock:
            flag = self._flags.pop((session, run), None)
        if flag is not None:
            flag.set()  # also when the browser went away: the engine stops at its next round
