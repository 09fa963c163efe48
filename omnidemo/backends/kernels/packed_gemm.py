"""Products of a few rows with packed weights, which are unpacked in registers, once for all rows of a strip.

Sixteen columns of the result are the lanes of a vector, and a number of x is spread to all of them where it
is multiplied. So what is unpacked is a vector of codes, sums end where they are wanted, and scales are
multiplied with the sum of 32 columns instead of with each.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit, types
from numba.core import cgutils

from omnidemo.backends.call_layout import Array
from omnidemo.backends.kernels import examples
from omnidemo.backends.kernels.gemm import INDEX
from omnidemo.backends.kernels.outlined import intrinsic, outlined
from omnidemo.backends.kernels.packed_tiles import MOST, PLAIN, tile, unpacked
from omnidemo.backends.kernels.rows_kernel import append, compiled, int64
from omnidemo.backends.packed_forms import COLUMNS, FLOAT32, LAYOUTS, PACKED, ROWS

# rows for which weights are unpacked in each strip anew; for more, once, into memory that stays in the second
# cache
FEW = 2 * MOST
PANEL = 2**19  # bytes of that memory, unless sixteen rows of W take more
SIZES = tuple(LAYOUTS.get(form, PLAIN).size for form in range(PACKED[-1] + 1))  # of a record, by form
# that have minima
SCALES = tuple(
    LAYOUTS.get(form, PLAIN).scales * LAYOUTS.get(form, PLAIN).minima for form in range(PACKED[-1] + 1)
)
# Weights are made and added up as written, so the compiler may not turn sums and products around, as in other
# kernels.
exactly: Any = njit(cache=True, error_model="numpy")


class Records(NamedTuple):
    """Some rows of a packed matrix, the first of them a multiple of 16: their form, where their records
    begin, how many rows there are, and how many records make up sixteen of them."""

    form: int
    address: int
    rows: int
    blocks: int


@exactly
def multiply_packed(given: Records, x: Array, out: Array) -> None:
    """out [m, n] = x [m, k] · Wᵀ. The rows of `out` may lie apart."""
    count, k, few, form = len(x), given.blocks * COLUMNS, len(x) <= FEW, given.form
    if count == 0:  # of a prompt whose rows nobody needs
        return
    groups, step = (given.rows + ROWS - 1) // ROWS, given.blocks * SIZES[form]
    at_once = groups if few else max(1, min(groups, PANEL // (4 * k * ROWS)))
    panel, sums = (
        np.empty((0 if few else at_once * k, ROWS), np.float32),
        sums_of(x, SCALES[form] * given.blocks if few else 0),
    )
    strips = (count + MOST - 1) // MOST
    together = strips if few else 1  # what has been fetched is multiplied with all of so few
    last = np.empty((count if given.rows % ROWS else 0, ROWS + 1), np.float32)[:, :ROWS]  # lies as `out` does
    for first in range(0, groups, at_once):
        end, address = min(groups, first + at_once), given.address + first * step
        if not few:
            for group in range(end - first):
                unpack(form, address + group * step, given.blocks, panel[group * k : (group + 1) * k])
            address = int64(panel.ctypes.data)
        own, size = (form, step) if few else (FLOAT32, 4 * k * ROWS)
        for begin in range(0, strips, together):
            for group in range(first, end):
                whole = (group + 1) * ROWS <= given.rows
                to, column = out if whole else last, group * ROWS if whole else 0
                for which in range(begin, begin + together):
                    low, high = which * count // strips, (which + 1) * count // strips
                    strip(
                        own,
                        address + (group - first) * size,
                        given.blocks,
                        x[low:high],
                        sums[low:high],
                        to[low:high],
                        column,
                    )
    for row in range(len(last)):
        append(out[row], given.rows - given.rows % ROWS, last[row, : given.rows % ROWS])


@compiled
def sums_of(x: Array, parts: int) -> Array:
    """The sums of so many parts of each row of x."""
    sums = np.empty((len(x), parts), np.float32)
    size = x.shape[1] // max(1, parts)
    for row in range(len(x)):
        for part in range(parts):
            total = np.float32(0.0)
            for i in range(part * size, (part + 1) * size):
                total += x[row, i]
            sums[row, part] = total
    return sums


@exactly
def unpack_row(given: Records, row: int, out: Array) -> None:
    """One row of a matrix, in float32 [k]."""
    address = given.address + row // ROWS * given.blocks * SIZES[given.form]
    group = np.empty((len(out), ROWS), np.float32)
    unpack(given.form, address, given.blocks, group)
    append(out, int64(0), group[:, row % ROWS])


@intrinsic
def strip(typing: Any, form: Any, address: Any, blocks: Any, x: Any, sums: Any, out: Any, column: Any) -> Any:
    """out [r, column … column + 15] = x [r, k] · Wᵀ for up to MOST rows of x, and the sixteen rows of W at an
    address. `sums` are those of the columns of x that have a minimum."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        begins, strides = [], []
        for which in (3, 4, 5):
            array = context.make_array(signature.args[which])(context, builder, arguments[which])
            begins.append(builder.bitcast(array.data, cgutils.voidptr_t))
            strides.append(cgutils.unpack_tuple(builder, array.strides)[0])
        rows = cgutils.unpack_tuple(builder, array.shape)[0]
        begins[2] = builder.gep(begins[2], [builder.mul(arguments[6], INDEX(4))])
        given = [builder.inttoptr(arguments[1], cgutils.voidptr_t), arguments[2], *begins, *strides]
        after = builder.append_basic_block()
        choice = builder.switch(builder.add(builder.mul(arguments[0], INDEX(MOST + 1)), rows), after)
        for number, layout in {FLOAT32: PLAIN, **LAYOUTS}.items():
            for count in range(1, MOST + 1):
                with builder.goto_block(builder.append_basic_block()):
                    choice.add_case(INDEX(number * (MOST + 1) + count), builder.block)
                    builder.call(
                        tile(builder.module, f"omnidemo_tile_{number}_{count}", layout, count), given
                    )
                    builder.branch(after)
        builder.position_at_end(after)
        return context.get_dummy_value()

    return types.void(form, address, blocks, x, sums, out, column), code


@intrinsic
def unpack(typing: Any, form: Any, address: Any, blocks: Any, out: Any) -> Any:
    """The sixteen rows of W at an address, to the columns of out [k, 16]."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[3])(context, builder, arguments[3])
        given = [
            builder.inttoptr(arguments[1], cgutils.voidptr_t),
            arguments[2],
            builder.bitcast(array.data, cgutils.voidptr_t),
        ]
        after = builder.append_basic_block()
        choice = builder.switch(arguments[0], after)
        for number, layout in LAYOUTS.items():
            with builder.goto_block(builder.append_basic_block()):
                choice.add_case(INDEX(number), builder.block)
                builder.call(unpacked(builder.module, f"omnidemo_unpacked_{number}", layout), given)
                builder.branch(after)
        builder.position_at_end(after)
        return context.get_dummy_value()

    return types.void(form, address, blocks, out), code


multiply_records = outlined(multiply_packed, Records(FLOAT32, 0, 0, 0), examples.WEIGHT, examples.ROWS)
unpack_one = outlined(unpack_row, Records(FLOAT32, 0, 0, 0), 0, examples.WEIGHT[0])
