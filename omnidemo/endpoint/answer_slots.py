"""Threads in which answers are made: so many at a time, the others wait in order, and more than can wait are refused."""

from __future__ import annotations

import queue
import threading
from collections import Counter
from collections.abc import Callable

from omnidemo.endpoint.api_errors import ApiError

RETRY = {"Retry-After": "1"}


class AnswerSlots:
    """Decoding blocks, so it never runs in the thread that serves the connections. Methods may be called from any thread."""

    def __init__(self, slots: int, waiting: int, each: int) -> None:
        """slots: answers at a time; waiting: those that may wait for one; each: most that a caller with a name may have of both."""
        self._slots, self._most, self._each = slots, slots + waiting, each
        self._jobs: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._threads = 0
        self._callers: Counter[str] = Counter()
        self._lock = threading.Lock()

    @property
    def in_use(self) -> int:
        """Answers that run or wait."""
        return self._callers.total()

    def take(self, caller: str) -> None:
        """Count an answer of this caller, "" for nobody in particular; ApiError 503 or 429 where there are too many."""
        with self._lock:
            if caller and self._callers[caller] >= self._each:
                raise ApiError(
                    429, f"{self._each} of your requests wait or run already; ask again when one of them is done.", headers=RETRY
                )
            if self._callers.total() >= self._most:
                raise ApiError(503, f"{self._most} requests wait or run already; ask again in a second.", headers=RETRY)
            self._callers[caller] += 1

    def give_back(self, caller: str) -> None:
        with self._lock:
            self._callers[caller] -= 1
            if not self._callers[caller]:
                del self._callers[caller]

    def run(self, job: Callable[[], None]) -> None:
        """Have a thread do the job, which raises nothing, as soon as one is free."""
        self._jobs.put(job)
        with self._lock:
            if self._threads < self._slots:
                self._threads += 1
                # They must not keep a program from ending, so no executor of the standard library, which waits for its threads.
                threading.Thread(target=self._work, name=f"answers {self._threads}", daemon=True).start()

    def _work(self) -> None:
        while True:
            self._jobs.get()()
