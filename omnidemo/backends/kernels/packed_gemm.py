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
from omnidemo.backends.kernels.packed_tiles import MOST, tile, unpacked
from omnidemo.backends.kernels.rows_kernel import append, compiled, int64
from omnidemo.backends.packed_forms import CENTRED, COLUMNS, LAYOUTS, PACKED, ROWS

# Rows for which codes are unpacked in each strip anew; for more, once, into memory that stays in the second
# cache. Their strips have more than half of MOST rows.
FEW = 2 * MOST
PANEL = 2**19  # bytes of that memory, unless sixteen rows of W take more
# by form: bytes of 32 columns of sixteen rows, and the sums that their minima are multiplied with
SIZES = tuple(
    LAYOUTS[form].size // LAYOUTS[form].blocks if form in LAYOUTS else 0 for form in range(PACKED[-1] + 1)
)
SUMS = tuple(
    LAYOUTS[form].scales * LAYOUTS[form].minima if form in LAYOUTS else 0 for form in range(PACKED[-1] + 1)
)
# Weights are made and added up as written, so the compiler may not turn sums and products around, as in other
# kernels.
exactly: Any = njit(cache=True, error_model="numpy")


class Records(NamedTuple):
    """Some rows of a packed matrix, the first of them a multiple of 16: their form, where their records
    begin, how many rows there are, and how many times 32 columns they have."""

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
    panel = np.empty((0 if few else at_once * k, ROWS), np.float32)
    sums = sums_of(x, SUMS[form] * given.blocks)
    strips = (count + MOST - 1) // MOST
    together = strips if few else 1  # what has been fetched is multiplied with all of so few
    last = np.empty((count if given.rows % ROWS else 0, ROWS + 1), np.float32)[:, :ROWS]  # lies as `out` does
    for first in range(0, groups, at_once):
        end, address = min(groups, first + at_once), given.address + first * step
        for group in range(0 if few else end - first):
            unpack(form, address + group * step, given.blocks, panel[group * k : (group + 1) * k])
        for begin in range(0, strips, together):
            for group in range(first, end):
                whole = (group + 1) * ROWS <= given.rows
                to, column = out if whole else last, group * ROWS if whole else 0
                record, codes = address + (group - first) * step, panel[(group - first) * k * (not few) :]
                for which in range(begin, begin + together):
                    low, high = which * count // strips, (which + 1) * count // strips
                    rows = x[low:high]
                    strip(form, record, given.blocks, codes, rows, sums[low:high], to[low:high], column)
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
    unpack_weights(given.form, address, given.blocks, group)
    append(out, int64(0), group[:, row % ROWS])


@intrinsic
def strip(
    typing: Any,
    form: Any,
    address: Any,
    blocks: Any,
    panel: Any,
    x: Any,
    sums: Any,
    out: Any,
    column: Any,
) -> Any:
    """out [r, column … column + 15] = x [r, k] · Wᵀ for up to MOST rows of x, and the sixteen rows of W at an
    address, whose codes are read from `panel` [k, 16] unless that is empty. `sums` are those of the columns
    of x that have a minimum."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        arrays = [
            context.make_array(signature.args[which])(context, builder, arguments[which])
            for which in range(3, 7)
        ]
        panel, *begins = (builder.bitcast(array.data, cgutils.voidptr_t) for array in arrays)
        _, *strides = (cgutils.unpack_tuple(builder, array.strides)[0] for array in arrays)
        length, rows = (cgutils.unpack_tuple(builder, array.shape)[0] for array in arrays[:2])
        begins[2] = builder.gep(begins[2], [builder.mul(arguments[7], INDEX(4))])
        records = builder.inttoptr(arguments[1], cgutils.voidptr_t)
        given = [records, arguments[2], panel, *begins, *strides]
        there = builder.zext(builder.icmp_unsigned("!=", length, INDEX(0)), INDEX)
        case = builder.add(builder.mul(arguments[0], INDEX(2)), there)
        after = builder.append_basic_block()
        choice = builder.switch(builder.add(builder.mul(case, INDEX(MOST + 1)), rows), after)
        for number, layout in LAYOUTS.items():
            for from_panel in (False, True):
                for count in range(MOST // 2 + 1 if from_panel else 1, MOST + 1):
                    with builder.goto_block(builder.append_basic_block()):
                        place = (2 * number + from_panel) * (MOST + 1) + count
                        choice.add_case(INDEX(place), builder.block)
                        name = f"omnidemo_tile_{number}_{from_panel}_{count}"
                        builder.call(tile(builder.module, name, layout, count, from_panel), given)
                        builder.branch(after)
        builder.position_at_end(after)
        return context.get_dummy_value()

    return types.void(form, address, blocks, panel, x, sums, out, column), code


def _unpacking(weights: bool) -> Any:
    """An intrinsic that calls `unpacked`: sixteen rows of W at an address, to the columns of out [k, 16]."""

    @intrinsic
    def unpack(typing: Any, form: Any, address: Any, blocks: Any, out: Any) -> Any:
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
                    name = f"omnidemo_unpacked_{number}_{weights}"
                    builder.call(unpacked(builder.module, name, layout, weights), given)
                    builder.branch(after)
            builder.position_at_end(after)
            return context.get_dummy_value()

        return types.void(form, address, blocks, out), code

    return unpack


unpack, unpack_weights = _unpacking(weights=False), _unpacking(weights=True)
multiply_records = outlined(multiply_packed, Records(CENTRED, 0, 0, 0), examples.WEIGHT, examples.ROWS)
unpack_one = outlined(unpack_row, Records(CENTRED, 0, 0, 0), 0, examples.WEIGHT[0])
