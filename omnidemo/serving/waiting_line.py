"""Who waits for an engine: some have it, the others stand in line."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from omnidemo.serving.quotas import Refused

EACH = 6  # places of one visitor: a page can have one of each kind


class WaitingLine:
    """The first `at_once()` have the engine. At most `most` stand in the line."""

    def __init__(self, at_once: Callable[[], int], most: int) -> None:
        self._at_once, self._most = at_once, most
        self._all: list[list[str]] = []
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._all)

    @contextmanager
    def place(self, visitor: str) -> Iterator[Callable[[], int]]:
        """Stand in the line. What is yielded says how many leave before it is this one's turn, 0 for now.
        `Refused` where the line is full, or a `visitor` ("" for nobody in particular) has EACH places."""
        own = [visitor]
        with self._lock:
            if len(self._all) >= self._most:
                raise Refused(f"{len(self._all)} requests wait already. Ask again in a minute.")
            if visitor and self._all.count(own) >= EACH:
                raise Refused(
                    f"{EACH} of your requests wait or run already; ask again when one of them is done."
                )
            self._all.append(own)

        def before() -> int:
            with self._lock:
                place = next(place for place, one in enumerate(self._all) if one is own)
            return max(0, place + 1 - self._at_once())

        try:
            yield before
        finally:
            with self._lock:
                self._all = [one for one in self._all if one is not own]
