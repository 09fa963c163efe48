"""Threads that share a compiled pass, piece by piece: whoever is free takes the next one.

Teams that split each product evenly wait for their slowest member, which on a machine that does other things is mostly one that is not
running. Here the thread that answers never waits for another to begin, only for pieces that were begun.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import cache

import numpy as np
import psutil
from numpy.typing import NDArray

Board = NDArray[np.int64]  # what the threads have in common
TICKET, DONE, AWAKE, WORK = 0, 8, 16, 24  # places on it; those that many write are on cache lines of their own
SIZE = 48
PIECES = 2  # of a large product, for each thread that helps
MOST = 8  # more threads wait for the memory
EAGER, PATIENCE = 300, 5000  # looks for a piece without, and with, a chance for other programs in between: one to two milliseconds


def new_board() -> Board:
    return np.zeros(SIZE, np.int64)


@cache
def pick_size(threads: int = 0) -> int:
    """How many help the thread that answers: all of `threads` but that one. 0 stands for the cores, up to `MOST`."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return (threads or min(usable, psutil.cpu_count(logical=False) or usable, MOST)) - 1


def helping(size: int, serve: Callable[[Board], None]) -> AbstractContextManager[Board]:
    """A board that so many threads serve, awake or on their way; one that nobody does where they serve somebody else, or there is none."""
    crew = _crew(size, serve) if size else None
    return crew if crew is not None and crew.lock.acquire(blocking=False) else nullcontext(new_board())


@cache
def _crew(size: int, serve: Callable[[Board], None]) -> ThreadPool:
    return ThreadPool(size, serve)


class ThreadPool:
    """Daemon threads that run `serve(board)`, which returns when there has been no work for a while, and then wait to be called."""

    def __init__(self, size: int, serve: Callable[[Board], None]) -> None:
        self.size, self.board, self._serve = size, new_board(), serve
        self.lock = threading.Lock()
        self._calls = [threading.Event() for _ in range(size)]
        for number, call in enumerate(self._calls):
            threading.Thread(target=self._work, args=(call,), name=f"pass-{number}", daemon=True).start()

    def _work(self, call: threading.Event) -> None:
        while True:
            call.wait()
            call.clear()
            self._serve(self.board)

    def __enter__(self) -> Board:
        """For whoever has acquired the lock."""
        if self.board[AWAKE] < self.size:
            for call in self._calls:
                call.set()
        return self.board

    def __exit__(self, *error: object) -> None:
        self.lock.release()
