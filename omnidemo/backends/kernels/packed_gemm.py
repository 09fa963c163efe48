"""Products of a few rows with packed weights, which are unpacked in registers, once for all rows of a strip.

A weight is what it is in float32, and products are added up as those of float32 matrices are. With AVX-512 a code is looked up in a table
of the 16 values that its block has, which takes one instruction for 16 weights; other processors widen, multiply and add.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils

from omnidemo.backends.kernels import gemm
from omnidemo.backends.kernels.gemm import FIVE, FOUR, LANES, MOST, ONE, SIX, THREE, TWO, WIDE, Array, intrinsic, multiply
from omnidemo.backends.kernels.rows_kernel import append, int64
from omnidemo.backends.packed_forms import BYTES, COLUMNS, NIBBLES, ROWS, SIXTEENS, SIZES

AHEAD = 4096  # bytes between what is multiplied and what is fetched
HELD = 16 if WIDE else 8  # sums that fit into the registers beside what weights are made of; for more, a record is read twice
PANEL = 16  # rows of a matrix that are unpacked at once for a prompt: with the inputs they stay in the second cache
SIZE_OF_NIBBLES, SIZE_OF_BYTES, SIZE_OF_SIXTEENS = (SIZES[form] for form in (NIBBLES, BYTES, SIXTEENS))
OF_NIBBLES, OF_BYTES, OF_SIXTEENS = ((0,) * form for form in (NIBBLES, BYTES, SIXTEENS))  # forms, as types
# Weights are made and added up as written, so the compiler may not turn sums and products around, as in other kernels.
exactly: Any = njit(cache=True, error_model="numpy")


class Records(NamedTuple):
    """Some rows of a packed matrix, the first of them a multiple of 4: their form, where their records begin, how many rows there are,
    and how many records make up four of them."""

    form: int
    address: int
    rows: int
    blocks: int


@exactly
def multiply_packed(given: Records, x: Array, out: Array) -> None:
    """out [m, n] = x [m, k] · Wᵀ. The rows of `out` may lie apart."""
    step = given.blocks * record_size(given.form)
    count, whole = len(x), given.rows - given.rows % ROWS
    if count == 0:  # of a prompt whose rows nobody needs
        return
    if count > 2 * MOST:
        scratch = np.empty((PANEL, given.blocks * COLUMNS), np.float32)
        for o in range(0, given.rows, PANEL):
            size = min(PANEL, given.rows - o)
            for row in range(0, size, ROWS):
                unpack_group(given.form, given.address + (o + row) // ROWS * step, given.blocks, scratch[row : row + ROWS])
            multiply(scratch[:size], x, out[:, o : o + size])
        return
    first = count if count <= MOST else (count + 1) // 2
    for o in range(0, whole, ROWS):
        strips(given, given.address + o // ROWS * step, x, first, out, o)
    if whole < given.rows:
        rest = np.empty((count, ROWS + 1), np.float32)
        strips(given, given.address + whole // ROWS * step, x, first, rest[:, :ROWS], int64(0))
        for j in range(count):
            for o in range(whole, given.rows):
                out[j, o] = rest[j, o - whole]


@exactly
def strips(given: Records, address: int, x: Array, first: int, out: Array, column: int) -> None:
    """Four columns of `out`, for the `first` rows of x and then for the others."""
    strip(given, address, x[:first], out[:first], column)
    if first < len(x):
        strip(given, address, x[first:], out[first:], column)


@exactly
def strip(given: Records, address: int, x: Array, out: Array, column: int) -> None:
    if given.form == NIBBLES:
        strip_of(OF_NIBBLES, address, given.blocks, x, out, column)
    elif given.form == BYTES:
        strip_of(OF_BYTES, address, given.blocks, x, out, column)
    else:
        strip_of(OF_SIXTEENS, address, given.blocks, x, out, column)


@exactly
def strip_of(form: Any, address: int, blocks: int, x: Array, out: Array, column: int) -> None:
    size = len(x)
    if size == 1:
        tile(form, address, blocks, x, ONE, out, column)
    elif size == 2:
        tile(form, address, blocks, x, TWO, out, column)
    elif size == 3:
        tile(form, address, blocks, x, THREE, out, column)
    elif size == 4:
        tile(form, address, blocks, x, FOUR, out, column)
    elif size == 5:
        tile(form, address, blocks, x, FIVE, out, column)
    else:
        tile(form, address, blocks, x, SIX, out, column)


@exactly
def unpack_group(form: int, address: int, blocks: int, out: Array) -> None:
    """The four rows whose records begin at an address, in float32 [4, k]."""
    if form == NIBBLES:
        unpack(OF_NIBBLES, address, blocks, out)
    elif form == BYTES:
        unpack(OF_BYTES, address, blocks, out)
    else:
        unpack(OF_SIXTEENS, address, blocks, out)


@exactly
def unpack_row(given: Records, row: int, out: Array) -> None:
    """One row of a matrix, in float32 [k]."""
    group = np.empty((ROWS, given.blocks * COLUMNS), np.float32)
    unpack_group(given.form, given.address + row // ROWS * given.blocks * record_size(given.form), given.blocks, group)
    append(out, int64(0), group[row % ROWS])


@exactly
def record_size(form: int) -> int:
    return SIZE_OF_NIBBLES if form == NIBBLES else SIZE_OF_BYTES if form == BYTES else SIZE_OF_SIXTEENS


@intrinsic
def tile(typing: Any, form: Any, address: Any, blocks: Any, x: Any, rows: Any, out: Any, column: Any) -> Any:
    """out [r, column … column + 3] = x [r, k] · Wᵀ for the four rows of W at an address, and as many rows as `rows` has entries."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        inputs, outputs = (context.make_array(signature.args[i])(context, builder, arguments[i]) for i in (3, 5))
        kind, count, index = form.count, signature.args[4].count, arguments[2].type

        def at(array: Any, row: int, column: Any) -> Any:
            stride = cgutils.unpack_tuple(builder, array.strides)[0]
            offset = builder.add(builder.mul(index(row), stride), builder.mul(column, index(4)))
            return builder.gep(builder.bitcast(array.data, cgutils.voidptr_t), [offset])

        begins = [at(inputs, row, index(0)) for row in range(count)]
        zero = ir.Constant(gemm._vector(ir.FloatType()), None)
        sums = [[cgutils.alloca_once_value(builder, zero) for _ in range(ROWS)] for _ in range(count)]
        records = builder.inttoptr(arguments[1], cgutils.voidptr_t)
        together = ROWS if ROWS * count <= HELD else ROWS // 2
        for first in range(0, ROWS, together):
            with cgutils.for_range_slice(builder, index(0), arguments[2], index(1), intp=index, inc=True) as (i, _):
                record = builder.gep(records, [builder.mul(i, index(SIZES[kind]))])
                if first == 0:
                    gemm._fetch(builder, builder.gep(record, [index(AHEAD)]), SIZES[kind])
                for lane in range(0, COLUMNS, LANES):
                    place = builder.add(builder.mul(i, index(4 * COLUMNS)), index(4 * lane))
                    values = [gemm._load(builder, builder.gep(begin, [place]), ir.FloatType(), 4) for begin in begins]
                    for o in range(first, first + together):
                        some = _values(builder, kind, record, o, lane)
                        for j, value in enumerate(values):
                            builder.store(gemm._multiply_add(builder, some, value, builder.load(sums[j][o])), sums[j][o])
        for j in range(count):
            place = builder.bitcast(at(outputs, j, arguments[6]), ir.VectorType(ir.FloatType(), 4).as_pointer())
            builder.store(gemm._added_up(builder, [builder.load(one) for one in sums[j]]), place, align=4)
        return context.get_dummy_value()

    return types.void(form, address, blocks, x, rows, out, column), code


@intrinsic
def unpack(typing: Any, form: Any, address: Any, blocks: Any, out: Any) -> Any:
    """The four rows of W at an address, into out [4, k]."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[3])(context, builder, arguments[3])
        begin, stride = builder.bitcast(array.data, cgutils.voidptr_t), cgutils.unpack_tuple(builder, array.strides)[0]
        kind, index = form.count, arguments[2].type
        records = builder.inttoptr(arguments[1], cgutils.voidptr_t)
        with cgutils.for_range_slice(builder, index(0), arguments[2], index(1), intp=index, inc=True) as (i, _):
            record = builder.gep(records, [builder.mul(i, index(SIZES[kind]))])
            gemm._fetch(builder, builder.gep(record, [index(AHEAD)]), SIZES[kind])
            for o in range(ROWS):
                for lane in range(0, COLUMNS, LANES):
                    offset = builder.add(builder.mul(index(o), stride), builder.mul(i, index(4 * COLUMNS)))
                    place = builder.gep(begin, [builder.add(offset, index(4 * lane))])
                    place = builder.bitcast(place, gemm._vector(ir.FloatType()).as_pointer())
                    builder.store(_values(builder, kind, record, o, lane), place, align=4)
        return context.get_dummy_value()

    return types.void(form, address, blocks, out), code


def _values(builder: Any, form: int, record: Any, row: int, lane: int) -> Any:
    """LANES weights of a record's row, from the column `lane` on."""
    byte, word, real = ir.IntType(8), gemm._vector(ir.IntType(32)), gemm._vector(ir.FloatType())
    index = ir.IntType(64)

    def number(place: int) -> Any:
        """A float32 of the record, in all lanes."""
        one = builder.load(builder.bitcast(builder.gep(record, [index(place)]), ir.FloatType().as_pointer()), align=4)
        first = builder.insert_element(ir.Constant(real, ir.Undefined), one, ir.IntType(32)(0))
        return builder.shuffle_vector(first, ir.Constant(real, ir.Undefined), ir.Constant(word, [0] * LANES))

    if form == NIBBLES:
        codes = gemm._load(builder, builder.gep(record, [index(row * 16 + lane % 16)]), byte, 1)
        scale, minimum = number(ROWS * 16 + 4 * row), number(ROWS * 20 + 4 * row)
        if WIDE:  # only the low four bits of each number say which entry of the table is taken
            table = gemm._multiply_add(builder, ir.Constant(real, [float(i) for i in range(16)]), scale, minimum)
            wide = builder.zext(codes, word)
            if lane >= 16:
                wide = builder.lshr(wide, ir.Constant(word, [4] * LANES))
            kind = ir.FunctionType(real, [real, word])
            return builder.call(cgutils.get_or_insert_function(builder.module, kind, "llvm.x86.avx512.permvar.sf.512"), [table, wide])
        bytes_each, cut = gemm._vector(byte), (builder.lshr, 4) if lane >= 16 else (builder.and_, 15)
        codes = cut[0](codes, ir.Constant(bytes_each, [cut[1]] * LANES))
        return gemm._multiply_add(builder, builder.uitofp(builder.zext(codes, word), real), scale, minimum)
    codes = gemm._load(builder, builder.gep(record, [index(row * COLUMNS + lane)]), byte, 1)
    value, after = builder.sitofp(builder.sext(codes, word), real), ROWS * COLUMNS
    if form == BYTES:
        return builder.fmul(value, number(after + 4 * row))
    half = 8 * row + 4 * (lane // 16)
    return gemm._multiply_add(builder, value, number(after + half), number(after + 8 * ROWS + half))
