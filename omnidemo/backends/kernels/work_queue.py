"""A board on which threads find their pieces: each is claimed by one of them, without a lock."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic as _intrinsic

from omnidemo.backends.thread_pool import DONE, TICKET

intrinsic: Any = _intrinsic  # what it makes takes one argument fewer than the function says


def _atomic(emit: Callable[..., Any]) -> Any:
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
