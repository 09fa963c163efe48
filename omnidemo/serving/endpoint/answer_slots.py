"""Threads in which answers are made: a bounded number runs, a bounded number waits in order, and the others
are refused."""

from __future__ import annotations

import asyncio
import math
import queue
import threading
from collections import Counter, deque
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import closing, contextmanager, suppress
from typing import Generic, TypeVar

from omnidemo.core.records import Reading, Round
from omnidemo.serving.endpoint.api_errors import ApiError

Item = TypeVar("Item")
RETRY = {"Retry-After": "1"}
LOOK_SECONDS = 0.04  # between two looks at the rounds of an answer: 25 a second, as in a film


class AnswerSlots:
    """Decoding blocks, so it never runs in the thread of the event loop. Thread-safe."""

    def __init__(self, slots: int, waiting: int, each: int) -> None:
        """slots: answers at a time; waiting: answers that may wait for a slot; each: most that a named caller
        may have of both."""
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
        """Count an answer of a caller ("": unnamed). ApiError 503 or 429 where there are too many."""
        with self._lock:
            if caller and self._callers[caller] >= self._each:
                raise ApiError(
                    429,
                    f"{self._each} of your requests wait or run already; ask again when one of them is done.",
                    headers=RETRY,
                )
            if self._callers.total() >= self._most:
                raise ApiError(
                    503, f"{self._most} requests wait or run already; ask again in a second.", headers=RETRY
                )
            self._callers[caller] += 1

    def give_back(self, caller: str) -> None:
        with self._lock:
            self._callers[caller] -= 1
            if not self._callers[caller]:
                del self._callers[caller]

    @contextmanager
    def place(self, caller: str) -> Iterator[None]:
        """Count a request within the block as an answer. ApiError as `take`."""
        self.take(caller)
        try:
            yield
        finally:
            self.give_back(caller)

    def start(
        self, caller: str, begin: Callable[[threading.Event], Iterator[Item]], wanted: type | None = None
    ) -> Work[Item]:
        """Let the next free thread iterate `begin`; to be called on the event loop that reads the items.
        `wanted`: the only kind of item that is read. ApiError as `take`."""
        self.take(caller)
        work = Work(begin, wanted, lambda: self.give_back(caller))
        self._jobs.put(work.run)
        with self._lock:
            if self._threads < min(self._slots, self.in_use):  # else one is free, and its caches are warm
                self._threads += 1
                # Daemons: an executor of the standard library would wait for its threads at the end.
                threading.Thread(target=self._work, name=f"answers {self._threads}", daemon=True).start()
        return work

    def _work(self) -> None:
        while True:
            self._jobs.get()()


class Work(Generic[Item]):
    """Items that a thread makes and an event loop reads. The thread works ahead, so a slow reader holds
    nobody up."""

    def __init__(
        self,
        begin: Callable[[threading.Event], Iterator[Item]],
        wanted: type | None,
        over: Callable[[], None],
    ) -> None:
        self.cancel = threading.Event()
        self._made: deque[Item | None] = deque()  # None: the end
        self._error: Exception | None = None  # that ended the work
        self._news, self._urgent, self._looked = asyncio.Event(), asyncio.Event(), -math.inf
        self._told = False  # whether the loop was woken for the unread items
        self._begin, self._wanted, self._over = begin, wanted, over
        self._loop = asyncio.get_running_loop()
        self._lock = threading.Lock()  # of the next two
        self._begun = self._left = False

    async def __aiter__(self) -> AsyncGenerator[list[Item], None]:
        """The items as they come, in lists. An exception that ended the work is raised behind the last.

        Lists come LOOK_SECONDS apart, because each wakes loop and client on the cores that decode. Only an
        item that is neither `Reading` nor `Round` comes at once.
        """
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout_at(self._looked + LOOK_SECONDS):
                    await self._urgent.wait()
            while not self._made:
                self._told = False
                if not self._made:
                    await self._news.wait()
                    self._news.clear()
            self._looked, self._told = self._loop.time(), True
            items = [self._made.popleft() for _ in range(len(self._made))]
            if made := [item for item in items if item is not None]:
                yield made
            if items[-1] is None:
                if self._error is not None:
                    raise self._error
                return

    def close(self) -> None:
        """End the work early; work that no thread has begun gives its place back at once."""
        self.cancel.set()
        with self._lock:
            waiting, self._left = not self._begun and not self._left, True
        if waiting:
            self._over()

    def run(self) -> None:
        with self._lock:
            if self._left:
                return
            self._begun = True
        try:
            with closing(self._begin(self.cancel)) as made:  # type: ignore[type-var]
                for item in made:
                    if self._wanted is None or isinstance(item, self._wanted):
                        self._put(item)
        except Exception as error:
            self._error = error
        finally:
            self._over()
            self._put(None)

    def _put(self, item: Item | None) -> None:
        self._made.append(item)
        with suppress(RuntimeError):  # the server has ended
            if not isinstance(item, Reading | Round):
                self._loop.call_soon_threadsafe(self._urgent.set)
            if not self._told:
                self._told = True
                self._loop.call_soon_threadsafe(self._news.set)
