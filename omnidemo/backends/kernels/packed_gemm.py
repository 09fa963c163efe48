"""Products of a few rows with packed weights, which are unpacked in registers, once for all rows of a strip.

Sixteen columns of the result are the lanes of a vector, and a number of x is spread to all of them where it
is multiplied. So what is unpacked is a vector of codes, sums end where they are wanted, and scales are
multiplied with the sum of 32 columns instead of with each.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from llvmlite import binding, ir
from numba import njit, types
from numba.core import cgutils

from omnidemo.backends.call_layout import Array
from omnidemo.backends.kernels import examples, gemm
from omnidemo.backends.kernels.gemm import BYTE, INDEX, LANES, REAL, REALS, WORDS, everywhere, spread
from omnidemo.backends.kernels.outlined import intrinsic, outlined
from omnidemo.backends.kernels.rows_kernel import append, compiled, int64
from omnidemo.backends.packed_forms import COLUMNS, FLOAT32, LAYOUTS, PACKED, ROWS, Layout

MOST = 8 if gemm.WIDE else 4  # rows of a strip
PAIRED = 4 if gemm.WIDE else 0  # rows of a strip up to which two records are taken in at once
# rows for which weights are unpacked in each strip anew; for more, once, into memory that stays in the second
# cache
FEW = 2 * MOST
PANEL = 2**19  # bytes of that memory, unless sixteen rows of W take more
HALF = binding.get_host_cpu_features().get("f16c", False)  # whether the processor reads float16
PLAIN = Layout(32, 0, 0, False, np.float32)  # of what is unpacked
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
                        _tile(builder.module, f"omnidemo_tile_{number}_{count}", layout, count), given
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
                builder.call(_unpacked(builder.module, f"omnidemo_unpacked_{number}", layout), given)
                builder.branch(after)
        builder.position_at_end(after)
        return context.get_dummy_value()

    return types.void(form, address, blocks, out), code


PARTS = range(0, ROWS, LANES)  # where the vectors begin that sixteen rows are


def _tile(module: Any, name: str, layout: Layout, count: int) -> Any:
    """A function that makes sixteen columns of `out` for so many rows of x."""
    function, builder = gemm._function(module, name, BYTE, INDEX, BYTE, BYTE, BYTE, INDEX, INDEX, INDEX)
    if builder is None:
        return function
    records, blocks, *arrays = function.args
    rows = [
        [builder.gep(arrays[which], [builder.mul(INDEX(row), arrays[which + 3])]) for row in range(count)]
        for which in range(3)
    ]
    zero = ir.Constant(REALS, None)
    # Two records at once where the rows are so few that sums, of which each waits for the one before, would
    # take longer than all else.
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
        """Take so many records in, from one on: the sums of each by itself, the totals in their order."""
        blocks = [builder.add(first, INDEX(one)) for one in range(which)]
        each = [builder.gep(records, [builder.mul(block, INDEX(layout.size))]) for block in blocks]
        for record in each:
            gemm._fetch(builder, builder.gep(record, [INDEX(gemm.AHEAD)]), layout.size)
        for half in range(max(1, layout.scales)):
            columns = COLUMNS // max(1, layout.scales)
            for one in [one for into in sums[:which] for own in into for one in own] if layout.scales else ():
                builder.store(zero, one)
            begin, end = (INDEX((half + end) * columns // layout.each) for end in (0, 1))
            with cgutils.for_range_slice(builder, begin, end, INDEX(1), intp=INDEX, inc=True) as (word, _):
                words = [builder.add(builder.mul(block, INDEX(layout.words)), word) for block in blocks]
                places = [builder.mul(one, INDEX(4 * layout.each)) for one in words]
                decoded = [
                    [_codes(builder, layout, record, word, part, layout.centre) for part in PARTS]
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
            for into, block, record in zip(sums, blocks, each, strict=False) if layout.scales else ():
                scales = [_number(builder, layout, record, half, part) for part in PARTS]
                for row in range(count):
                    for part, scale in enumerate(scales):
                        total = gemm._multiply_add(
                            builder, builder.load(into[row][part]), scale, builder.load(totals[row][part])
                        )
                        builder.store(total, totals[row][part])
                if layout.minima:
                    minima = [_number(builder, layout, record, layout.scales + half, part) for part in PARTS]
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
        for part, total in zip(PARTS, (totals if layout.scales else sums[0])[row], strict=True):
            place = builder.bitcast(builder.gep(rows[2][row], [INDEX(4 * part)]), REALS.as_pointer())
            builder.store(builder.load(total), place, align=4)
    builder.ret_void()
    return function


def _unpacked(module: Any, name: str, layout: Layout) -> Any:
    """A function that writes sixteen rows in float32."""
    function, builder = gemm._function(module, name, BYTE, INDEX, BYTE)
    if builder is None:
        return function
    records, blocks, out = function.args
    with cgutils.for_range_slice(builder, INDEX(0), blocks, INDEX(1), intp=INDEX, inc=True) as (block, _):
        record = builder.gep(records, [builder.mul(block, INDEX(layout.size))])
        gemm._fetch(builder, builder.gep(record, [INDEX(gemm.AHEAD)]), layout.size)
        with cgutils.for_range_slice(
            builder, INDEX(0), INDEX(layout.words), INDEX(1), intp=INDEX, inc=True
        ) as (word, _):
            at = builder.mul(
                builder.add(builder.mul(block, INDEX(layout.words)), word), INDEX(4 * ROWS * layout.each)
            )
            half = builder.udiv(word, INDEX(layout.words // layout.scales))
            for part in PARTS:
                scale = _number(builder, layout, record, half, part)
                low = (
                    _number(builder, layout, record, builder.add(half, INDEX(layout.scales)), part)
                    if layout.minima
                    else None
                )
                for column, codes in enumerate(_codes(builder, layout, record, word, part, layout.zero)):
                    values = builder.fmul(codes, scale)
                    values = builder.fadd(values, low) if layout.minima else values
                    place = builder.gep(out, [builder.add(at, INDEX(4 * (ROWS * column + part)))])
                    builder.store(values, builder.bitcast(place, REALS.as_pointer()), align=4)
    builder.ret_void()
    return function


def _codes(builder: Any, layout: Layout, record: Any, word: Any, part: int, zero: int) -> list[Any]:
    """What a record has for the codes of a word's columns, less `zero`: float32 vectors, whose lanes are the
    rows from `part` on."""

    def constant(value: int) -> Any:
        return ir.Constant(WORDS, [value] * LANES)

    def loaded(which: Any) -> Any:
        place = builder.add(builder.mul(which, INDEX(4 * ROWS)), INDEX(4 * part))
        return gemm._load(builder, builder.gep(record, [place]), ir.IntType(32), 4)

    words, bits = loaded(word), layout.bits
    if bits == 32:
        return [builder.bitcast(words, REALS)]
    if layout.upper:  # two words of bytes, which hold every other column
        upper = loaded(
            builder.add(
                INDEX(layout.words), builder.udiv(builder.mul(word, INDEX(2 * layout.upper)), INDEX(8))
            )
        )
        shift = builder.trunc(
            builder.urem(builder.mul(word, INDEX(2 * layout.upper)), INDEX(8)), ir.IntType(32)
        )
        upper = builder.lshr(upper, everywhere(builder, shift, WORDS))
        low, high = constant(0x0F0F0F0F), constant((2**layout.upper - 1) * 0x10101010)
        even = builder.or_(builder.and_(words, low), builder.and_(builder.shl(upper, constant(4)), high))
        upper = builder.shl(upper, constant(4 - layout.upper))
        odd = builder.or_(builder.and_(builder.lshr(words, constant(4)), low), builder.and_(upper, high))
        places = [((even, odd)[column % 2], column // 2 * 8) for column in range(8)]
    else:
        places = [(words, column * bits) for column in range(layout.each)]

    def decoded(words: Any, at: int) -> Any:
        """The bits of a number 2ⁿ + code, of which 2ⁿ is taken: no instruction for what a shift would take in
        most places."""
        if at + bits > 23:
            words, at = builder.lshr(words, constant(16)), at - 16
        words = builder.or_(builder.and_(words, constant((2**bits - 1) << at)), constant((150 - at) << 23))
        return builder.fsub(
            builder.bitcast(words, REALS), ir.Constant(REALS, [2.0 ** (23 - at) + zero] * LANES)
        )

    return [decoded(*place) for place in places]


def _number(builder: Any, layout: Layout, record: Any, which: Any, part: int) -> Any:
    """A scale or minimum of as many rows as a vector has lanes, in float32."""
    which = INDEX(which) if isinstance(which, int) else which
    size = 2 if layout.number is np.float16 else 4
    place = builder.add(
        builder.mul(which, INDEX(size * ROWS)),
        INDEX(layout.size - layout.record["numbers"].itemsize + size * part),
    )
    place = builder.gep(record, [place])
    if size == 4:
        return gemm._load(builder, place, REAL, 4)
    bits = gemm._load(builder, place, ir.IntType(16), 2)
    if HALF:
        return builder.fpext(builder.bitcast(bits, ir.VectorType(ir.HalfType(), LANES)), REALS)
    # Shifted to where float32 has them, its bits are 2⁻¹¹² times the number, but for infinities and what is
    # no number.
    wide = builder.zext(bits, WORDS)
    sign = builder.and_(
        builder.shl(wide, ir.Constant(WORDS, [16] * LANES)), ir.Constant(WORDS, [0x80000000] * LANES)
    )
    rest = builder.and_(
        builder.shl(wide, ir.Constant(WORDS, [13] * LANES)), ir.Constant(WORDS, [0x0FFFE000] * LANES)
    )
    rest = builder.fmul(builder.bitcast(rest, REALS), ir.Constant(REALS, [2.0**112] * LANES))
    return builder.bitcast(builder.or_(sign, builder.bitcast(rest, WORDS)), REALS)


multiply_records = outlined(multiply_packed, Records(FLOAT32, 0, 0, 0), examples.WEIGHT, examples.ROWS)
unpack_one = outlined(unpack_row, Records(FLOAT32, 0, 0, 0), 0, examples.WEIGHT[0])
