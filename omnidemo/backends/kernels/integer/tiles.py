"""The inner loops of the int8 GEMM as LLVM IR: some rows of x times one column of weight tiles.
`arithmetic/integer.py` defines what they compute; `products.py` calls them.

Quantized activations lie in blocks: 32 quants, the scale, the sum of the quants in float32, and the sums of
either half, which layouts with a centred zero need.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils

from omnidemo.backends.arithmetic.integer import LEAST, TOP
from omnidemo.backends.kernels.gemm import AHEAD, BYTE, INDEX, REAL, _fetch, _function
from omnidemo.backends.kernels.integer.sets import (
    I32,
    Instructions,
    call,
    constant,
    lanes_of,
    quads,
    spread,
)
from omnidemo.backends.kernels.packed_blocks import Block, block_at, number
from omnidemo.backends.packed_forms import COLUMNS, ROWS, Layout

# where the numbers of a block begin, behind its quants, and bytes of a block
SCALE, SUM, HALVES, BLOCK = COLUMNS, COLUMNS + 4, COLUMNS + 8, COLUMNS + 16


def tile_product(module: Any, name: str, layout: Layout, count: int, way: Instructions) -> Any:
    """A function that computes sixteen columns of `out` for `count` rows of x. Its arguments: tiles, their
    number, x, `out`, and the bytes from one row of x, and of `out`, to the next."""
    function, builder = _function(module, name, BYTE, INDEX, BYTE, BYTE, INDEX, INDEX)
    if builder is None:
        return function
    tiles, blocks, x, out, step, apart = function.args
    rows, to = (
        [builder.gep(place, [builder.mul(INDEX(row), each)]) for row in range(count)]
        for place, each in ((x, step), (out, apart))
    )
    parts = list(range(0, ROWS, way.lanes))
    # All sixteen lanes at once where the sums of so few rows fit into the registers.
    together = len(parts) if count <= 2 else 1
    for first in range(0, len(parts), together):
        some = parts[first : first + together]
        totals = [
            [cgutils.alloca_once_value(builder, ir.Constant(lanes_of(REAL, way.lanes), None)) for _ in some]
            for _ in rows
        ]
        with cgutils.for_range_slice(builder, INDEX(0), blocks, INDEX(1), intp=INDEX, inc=True) as (at, _):
            tile = block_at(builder, layout, tiles, at)
            if first == 0:
                _fetch(builder, builder.gep(tile.begin, [INDEX(AHEAD)]), layout.block.itemsize)
            given = [builder.gep(row, [builder.mul(at, INDEX(BLOCK))]) for row in rows]
            _add_block(builder, layout, way, tile, given, some, totals)
        for place, row in zip(to, totals, strict=True):
            for part, total in zip(some, row, strict=True):
                where = builder.gep(place, [INDEX(4 * part)])
                value = builder.load(total)
                builder.store(value, builder.bitcast(where, value.type.as_pointer()), align=4)
    builder.ret_void()
    return function


def _add_block(
    builder: Any,
    layout: Layout,
    way: Instructions,
    tile: Block,
    x: list[Any],
    parts: list[int],
    totals: Any,
) -> None:
    """Add the products of 32 columns with a block of each row of x to the totals [rows][parts]."""
    lanes, make = way.lanes, way.sums
    reals = lanes_of(REAL, lanes)
    found: list[list[Any]] = [[None] * len(parts) for _ in x]
    for scale in range(layout.scales):
        sums = [[make(builder, lanes, layout) for _ in parts] for _ in x]
        for quad in quads(layout, scale):
            quants = [_quants(builder, layout, tile.begin, quad, part, lanes) for part in parts]
            for row, given in zip(sums, x, strict=True):
                some = spread(builder, _loaded(builder, given, 4 * quad, I32), lanes)
                for one, code in zip(row, quants, strict=True):
                    one.add(code, some)
        scales, minima = (
            [
                number(builder, layout, tile, scale, part, minimum=minimum, lanes=lanes, direct=way.halves)
                for part in (parts if layout.minima or not minimum else ())
            ]
            for minimum in (False, True)
        )
        for at, given in enumerate(x):
            less = None
            if layout.zero and not sums[at][0].centred:
                less = spread(builder, _less(builder, layout, given, scale), lanes)
            if layout.minima:
                of_all = spread(builder, _sum(builder, layout, given, scale), lanes)
            for part in range(len(parts)):
                total = sums[at][part].value()
                total = total if less is None else builder.sub(total, less)
                more = builder.fmul(builder.sitofp(total, reals), scales[part])
                before = found[at][part]
                more = more if before is None else builder.fadd(before, more)
                if layout.minima:
                    more = builder.fadd(more, builder.fmul(of_all, minima[part]))
                found[at][part] = more
    for given, row, places in zip(x, found, totals, strict=True):
        own = spread(builder, _loaded(builder, given, SCALE, REAL), lanes)
        for more, place in zip(row, places, strict=True):
            builder.store(builder.fadd(builder.load(place), builder.fmul(more, own)), place)


def _loaded(builder: Any, place: Any, offset: int, kind: Any, align: int = 4) -> Any:
    place = builder.gep(place, [INDEX(offset)])
    return builder.load(builder.bitcast(place, kind.as_pointer()), align=align)


def _less(builder: Any, layout: Layout, x: Any, scale: int) -> Any:
    """The layout's zero · the sum of a scale's activations."""
    some = range(2) if layout.scales == 1 else [scale]
    halves = [_loaded(builder, x, HALVES + 4 * half, I32) for half in some]
    return builder.mul(builder.add(*halves) if len(halves) > 1 else halves[0], I32(layout.zero))


def _sum(builder: Any, layout: Layout, x: Any, scale: int) -> Any:
    """The sum of a scale's activations in float32."""
    if layout.scales == 1:
        return _loaded(builder, x, SUM, REAL)
    return builder.sitofp(_loaded(builder, x, HALVES + 4 * scale, I32), REAL)


def _quants(builder: Any, layout: Layout, tile: Any, quad: int, part: int, lanes: int) -> Any:
    """The quants of four columns: a word for each row from `part` on."""
    words = lanes_of(I32, lanes)

    def taken(place: tuple[int, int], bits: int, to: int) -> Any:
        """`bits` bits of each byte, moved to bit `to`."""
        word, shift = place
        found = _loaded(builder, tile, 4 * (ROWS * word + part), words)
        if shift > to:
            found = builder.lshr(found, constant(words, shift - to))
        elif shift < to:
            found = builder.shl(found, constant(words, to - shift))
        mask = ((1 << bits) - 1 << to) * 0x01010101
        return found if bits == 8 else builder.and_(found, constant(words, mask))

    if not layout.upper:
        return taken(layout.place(quad), layout.bits, 0)
    return builder.or_(taken(layout.place(quad), 4, 0), taken(layout.upper_place(quad), layout.upper, 4))


def quantize_block(builder: Any, x: Any, out: Any) -> None:
    """Quantize 32 columns of a row to a block."""
    top = REAL(float(TOP))
    reals, words = lanes_of(REAL, COLUMNS), lanes_of(I32, COLUMNS)
    values = _loaded(builder, x, 0, reals)
    # the bits of non-negative numbers sort like the numbers
    bits = builder.and_(builder.bitcast(values, words), constant(words, 0x7FFFFFFF))
    most = builder.bitcast(call(builder, f"llvm.vector.reduce.umax.v{COLUMNS}i32", I32, bits), REAL)
    finite = builder.fcmp_ordered("<", most, REAL(float("inf")))
    there = builder.and_(finite, builder.fcmp_ordered(">=", most, REAL(LEAST)))
    none = builder.select(finite, REAL(0.0), REAL(float("nan")))
    scale = builder.select(there, builder.fdiv(most, top), none)
    factor = builder.select(there, builder.fdiv(top, most), REAL(0.0))
    # Adding 1.5 · 2²³ rounds to a whole number, ties to even, in the lowest bits.
    large = constant(reals, 1.5 * 2.0**23)
    near = builder.fadd(builder.fmul(values, spread(builder, factor, COLUMNS)), large)
    quants = builder.sub(builder.bitcast(near, words), builder.bitcast(large, words))
    quants = builder.select(spread(builder, there, COLUMNS), quants, ir.Constant(words, None))
    small = builder.trunc(quants, lanes_of(ir.IntType(8), COLUMNS))
    builder.store(small, builder.bitcast(out, small.type.as_pointer()), align=4)
    halves = []
    for begin in (0, COLUMNS // 2):
        lanes = ir.Constant(lanes_of(I32, COLUMNS // 2), list(range(begin, begin + COLUMNS // 2)))
        half = builder.shuffle_vector(quants, ir.Constant(words, ir.Undefined), lanes)
        halves.append(call(builder, f"llvm.vector.reduce.add.v{COLUMNS // 2}i32", I32, half))
    total = builder.sitofp(builder.add(*halves), REAL)
    for offset, value in ((SCALE, scale), (SUM, total), (HALVES, halves[0]), (HALVES + 4, halves[1])):
        place = builder.gep(out, [INDEX(offset)])
        builder.store(value, builder.bitcast(place, value.type.as_pointer()), align=4)
