"""Products of a few rows with packed weights, which are unpacked in registers, once for all rows of a strip.

Sixteen columns of the result are the lanes of a vector, and a number of x is spread to all lanes. So codes
unpack to a vector, sums end in their place, and a scale multiplies the sum of 32 columns instead of each of
them.
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
from omnidemo.backends.packed_forms import CENTRED, LAYOUTS, PACKED, ROWS

TOGETHER = 2  # strips of x that are multiplied with the records in the first cache
PANEL = 2**18  # bytes of records in the second cache with which all of x is multiplied
# by form: bytes of 32 columns of sixteen rows, and the sums that their minima are multiplied with
SIZES = tuple(
    LAYOUTS[form].size // LAYOUTS[form].blocks if form in LAYOUTS else 0 for form in range(PACKED[-1] + 1)
)
SUMS = tuple(
    LAYOUTS[form].scales * LAYOUTS[form].minima if form in LAYOUTS else 0 for form in range(PACKED[-1] + 1)
)
# Without `fastmath`: weights are computed and added in the written order.
exactly: Any = njit(cache=True, error_model="numpy")


class Records(NamedTuple):
    """Rows of a packed matrix, from a multiple of 16 on: form, address of the records, number of rows, and
    columns / 32."""

    form: int
    address: int
    rows: int
    blocks: int


@exactly
def multiply_packed(given: Records, x: Array, out: Array) -> None:
    """out [m, n] = x [m, k] · Wᵀ. The rows of `out` may be strided."""
    count, form = len(x), given.form
    groups, step = (given.rows + ROWS - 1) // ROWS, given.blocks * SIZES[form]
    strips = (count + MOST - 1) // MOST
    together, at_once = (strips, groups) if strips <= TOGETHER else (1, max(1, PANEL // step))
    sums = sums_of(x, SUMS[form] * given.blocks)
    last = np.empty((count if given.rows % ROWS else 0, ROWS + 1), np.float32)[:, :ROWS]  # lies as `out` does
    for first in range(0, groups, at_once):
        for begin in range(0, strips, max(1, together)):
            for group in range(first, min(groups, first + at_once)):
                whole = (group + 1) * ROWS <= given.rows
                to, column = out if whole else last, group * ROWS if whole else 0
                for which in range(begin, begin + together):
                    low, high = which * count // strips, (which + 1) * count // strips
                    record = given.address + group * step
                    strip(form, record, given.blocks, x[low:high], sums[low:high], to[low:high], column)
    for row in range(len(last)):
        append(out[row], given.rows - given.rows % ROWS, last[row, : given.rows % ROWS])


@compiled
def sums_of(x: Array, parts: int) -> Array:
    """The sums of `parts` equal parts of each row of x."""
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
    """Write one row of a matrix in float32 to `out` [k]."""
    address = given.address + row // ROWS * given.blocks * SIZES[given.form]
    group = np.empty((len(out), ROWS), np.float32)
    unpack(given.form, address, given.blocks, group)
    append(out, int64(0), group[:, row % ROWS])


@intrinsic
def strip(typing: Any, form: Any, address: Any, blocks: Any, x: Any, sums: Any, out: Any, column: Any) -> Any:
    """out [r, column … column + 15] = x [r, k] · Wᵀ for 1 to MOST rows of x and the sixteen rows of W at an
    address. `sums` are those of the columns of x that share a minimum."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        arrays = [
            context.make_array(signature.args[which])(context, builder, arguments[which])
            for which in range(3, 6)
        ]
        begins = [builder.bitcast(array.data, cgutils.voidptr_t) for array in arrays]
        strides = [cgutils.unpack_tuple(builder, array.strides)[0] for array in arrays]
        rows = cgutils.unpack_tuple(builder, arrays[0].shape)[0]
        begins[2] = builder.gep(begins[2], [builder.mul(arguments[6], INDEX(4))])
        records = builder.inttoptr(arguments[1], cgutils.voidptr_t)
        given = [records, arguments[2], *begins, *strides]
        after = builder.append_basic_block()
        choice = builder.switch(builder.add(builder.mul(arguments[0], INDEX(MOST + 1)), rows), after)
        for number, layout in LAYOUTS.items():
            for count in range(1, MOST + 1):
                with builder.goto_block(builder.append_basic_block()):
                    choice.add_case(INDEX(number * (MOST + 1) + count), builder.block)
                    name = f"omnidemo_tile_{number}_{count}"
                    builder.call(tile(builder.module, name, layout, count), given)
                    builder.branch(after)
        builder.position_at_end(after)
        return context.get_dummy_value()

    return types.void(form, address, blocks, x, sums, out, column), code


@intrinsic
def unpack(typing: Any, form: Any, address: Any, blocks: Any, out: Any) -> Any:
    """Write the sixteen rows of W at an address to the columns of `out` [k, 16]."""

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


multiply_records = outlined(multiply_packed, Records(CENTRED, 0, 0, 0), examples.WEIGHT, examples.ROWS)
unpack_one = outlined(unpack_row, Records(CENTRED, 0, 0, 0), 0, examples.WEIGHT[0])
