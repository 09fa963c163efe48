"""The lock-free task queue of a shared forward pass."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import njit, types
from numba.core import cgutils

from omnidemo.backends.kernels.outlined import intrinsic
from omnidemo.backends.thread_pool import DONE, TICKET

sched_yield: Any = types.ExternalFunction(
    "sched_yield" if os.name == "posix" else "SwitchToThread", types.int32()
)


def _atomic(emit: Callable[..., Any]) -> Any:
    """An atomic operation on one place of a queue."""

    def typed(typing: Any, queue: Any, *rest: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            array = context.make_array(signature.args[0])(context, builder, arguments[0])
            place = cgutils.get_item_pointer(context, builder, signature.args[0], array, [arguments[1]])
            return emit(builder, place, *arguments[2:])

        return types.int64(queue, *[types.int64] * len(rest)), code

    return typed


@intrinsic
def look(typing: Any, queue: Any, place: Any) -> Any:
    """The number at a place."""
    return _atomic(lambda builder, at: builder.load_atomic(at, "acquire", 8))(typing, queue, place)


@intrinsic
def add(typing: Any, queue: Any, place: Any, more: Any) -> Any:
    """Add to the number at a place; returns the number before."""
    return _atomic(lambda builder, at, value: builder.atomic_rmw("add", at, value, "acq_rel"))(
        typing, queue, place, more
    )


@intrinsic
def put(typing: Any, queue: Any, place: Any, value: Any) -> Any:
    """Write a number, after all earlier writes."""

    def emit(builder: Any, at: Any, number: Any) -> Any:
        builder.store_atomic(number, at, "release", 8)
        return ir.Constant(ir.IntType(64), 0)

    return _atomic(emit)(typing, queue, place, value)


@intrinsic
def pointer(typing: Any, address: Any) -> Any:
    """An address for `carray`."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], cgutils.voidptr_t)

    return types.voidptr(types.int64), code


@njit(cache=True)
def offer(queue: Any, tasks: int) -> None:
    """Offer the tasks of the work that has been written from WORK on."""
    put(queue, DONE, 0)
    put(queue, TICKET, tasks << 32)


@njit(cache=True)
def next_task(queue: Any) -> int:
    """The number of a task that no other thread does, −1 for none. Whoever got one adds 1 at DONE afterwards:
    until all tasks are done the work stays as it is."""
    ticket = look(queue, TICKET)
    if ticket & 0xFFFFFFFF < ticket >> 32:
        ticket = add(queue, TICKET, 1)
        if ticket & 0xFFFFFFFF < ticket >> 32:
            return ticket & 0xFFFFFFFF
    return -1
