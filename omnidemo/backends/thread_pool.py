"""Threads that share a compiled pass, task by task: a free thread takes the next task.

Teams that split each product evenly wait for their slowest member, which on a busy machine is mostly one that
is not running. Here the answering thread never waits for another to begin, only for tasks that were begun.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import cache

import numpy as np
import psutil
from numpy.typing import NDArray

from omnidemo.core.resources import usable_cores

Queue = NDArray[np.int64]  # the numbers that the threads share
# places on it; those that many threads write have cache lines of their own
TICKET, DONE, AWAKE, BUSY, WORK = 0, 8, 16, 17, 24
SIZE = 48
TASKS = 2  # of a large product, for each thread
MOST = 8  # more threads only wait for memory
# Looks for a task before the thread yields, and before it sleeps between passes: one to two milliseconds.
SPINS_BEFORE_YIELD, SPINS_BEFORE_SLEEP = 300, 5000


def new_queue() -> Queue:
    return np.zeros(SIZE, np.int64)


@cache
def pick_size(threads: int = 0) -> int:
    """The number of helper threads beside the answering thread, for `threads` in all. 0 stands for the cores,
    up to `MOST`."""
    usable = usable_cores()
    return (threads or min(usable, psutil.cpu_count(logical=False) or usable, MOST)) - 1


def helping(size: int, run_worker: Callable[[Queue], None]) -> AbstractContextManager[Queue]:
    """A queue that `size` threads work on. Where all are busy, or `size` is 0, a queue that no thread works
    on."""
    pool = _pool(size, run_worker) if size else None
    return pool if pool is not None and pool.lock.acquire(blocking=False) else nullcontext(new_queue())


@cache
def _pool(size: int, run_worker: Callable[[Queue], None]) -> ThreadPool:
    return ThreadPool(size, run_worker)


class ThreadPool:
    """Daemon threads that run `run_worker(queue)` when called. It returns when no pass is under way (BUSY)
    and there has been no work for a while."""

    def __init__(self, size: int, run_worker: Callable[[Queue], None]) -> None:
        self.size, self.queue, self._run_worker = size, new_queue(), run_worker
        self.lock = threading.Lock()
        self._calls = [threading.Event() for _ in range(size)]
        for number, call in enumerate(self._calls):
            threading.Thread(target=self._work, args=(call,), name=f"pass-{number}", daemon=True).start()

    def _work(self, call: threading.Event) -> None:
        while True:
            call.wait()
            call.clear()
            self._run_worker(self.queue)
            while self.queue[BUSY]:  # a pass has begun while the thread was about to sleep
                self._run_worker(self.queue)

    def __enter__(self) -> Queue:
        """The queue, with all threads called; the caller has acquired the lock."""
        self.queue[BUSY] = 1
        if self.queue[AWAKE] < self.size:
            for call in self._calls:
                call.set()
        return self.queue

    def __exit__(self, *error: object) -> None:
        self.queue[BUSY] = 0
        self.lock.release()
