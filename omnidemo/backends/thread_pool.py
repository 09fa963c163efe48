"""Threads that share a compiled pass, task by task: whoever is free takes the next one.

Teams that split each product evenly wait for their slowest member, which on a machine that does other things
is mostly one that is not running. Here the thread that answers never waits for another to begin, only for
tasks that were begun.
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

Queue = NDArray[np.int64]  # the numbers that the threads have in common
# places on it; those that many write are on cache lines of their own
TICKET, DONE, AWAKE, BUSY, WORK = 0, 8, 16, 17, 24
SIZE = 48
TASKS = 2  # of a large product, for each thread
MOST = 8  # more threads wait for the memory
# Looks for a task before other programs get a chance in between, and, where no pass is under way, before the
# thread sleeps: one to two milliseconds in all.
SPINS_BEFORE_YIELD, SPINS_BEFORE_SLEEP = 300, 5000


def new_queue() -> Queue:
    return np.zeros(SIZE, np.int64)


@cache
def pick_size(threads: int = 0) -> int:
    """How many help the thread that answers: all of `threads` but that one. 0 stands for the cores, up to
    `MOST`."""
    usable = usable_cores()
    return (threads or min(usable, psutil.cpu_count(logical=False) or usable, MOST)) - 1


def helping(size: int, run_worker: Callable[[Queue], None]) -> AbstractContextManager[Queue]:
    """A queue that so many threads work on, awake or on their way; one that no thread works on where all are
    busy, or there are none."""
    pool = _pool(size, run_worker) if size else None
    return pool if pool is not None and pool.lock.acquire(blocking=False) else nullcontext(new_queue())


@cache
def _pool(size: int, run_worker: Callable[[Queue], None]) -> ThreadPool:
    return ThreadPool(size, run_worker)


class ThreadPool:
    """Daemon threads that run `run_worker(queue)`, which returns when there has been no work for a while and
    no pass is under way (BUSY), and then wait to be called."""

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
        """For whoever has acquired the lock."""
        self.queue[BUSY] = 1
        if self.queue[AWAKE] < self.size:
            for call in self._calls:
                call.set()
        return self.queue

    def __exit__(self, *error: object) -> None:
        self.queue[BUSY] = 0
        self.lock.release()
