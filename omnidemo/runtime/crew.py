"""Threads that share a compiled pass, piece by piece: whoever is free takes the next one.

Teams that split each product evenly wait for their slowest member, which on a machine that does other things is mostly one that is not
running. Here the thread that answers never waits for another to begin, only for pieces that were begun.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np
import psutil
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic as _intrinsic
from numpy.typing import NDArray

Board = NDArray[np.int64]  # what the threads have in common
TICKET, DONE, AWAKE, WORK = 0, 8, 16, 24  # places on it; those that many write are on cache lines of their own
SIZE = 40
MOST = 8  # more threads wait for the memory
EAGER, PATIENCE = 300, 5000  # looks for a piece without, and with, a chance for other programs in between: one to two milliseconds

intrinsic: Any = _intrinsic  # what it makes takes one argument fewer than the function says


def _atomic(emit: Callable[..., Any], *given: Any) -> Any:
    """An operation on one place of a board that no other thread can come between."""

    def typed(typing: Any, board: Any, *rest: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            array = context.make_array(signature.args[0])(context, builder, arguments[0])
            place = cgutils.get_item_pointer(context, builder, signature.args[0], array, [arguments[1]])
            return emit(builder, place, *arguments[2:])

        return types.int64(board, *[types.int64] * len(rest)), code

    return typed


@intrinsic
def look(typing: Any, board: Any, place: Any) -> Any:
    """The number at a place."""
    return _atomic(lambda builder, at: builder.load_atomic(at, "acquire", 8))(typing, board, place)


@intrinsic
def add(typing: Any, board: Any, place: Any, more: Any) -> Any:
    """Add to the number at a place; what it was before."""
    return _atomic(lambda builder, at, value: builder.atomic_rmw("add", at, value, "acq_rel"))(typing, board, place, more)


@intrinsic
def put(typing: Any, board: Any, place: Any, value: Any) -> Any:
    """Write a number, after everything that was written before."""

    def emit(builder: Any, at: Any, number: Any) -> Any:
        builder.store_atomic(number, at, "release", 8)
        return ir.Constant(ir.IntType(64), 0)

    return _atomic(emit)(typing, board, place, value)


@intrinsic
def pointer(typing: Any, address: Any) -> Any:
    """An address, for `carray`."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], cgutils.voidptr_t)

    return types.voidptr(types.int64), code


def new_board() -> Board:
    return np.zeros(SIZE, np.int64)


@njit(cache=True)
def post(board: Any, pieces: int) -> None:
    """Offer so many pieces of the work that has been written at WORK…."""
    put(board, DONE, 0)
    put(board, TICKET, pieces << 32)


@njit(cache=True)
def claim(board: Any) -> int:
    """The number of a piece that nobody else will do, or −1 where there is none. Whoever got one adds 1 at DONE when it is done: until
    all have, the work stays as it is."""
    ticket = look(board, TICKET)
    if ticket & 0xFFFFFFFF < ticket >> 32:
        ticket = add(board, TICKET, 1)
        if ticket & 0xFFFFFFFF < ticket >> 32:
            return ticket & 0xFFFFFFFF
    return -1


@cache
def pick_size(threads: int = 0) -> int:
    """How many help the thread that answers: all of `threads` but that one. 0 stands for the cores, up to `MOST`."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return (threads or min(usable, psutil.cpu_count(logical=False) or usable, MOST)) - 1


@contextmanager
def helping(size: int, serve: Callable[[Board], None]) -> Iterator[Board]:
    """A board that so many threads serve, awake or on their way; one that nobody does where they serve somebody else, or there is none."""
    crew = _crew(size, serve) if size else None
    if crew is None or not crew.lock.acquire(blocking=False):
        yield new_board()
        return
    try:
        crew.wake()
        yield crew.board
    finally:
        crew.lock.release()


@cache
def _crew(size: int, serve: Callable[[Board], None]) -> _Crew:
    return _Crew(size, serve)


class _Crew:
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

    def wake(self) -> None:
        if self.board[AWAKE] < self.size:
            for call in self._calls:
                call.set()
