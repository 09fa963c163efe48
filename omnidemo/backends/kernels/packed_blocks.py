"""Reads quants, scales and minima from weight tiles (`packed_forms.py`), and rows of a packed embedding."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import carray, njit, types

from omnidemo.backends import processor
from omnidemo.backends.call_layout import Array
from omnidemo.backends.kernels import examples
from omnidemo.backends.kernels.gemm import INDEX, REAL
from omnidemo.backends.kernels.outlined import intrinsic, outlined
from omnidemo.backends.kernels.rows_kernel import int64
from omnidemo.backends.kernels.work_queue import pointer
from omnidemo.backends.packed_forms import CENTRED, COLUMNS, LAYOUTS, PACKED, ROWS, Layout

HALF = processor.has("f16c")  # whether the processor reads float16
# Without `fastmath`: weights are computed and added in the written order.
exactly: Any = njit(cache=True, error_model="numpy")


def _by_form(fact: Any) -> tuple[int, ...]:
    """A fact of each form's layout; compiled code reads tuples of numbers."""
    return tuple(int(fact(LAYOUTS[form])) if form in LAYOUTS else 0 for form in range(PACKED[-1] + 1))


# bytes of 32 columns of sixteen rows: on average, and without the super_scales of K types
SIZES, BLOCK_SIZES = _by_form(lambda one: one.size // one.blocks), _by_form(lambda one: one.block.itemsize)
BLOCKS, SCALES = _by_form(lambda one: one.blocks), _by_form(lambda one: one.scales)
BITS, UPPER = _by_form(lambda one: one.bits), _by_form(lambda one: one.upper)
ZEROS = _by_form(lambda one: one.zero)
MINIMA, SIGNED = _by_form(lambda one: one.minima), _by_form(lambda one: one.number is np.int8)


class PackedRows(NamedTuple):
    """Rows of a packed matrix, from a multiple of 16 on: form, address of the tiles, number of rows, and
    columns / 32."""

    form: int
    address: int
    rows: int
    blocks: int


@exactly
def look_up_packed(given: PackedRows, row: int, out: Array) -> None:
    """Write a row of a packed matrix in float32 to `out` [k], as `PackedMatrix.values` does."""
    form, lane = given.form, row % ROWS
    group = given.address + row // ROWS * given.blocks * SIZES[form]
    quants, each = COLUMNS * BITS[form] // 8 * ROWS, COLUMNS // SCALES[form]
    for block in range(given.blocks):
        tile = group + block // BLOCKS[form] * BLOCKS[form] * SIZES[form]
        begin = tile + block % BLOCKS[form] * BLOCK_SIZES[form]
        words = carray(pointer(begin), quants // 4, np.uint32)
        for which in range(SCALES[form]):
            scale, minimum = number_of(form, tile, begin + quants, which, lane, int64(0)), np.float32(0.0)
            if MINIMA[form]:
                minimum = number_of(form, tile, begin + quants, SCALES[form] + which, lane, int64(1))
            for column in range(which * each, (which + 1) * each):
                code = np.float32(quant_of(words, form, column, lane) - ZEROS[form])
                out[block * COLUMNS + column] = scale * code + minimum


@exactly
def quant_of(words: Any, form: int, column: int, lane: int) -> int:
    """The quant of a column in a block's words: see `Layout`."""
    quad, byte = column // 4, column % 4 * 8
    if BITS[form] == 8:
        return words[quad * ROWS + lane] >> byte & 255
    code = words[quad // 2 * ROWS + lane] >> byte + quad % 2 * 4 & 15
    upper = UPPER[form]
    if upper:
        at = quad * upper
        code |= (words[(COLUMNS // 8 + at // 8) * ROWS + lane] >> byte + at % 8 & (1 << upper) - 1) << 4
    return code


@exactly
def number_of(form: int, tile: int, numbers: int, which: int, lane: int, minimum: int) -> Any:
    """A scale or minimum of a block, the one `which` among its `numbers`."""
    at = which * ROWS + lane
    if BLOCKS[form] == 1:
        return real(carray(pointer(numbers), at + 1, np.int16)[at])
    if SIGNED[form]:
        whole = np.float32(carray(pointer(numbers), at + 1, np.int8)[at])
    else:
        whole = np.float32(carray(pointer(numbers), at + 1, np.uint8)[at])
    super_scales = tile + BLOCKS[form] * BLOCK_SIZES[form]
    at = minimum * ROWS + lane
    return whole * real(carray(pointer(super_scales), at + 1, np.int16)[at])


@intrinsic
def real(typing: Any, value: Any) -> Any:
    """A number in float32; an int16 has the bits of a float16."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        if signature.args[0] == types.float32:
            return arguments[0]
        one = ir.VectorType(ir.IntType(16), 1)
        first = ir.IntType(32)(0)
        bits = builder.insert_element(ir.Constant(one, ir.Undefined), arguments[0], first)
        return builder.extract_element(float16(builder, bits, HALF), first)

    return types.float32(value), code


class Block(NamedTuple):
    """The address of 32 columns of sixteen rows, and that of their scales' super_scales, if there are any."""

    begin: Any
    super_scales: Any


def block_at(builder: Any, layout: Layout, tiles: Any, which: Any) -> Block:
    """The block of 32 columns number `which` after the first tile."""
    size = layout.block.itemsize
    if layout.blocks == 1:
        return Block(builder.gep(tiles, [builder.mul(which, INDEX(size))]), None)
    shared = builder.udiv(which, INDEX(layout.blocks))
    tile = builder.gep(tiles, [builder.mul(shared, INDEX(layout.size))])
    inside = builder.mul(builder.urem(which, INDEX(layout.blocks)), INDEX(size))
    return Block(builder.gep(tile, [inside]), builder.gep(tile, [INDEX(layout.blocks * size)]))


def number(
    builder: Any, layout: Layout, block: Block, which: int, part: int, *, minimum: bool, lanes: int,
    direct: bool
) -> Any:  # fmt: skip
    """The scales, or minima, of `lanes` rows in float32. `direct`: see `float16`."""
    size, quants = np.dtype(layout.number).itemsize, COLUMNS * layout.bits // 32 * ROWS * 4
    place = quants + size * ((which + layout.scales * minimum) * ROWS + part)
    place = builder.gep(block.begin, [INDEX(place)])

    def halves(place: Any) -> Any:
        kind = ir.VectorType(ir.IntType(16), lanes)
        bits = builder.load(builder.bitcast(place, kind.as_pointer()), align=2)
        return float16(builder, bits, direct)

    if layout.blocks == 1:
        return halves(place)
    whole = builder.load(builder.bitcast(place, ir.VectorType(ir.IntType(8), lanes).as_pointer()), align=1)
    widen = builder.sext if layout.number is np.int8 else builder.zext
    whole = builder.sitofp(widen(whole, ir.VectorType(ir.IntType(32), lanes)), ir.VectorType(REAL, lanes))
    return builder.fmul(whole, halves(builder.gep(block.super_scales, [INDEX(2 * (ROWS * minimum + part))])))


def float16(builder: Any, bits: Any, direct: bool) -> Any:
    """Float16 bits as float32 numbers. `direct`: the processor converts them."""
    lanes = bits.type.count
    reals, words = ir.VectorType(REAL, lanes), ir.VectorType(ir.IntType(32), lanes)
    if direct:
        return builder.fpext(builder.bitcast(bits, ir.VectorType(ir.HalfType(), lanes)), reals)

    def constant(value: int) -> Any:
        return ir.Constant(words, [value] * lanes)

    # The bits, shifted to their place in float32, are 2⁻¹¹² times the number. Infinities and NaN have the
    # largest exponent.
    wide = builder.zext(bits, words)
    sign = builder.and_(builder.shl(wide, constant(16)), constant(0x80000000))
    rest = builder.and_(builder.shl(wide, constant(13)), constant(0x0FFFE000))
    rest = builder.fmul(builder.bitcast(rest, reals), ir.Constant(reals, [2.0**112] * lanes))
    rest = builder.bitcast(rest, words)
    no_number = builder.icmp_unsigned("==", builder.and_(wide, constant(0x7C00)), constant(0x7C00))
    rest = builder.select(no_number, builder.or_(rest, constant(0x7F800000)), rest)
    return builder.bitcast(builder.or_(sign, rest), reals)


look_up_row = outlined(look_up_packed, PackedRows(CENTRED, 0, 0, 0), 0, examples.WEIGHT[0])
