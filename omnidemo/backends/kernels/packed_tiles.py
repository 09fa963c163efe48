"""The innermost tiles of products with packed weights, as LLVM code, which numba cannot express: codes are
read from records, become numbers in registers, and are multiplied. `packed_gemm.py` calls them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba.core import cgutils

from omnidemo.backends import processor
from omnidemo.backends.kernels import gemm
from omnidemo.backends.kernels.gemm import BYTE, INDEX, LANES, REAL, REALS, WORDS, everywhere, spread
from omnidemo.backends.packed_forms import COLUMNS, ROWS, Layout

MOST = 8 if gemm.WIDE else 4  # rows of a strip
PAIRED = 4 if gemm.WIDE else 0  # rows of a strip up to which two records are taken in at once
HALF = processor.has("f16c")  # whether the processor reads float16
PARTS = range(0, ROWS, LANES)  # where the vectors begin that sixteen rows are


def tile(module: Any, name: str, layout: Layout, count: int) -> Any:
    """A function that computes sixteen columns of `out` for `count` rows of x."""
    function, builder = gemm._function(module, name, BYTE, INDEX, *[BYTE] * 3, *[INDEX] * 3)
    if builder is None:
        return function
    records, blocks, *arrays = function.args
    rows = [
        [builder.gep(arrays[which], [builder.mul(INDEX(row), arrays[which + 3])]) for row in range(count)]
        for which in range(3)
    ]
    zero = ir.Constant(REALS, None)
    # Two records at once for few rows: there the chain of dependent sums takes longest.
    together = 2 if layout.scales == 1 and count <= PAIRED else 1
    totals, *sums = (
        [[cgutils.alloca_once_value(builder, zero) for _ in PARTS] for _ in range(count)]
        for _ in range(1 + together)
    )

    def add(into: list[list[Any]], values: list[Any], numbers: list[Any]) -> None:
        """into[row][part] += value of the part · number of the row."""
        for row, number in enumerate(numbers):
            for part, value in enumerate(values):
                builder.store(
                    gemm._multiply_add(builder, value, number, builder.load(into[row][part])), into[row][part]
                )

    def multiply(first: Any, which: int) -> None:
        """Add `which` records from `first` on: each record's sums by themselves, totals in their order."""
        blocks = [builder.add(first, INDEX(more)) for more in range(which)]
        each = [block_at(builder, layout, records, block) for block in blocks]
        for record in each:
            gemm._fetch(builder, builder.gep(record.begin, [INDEX(gemm.AHEAD)]), layout.block.itemsize)
        for half in range(layout.scales):
            columns = COLUMNS // layout.scales
            for place in (place for into in sums[:which] for row in into for place in row):
                builder.store(zero, place)
            begin, end = (INDEX((half + end) * columns // layout.each) for end in (0, 1))
            with cgutils.for_range_slice(builder, begin, end, INDEX(1), intp=INDEX, inc=True) as (word, _):
                words = [builder.add(builder.mul(block, INDEX(layout.words)), word) for block in blocks]
                places = [builder.mul(word, INDEX(4 * layout.each)) for word in words]
                decoded = [
                    [_codes(builder, layout, record.begin, word, part, layout.centre) for part in PARTS]
                    for record in each
                ]
                for column in range(layout.each):
                    for into, codes, place in zip(sums, decoded, places, strict=False):
                        at = builder.add(place, INDEX(4 * column))
                        add(
                            into,
                            [of_part[column] for of_part in codes],
                            [spread(builder, builder.gep(row, [at])) for row in rows[0]],
                        )
            for into, block, record in zip(sums, blocks, each, strict=False):
                scales = [number(builder, layout, record, half, part) for part in PARTS]
                for row in range(count):
                    for part, scale in enumerate(scales):
                        total = gemm._multiply_add(
                            builder, builder.load(into[row][part]), scale, builder.load(totals[row][part])
                        )
                        builder.store(total, totals[row][part])
                if layout.minima:
                    minima = [number(builder, layout, record, half, part, minimum=True) for part in PARTS]
                    centre = ir.Constant(REALS, [float(layout.centre)] * LANES)
                    minima = [
                        gemm._multiply_add(builder, centre, *pair)
                        for pair in zip(scales, minima, strict=True)
                    ]
                    at = builder.add(builder.mul(block, INDEX(4 * layout.scales)), INDEX(4 * half))
                    add(totals, minima, [spread(builder, builder.gep(row, [at])) for row in rows[1]])

    paired = builder.sub(blocks, builder.urem(blocks, INDEX(together)))
    with cgutils.for_range_slice(builder, INDEX(0), paired, INDEX(together), intp=INDEX, inc=True) as (
        block,
        _,
    ):
        multiply(block, together)
    if together > 1:
        with cgutils.for_range_slice(builder, paired, blocks, INDEX(1), intp=INDEX, inc=True) as (block, _):
            multiply(block, 1)
    for row in range(count):
        for part, total in zip(PARTS, totals[row], strict=True):
            place = builder.bitcast(builder.gep(rows[2][row], [INDEX(4 * part)]), REALS.as_pointer())
            builder.store(builder.load(total), place, align=4)
    builder.ret_void()
    return function


def unpacked(module: Any, name: str, layout: Layout) -> Any:
    """A function that writes the weights of sixteen rows in float32."""
    function, builder = gemm._function(module, name, BYTE, INDEX, BYTE)
    if builder is None:
        return function
    records, blocks, out = function.args
    with cgutils.for_range_slice(builder, INDEX(0), blocks, INDEX(1), intp=INDEX, inc=True) as (block, _):
        record = block_at(builder, layout, records, block)
        gemm._fetch(builder, builder.gep(record.begin, [INDEX(gemm.AHEAD)]), layout.block.itemsize)
        with cgutils.for_range_slice(
            builder, INDEX(0), INDEX(layout.words), INDEX(1), intp=INDEX, inc=True
        ) as (word, _):
            at = builder.mul(
                builder.add(builder.mul(block, INDEX(layout.words)), word), INDEX(4 * ROWS * layout.each)
            )
            half = builder.udiv(word, INDEX(layout.words // layout.scales))
            for part in PARTS:
                scale, low = (
                    number(builder, layout, record, half, part, minimum=minimum) if there else None
                    for minimum, there in ((False, True), (True, layout.minima))
                )
                codes = _codes(builder, layout, record.begin, word, part, layout.zero)
                for column, values in enumerate(codes):
                    values = builder.fmul(values, scale)
                    values = values if low is None else builder.fadd(values, low)
                    place = builder.gep(out, [builder.add(at, INDEX(4 * (ROWS * column + part)))])
                    builder.store(values, builder.bitcast(place, REALS.as_pointer()), align=4)
    builder.ret_void()
    return function


def _codes(builder: Any, layout: Layout, record: Any, word: Any, part: int, zero: int) -> list[Any]:
    """The codes of a word's columns less `zero`: float32 vectors whose lanes are the rows from `part` on."""

    def constant(value: int) -> Any:
        return ir.Constant(WORDS, [value] * LANES)

    def loaded(which: Any) -> Any:
        place = builder.add(builder.mul(which, INDEX(4 * ROWS)), INDEX(4 * part))
        return gemm._load(builder, builder.gep(record, [place]), ir.IntType(32), 4)

    words, bits = loaded(word), layout.bits
    if layout.upper:  # two words of bytes, which hold four columns each
        place = builder.mul(word, INDEX(2 * layout.upper))
        upper = loaded(builder.add(INDEX(layout.words), builder.udiv(place, INDEX(8))))
        shift = builder.trunc(builder.urem(place, INDEX(8)), ir.IntType(32))
        upper = builder.lshr(upper, everywhere(builder, shift, WORDS))
        lower, high = constant(0x0F0F0F0F), constant((2**layout.upper - 1) * 0x10101010)
        first = builder.or_(builder.and_(words, lower), builder.and_(builder.shl(upper, constant(4)), high))
        upper = builder.shl(upper, constant(4 - layout.upper))
        second = builder.or_(builder.and_(builder.lshr(words, constant(4)), lower), builder.and_(upper, high))
        places = [((first, second)[column // 4], column % 4 * 8) for column in range(8)]
    elif layout.each == 8:
        places = [(words, column % 4 * 8 + column // 4 * 4) for column in range(8)]
    else:
        places = [(words, column * 8) for column in range(4)]

    def decoded(words: Any, at: int) -> Any:
        """Read the bits as the number 2ⁿ + code and subtract 2ⁿ: most places then need no shift."""
        if at + bits > 23:
            words, at = builder.lshr(words, constant(16)), at - 16
        words = builder.or_(builder.and_(words, constant((2**bits - 1) << at)), constant((150 - at) << 23))
        return builder.fsub(
            builder.bitcast(words, REALS), ir.Constant(REALS, [2.0 ** (23 - at) + zero] * LANES)
        )

    return [decoded(*place) for place in places]


class Block(NamedTuple):
    """The address of 32 columns of sixteen rows, and that of their scales' factors, if there are any."""

    begin: Any
    factors: Any


def block_at(builder: Any, layout: Layout, records: Any, which: Any) -> Block:
    """The block of 32 columns number `which` after the first record."""
    size = layout.block.itemsize
    if layout.blocks == 1:
        return Block(builder.gep(records, [builder.mul(which, INDEX(size))]), None)
    shared = builder.udiv(which, INDEX(layout.blocks))
    record = builder.gep(records, [builder.mul(shared, INDEX(layout.size))])
    inside = builder.mul(builder.urem(which, INDEX(layout.blocks)), INDEX(size))
    return Block(builder.gep(record, [inside]), builder.gep(record, [INDEX(layout.blocks * size)]))


def number(
    builder: Any, layout: Layout, block: Block, which: Any, part: int, *, minimum: bool = False,
    lanes: int = LANES, direct: bool = HALF,
) -> Any:  # fmt: skip
    """The scales, or minima, of `lanes` rows in float32. `direct`: see `float16`."""
    which = INDEX(which) if isinstance(which, int) else which
    which = builder.add(which, INDEX(layout.scales * minimum))
    size = np.dtype(layout.number).itemsize
    place = builder.add(
        builder.mul(which, INDEX(size * ROWS)),
        INDEX(COLUMNS * layout.bits // 32 * ROWS * 4 + size * part),
    )
    place = builder.gep(block.begin, [place])

    def halves(place: Any) -> Any:
        kind = ir.VectorType(ir.IntType(16), lanes)
        bits = builder.load(builder.bitcast(place, kind.as_pointer()), align=2)
        return float16(builder, bits, direct)

    if layout.blocks == 1:
        return halves(place)
    whole = builder.load(builder.bitcast(place, ir.VectorType(ir.IntType(8), lanes).as_pointer()), align=1)
    widen = builder.sext if layout.number is np.int8 else builder.zext
    whole = builder.sitofp(widen(whole, ir.VectorType(ir.IntType(32), lanes)), ir.VectorType(REAL, lanes))
    return builder.fmul(whole, halves(builder.gep(block.factors, [INDEX(2 * (ROWS * minimum + part))])))


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
