"""GEMM of a few rows with weights in float32 or bfloat16.

If memory bandwidth is the limit, six rows take little longer than one: weights are read once for all of them,
and the next ones are prefetched. Hardware prefetch falls behind in a compute-heavy loop, and LLVM does not
vectorise a loop that contains a prefetch. So the innermost loop is emitted as LLVM IR.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numpy.typing import NDArray

from omnidemo.backends import processor
from omnidemo.backends.call_layout import Array
from omnidemo.backends.kernels import examples
from omnidemo.backends.kernels.outlined import intrinsic, outlined
from omnidemo.backends.kernels.rows_kernel import compiled, int64

Weight = NDArray[np.float32] | NDArray[np.uint16]  # the latter are bfloat16's bits

WIDE = processor.has("avx512f")
LANES = 16 if WIDE else 8  # numbers of a vector
MOST = 6 if WIDE else 3  # rows of which the sums fit into registers
TOGETHER = 3  # strips of rows that share each read of weights
AHEAD = 4096  # bytes of prefetch distance
BYTE, INDEX, REAL = cgutils.voidptr_t, ir.IntType(64), ir.FloatType()
REALS = ir.VectorType(REAL, LANES)
ONE, TWO, THREE, FOUR, FIVE, SIX = ((0,) * size for size in range(1, 7))  # numbers of rows, as types


@compiled
def multiply(weight: Weight, x: Array, out: Array) -> None:
    """out = x · Wᵀ: [m, k] · [n, k]ᵀ → [m, n], in strips of at most MOST rows of x. The rows of `out` may lie
    apart."""
    n, k = weight.shape
    even, whole, rows = n - n % 4, k - k % LANES, len(x)
    strips = (rows + MOST - 1) // MOST
    if strips <= TOGETHER:  # weights stay in L1 for all strips
        for o in range(0, even, 4):
            row = 0
            for left in range(strips, 0, -1):
                size = (rows - row + left - 1) // left
                tiles(weight, o, o + 4, x[row : row + size], whole, out[row : row + size])
                row += size
    else:  # so many rows do not stay in the first cache beside it
        row = 0
        for left in range(strips, 0, -1):
            size = (rows - row + left - 1) // left
            tiles(weight, int64(0), even, x[row : row + size], whole, out[row : row + size])
            row += size
    if whole < k or even < n:
        add_rest(weight, x, even, whole, out)


@compiled
def tiles(weight: Weight, begin: int, end: int, x: Array, whole: int, out: Array) -> None:
    """The columns begin … end − 1 of out [r, n] = x [r, k] · Wᵀ, four by four, from the first `whole` of
    x."""
    size = len(x)
    for o in range(begin, end, 4):
        if size == 1:
            tile(weight, o, x, ONE, whole, out)
        elif size == 2:
            tile(weight, o, x, TWO, whole, out)
        elif size == 3:
            tile(weight, o, x, THREE, whole, out)
        elif size == 4:
            tile(weight, o, x, FOUR, whole, out)
        elif size == 5:
            tile(weight, o, x, FIVE, whole, out)
        else:
            tile(weight, o, x, SIX, whole, out)


@compiled
def add_rest(weight: Weight, x: Array, even: int, whole: int, out: Array) -> None:
    """Add the columns that `tiles` left over."""
    n, k = weight.shape
    for j in range(len(x)):
        for o in range(0 if whole < k else even, n):
            total = out[j, o] if o < even else np.float32(0.0)
            for i in range(whole if o < even else 0, k):
                total += widened(weight, o, i) * x[j, i]
            out[j, o] = total


@intrinsic
def widened(typing: Any, weight: Any, row: Any, column: Any) -> Any:
    """A weight in float32."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        place = cgutils.get_item_pointer(
            context, builder, signature.args[0], array, [arguments[1], arguments[2]]
        )
        return _widened(builder, builder.load(place), 1)

    return types.float32(weight, types.intp, types.intp), code


@intrinsic
def tile(typing: Any, weight: Any, row: Any, x: Any, rows: Any, whole: Any, out: Any) -> Any:
    """out [r, row … row + 3] = the first `whole` columns of x [r, k] · Wᵀ, a multiple of LANES, for as
    many rows as `rows` has entries."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        arrays = [context.make_array(kind)(context, builder, given) for kind,
            given in zip(signature.args, arguments, strict=True)
                  if isinstance(kind, types.Array)]  # fmt: skip
        begins = [builder.bitcast(array.data, cgutils.voidptr_t) for array in arrays]
        strides = [cgutils.unpack_tuple(builder, array.strides)[0] for array in arrays]
        number = context.get_data_type(signature.args[0].dtype)
        size, count = signature.args[0].dtype.bitwidth // 8, signature.args[3].count
        index = arguments[1].type

        def at(which: int, place: Any, column: Any, bytes_each: int) -> Any:
            """Address of a row's column."""
            offset = builder.add(builder.mul(place, strides[which]), builder.mul(column, index(bytes_each)))
            return builder.gep(begins[which], [offset])

        weights = [at(0, builder.add(arguments[1], index(o)), index(0), size) for o in range(4)]
        inputs = [at(1, index(j), index(0), 4) for j in range(count)]
        sums = [
            [cgutils.alloca_once_value(builder, ir.Constant(_vector(ir.FloatType()), None)) for _ in range(4)]
            for _ in range(count)
        ]
        with cgutils.for_range_slice(builder, index(0), arguments[4], index(LANES), intp=index, inc=True) as (
            i,
            _,
        ):
            _fetch(
                builder,
                builder.gep(weights[0], [builder.add(builder.mul(i, index(4 * size)), index(AHEAD))]),
                4 * LANES * size,
            )
            values = [
                _load(builder, builder.gep(place, [builder.mul(i, index(4))]), ir.FloatType(), 4)
                for place in inputs
            ]
            for o, place in enumerate(weights):
                some = _load(builder, builder.gep(place, [builder.mul(i, index(size))]), number, size)
                some = _widened(builder, some, LANES)
                for j, value in enumerate(values):
                    builder.store(_multiply_add(builder, some, value, builder.load(sums[j][o])), sums[j][o])
        for j in range(count):
            place = builder.bitcast(
                at(2, index(j), arguments[1], 4), ir.VectorType(ir.FloatType(), 4).as_pointer()
            )
            builder.store(_added_up(builder, [builder.load(one) for one in sums[j]]), place, align=4)
        return context.get_dummy_value()

    return types.void(weight, types.intp, x, rows, types.intp, out), code


def _vector(number: Any) -> Any:
    return ir.VectorType(number, LANES)


def _load(builder: Any, place: Any, number: Any, size: int) -> Any:
    return builder.load(builder.bitcast(place, _vector(number).as_pointer()), align=size)


def _widened(builder: Any, number: Any, lanes: int) -> Any:
    """In float32, of which bfloat16 is the upper half."""
    kind: Any = ir.IntType(32)
    if number.type in (ir.FloatType(), _vector(ir.FloatType())):
        return number
    shift: Any = kind(16)
    result: Any = ir.FloatType()
    if lanes > 1:
        kind, shift, result = _vector(kind), ir.Constant(_vector(kind), [16] * lanes), _vector(result)
    return builder.bitcast(builder.shl(builder.zext(number, kind), shift), result)


def _multiply_add(builder: Any, x: Any, y: Any, z: Any) -> Any:
    kind = ir.FunctionType(z.type, [z.type] * 3)
    return builder.call(
        cgutils.get_or_insert_function(builder.module, kind, f"llvm.fmuladd.v{LANES}f32"), [x, y, z]
    )


def _fetch(builder: Any, place: Any, size: int) -> None:
    """Prefetch so many bytes. The address may lie past the end of the buffer."""
    number = ir.IntType(32)
    kind = ir.FunctionType(ir.VoidType(), [cgutils.voidptr_t, number, number, number])
    fetch = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
    for line in range(0, size, 64):
        # to read, soon, as data
        builder.call(fetch, [builder.gep(place, [ir.IntType(64)(line)]), number(0), number(3), number(1)])


def _added_up(builder: Any, four: Any) -> Any:
    """The sums of four vectors, as a vector of four."""
    half, quarter = LANES // 2, LANES // 4

    def joined(left: Any, right: Any, lanes: list[int]) -> Any:
        return builder.shuffle_vector(
            left, right, ir.Constant(ir.VectorType(ir.IntType(32), len(lanes)), lanes)
        )

    def folded(left: Any, right: Any, width: int) -> Any:
        """Of each group of `width` lanes the sums of its halves: those of `left`, and then of `right`."""
        lower = [lane for lane in range(2 * LANES) if lane % width < width // 2]
        return builder.fadd(
            joined(left, right, lower), joined(left, right, [lane + width // 2 for lane in lower])
        )

    total = folded(folded(four[0], four[1], LANES), folded(four[2], four[3], LANES), half)
    while quarter > 1:
        quarter //= 2
        total = builder.fadd(total, joined(total, total, [lane ^ quarter for lane in range(LANES)]))
    return joined(total, total, [group * (LANES // 4) for group in range(4)])


def _function(module: Any, name: str, *kinds: Any) -> tuple[Any, Any]:
    """A function of a module that other functions of it call, and what builds it, unless it is there."""
    if name in module.globals:
        return module.globals[name], None
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), kinds), name)
    function.linkage = "internal"
    function.attributes.add("noinline")
    return function, ir.IRBuilder(function.append_basic_block())


multiply_float32 = outlined(multiply, examples.WEIGHT, examples.WEIGHT, examples.ROWS)
multiply_bfloat16 = outlined(multiply, examples.WEIGHT.astype(np.uint16), examples.WEIGHT, examples.ROWS)
