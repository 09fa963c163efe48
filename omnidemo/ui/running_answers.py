"""The answers that are being written, so that Stop ends exactly one of them."""

from __future__ import annotations

import threading
from typing import Any

from omnidemo.ui.shell import PRIVATE

MOST_STOPPED = 256


class Running:
    """The stop flags of answers, by (session, run), also of those that were stopped while they still waited
    in the queue. Shared by all visitors, so guarded by a lock."""

    def __init__(self) -> None:
        self._flags: dict[tuple[str, str], threading.Event] = {}
        self._lock = threading.Lock()

    def start(self, session: str, run: str) -> threading.Event:
        with self._lock:
            return self._flags.setdefault((session, run), threading.Event())

    def stop(self, session: str, run: str) -> bool:
        """End an answer at its next round; one that has not started ends as it starts. False where it was not
        known yet."""
        with self._lock:
            known = (session, run) in self._flags
            self._flags.setdefault((session, run), threading.Event()).set()
            stopped = [key for key, flag in self._flags.items() if flag.is_set()]
            for old in stopped[:-MOST_STOPPED]:  # their answers never started, or hold their flag themselves
                del self._flags[old]
        return known

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
