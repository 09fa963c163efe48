"""Threads in which answers are made: so many at a time, the others wait in order, and more than can wait are
refused."""

from __future__ import annotations

import asyncio
import math
import queue
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from typing import Generic, TypeVar

from omnidemo.core.records import Reading, Round
from omnidemo.serving.endpoint.api_errors import ApiError

Item = TypeVar("Item")
RETRY = {"Retry-After": "1"}
# seconds between two looks at the rounds of an answer: twenty-five a second, as the pictures of a film
LOOK_SECONDS = 0.04


class AnswerSlots:
    """Decoding blocks, so it never runs in the thread that serves the connections. Methods may be called from
    any thread."""

    def __init__(self, slots: int, waiting: int, each: int) -> None:
        """slots: answers at a time; waiting: those that may wait for one; each: most that a caller with a
        name may have of both."""
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
        """Count an answer of this caller, "" for nobody in particular; ApiError 503 or 429 where there are
        too many."""
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
        """Count one that waits for something else before its answer can begin; ApiError as `take`."""
        self.take(caller)
        try:
            yield
        finally:
            self.give_back(caller)

    def start(
        self, caller: str, begin: Callable[[threading.Event], Iterator[Item]], wanted: type | None = None
    ) -> Work[Item]:
        """Have a thread make something as soon as one is free; to be called on the event loop that looks at
        it. `wanted`: the only kind of item that is looked at. ApiError as `take`."""
        self.take(caller)
        work = Work(begin, wanted, lambda: self.give_back(caller))
        self._jobs.put(work.run)
        with self._lock:
            if self._threads < min(self._slots, self.in_use):  # else one is free, and its caches are warm
                self._threads += 1
                # They must not keep a program from ending, so no executor of the standard library, which
                # waits for its threads.
                threading.Thread(target=self._work, name=f"answers {self._threads}", daemon=True).start()
        return work

    def _work(self) -> None:
        while True:
            self._jobs.get()()


class Work(Generic[Item]):
    """What a thread makes, item by item, and looked at in an event loop.

    The thread works ahead of whoever looks at the items: a slow reader holds nobody up.
    """

    def __init__(
        self,
        begin: Callable[[threading.Event], Iterator[Item]],
        wanted: type | None,
        over: Callable[[], None],
    ) -> None:
        self.cancel = threading.Event()
        self._made: deque[Item | Exception | None] = deque()
        self._news, self._urgent, self._looked = asyncio.Event(), asyncio.Event(), -math.inf
        # whether the loop knows that there is something: it is woken once for all that it has not looked at
        self._told = False
        self._begin, self._wanted, self._over = begin, wanted, over
        self._loop = asyncio.get_running_loop()
        self._lock = threading.Lock()  # of the next two
        self._begun = self._left = False

    async def made(self) -> list[Item | Exception | None]:
        """What was made since the last look, one item at least; after the last one comes None, or the
        exception that ended it.

        Looks are LOOK_SECONDS apart, for each wakes the loop and the client, on the cores that decode; only
        an item that is neither reading nor round is seen at once.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout_at(self._looked + LOOK_SECONDS):
                await self._urgent.wait()
        while not self._made:
            self._told = False
            if not self._made:
                await self._news.wait()
                self._news.clear()
        self._looked, self._told = self._loop.time(), True
        return [self._made.popleft() for _ in range(len(self._made))]

    def stop(self) -> None:
        """Nobody looks at it any more: end it early, and give its place back at once if no thread has begun
        it."""
        self.cancel.set()
        with self._lock:
            waiting, self._left = not self._begun and not self._left, True
        if waiting:
            self._over()

    def run(self) -> None:
        """Make it, in the thread of this call."""
        with self._lock:
            if self._left:
                return
            self._begun = True
        end: Exception | None = None
        try:
            with closing(self._begin(self.cancel)) as made:  # type: ignore[type-var]
                for item in made:
                    if self._wanted is None or isinstance(item, self._wanted):
                        self._put(item)
        except Exception as error:
            end = error
        finally:
            self._over()
            self._put(end)

    def _put(self, item: Item | Exception | None) -> None:
        self._made.append(item)
        with suppress(RuntimeError):  # the server has ended
            if not isinstance(item, Reading | Round):
                self._loop.call_soon_threadsafe(self._urgent.set)
            if not self._told:
                self._told = True
                self._loop.call_soon_threadsafe(self._news.set)
