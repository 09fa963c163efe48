"""int8 GEMM with packed weights. Activations are quantized once for all matrices that read them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numba.core import cgutils

from omnidemo.backends import processor
from omnidemo.backends.call_layout import Array
from omnidemo.backends.kernels import examples
from omnidemo.backends.kernels.gemm import INDEX
from omnidemo.backends.kernels.integer.sets import best
from omnidemo.backends.kernels.integer.tiles import BLOCK, quantize_block, tile_product
from omnidemo.backends.kernels.outlined import intrinsic, outlined
from omnidemo.backends.kernels.packed_blocks import SIZES, PackedRows, exactly
from omnidemo.backends.kernels.rows_kernel import append
from omnidemo.backends.packed_forms import CENTRED, COLUMNS, LAYOUTS, ROWS

WAY = best(processor.has)
MOST = WAY.most
TOGETHER = 3  # strips of x that share each tile in the L1 cache
PANEL = 2**18  # bytes of tiles that stay in the L2 cache for all of x
WIDTH = BLOCK // 4  # float32 numbers as large as a block


@exactly
def quantize(x: Array, out: int) -> None:
    """Write the rows of x [rows, k] to an address as blocks, k / 32 for each row."""
    for which in range(x.shape[0] * x.shape[1] // COLUMNS):
        quantize_at(x.ctypes.data + 4 * COLUMNS * which, out + BLOCK * which)


@exactly
def multiply(given: PackedRows, x: int, out: Array) -> None:
    """out [m, n] = x · Wᵀ for the blocks of m rows at the address x. The rows of `out` may be strided."""
    count, form = len(out), given.form
    groups, step = (given.rows + ROWS - 1) // ROWS, given.blocks * SIZES[form]
    strips, each = (count + MOST - 1) // MOST, given.blocks * BLOCK
    together = strips if strips <= TOGETHER else 1
    at_once = groups if strips <= TOGETHER else max(1, PANEL // step)
    apart = out.strides[0]
    last = np.empty((count if given.rows % ROWS else 0, ROWS), np.float32)
    for first in range(0, groups, at_once):
        end = min(groups, first + at_once)
        for begin in range(0, strips, max(1, together)):
            for group in range(first, end):
                whole = (group + 1) * ROWS <= given.rows
                to = out.ctypes.data + 4 * ROWS * group if whole else last.ctypes.data
                lines = apart if whole else 4 * ROWS
                for which in range(begin, begin + together):
                    low, high = which * count // strips, (which + 1) * count // strips
                    tile = given.address + group * step
                    row, place = x + low * each, to + low * lines
                    strip(form, high - low, tile, given.blocks, row, place, each, lines)
    for row in range(len(last)):
        append(out[row], given.rows - given.rows % ROWS, last[row, : given.rows % ROWS])


@intrinsic
def quantize_at(typing: Any, x: Any, out: Any) -> Any:
    """Quantize the 32 columns at an address to a block at another address."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        quantize_block(builder, *(builder.inttoptr(one, cgutils.voidptr_t) for one in arguments))
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), code


@intrinsic
def strip(
    typing: Any, form: Any, rows: Any, tiles: Any, blocks: Any, x: Any, out: Any, each: Any, apart: Any
) -> Any:
    """out [r, 0 … 15] = x · Wᵀ for 1 to MOST rows of blocks and the sixteen rows of W, all at addresses;
    `each` and `apart` bytes from one row of x and of `out` to the next."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        form, rows, tiles, blocks, x, out, each, apart = arguments
        tiles, x, out = (builder.inttoptr(one, cgutils.voidptr_t) for one in (tiles, x, out))
        after = builder.append_basic_block()
        choice = builder.switch(builder.add(builder.mul(form, INDEX(MOST + 1)), rows), after)
        for number, layout in LAYOUTS.items():
            for count in range(1, MOST + 1):
                with builder.goto_block(builder.append_basic_block()):
                    choice.add_case(INDEX(number * (MOST + 1) + count), builder.block)
                    name = f"omnidemo_integer_{number}_{count}"
                    made = tile_product(builder.module, name, layout, count, WAY)
                    builder.call(made, [tiles, blocks, x, out, each, apart])
                    builder.branch(after)
        builder.position_at_end(after)
        return context.get_dummy_value()

    return types.void(*[types.int64] * 8), code


quantize_rows = outlined(quantize, examples.WEIGHT, 0)
multiply_integers = outlined(multiply, PackedRows(CENTRED, 0, 0, 0), 0, examples.ROWS)
