"""Attention of a few rows over a KV cache.

Queries that share a key-value head are computed together, so each key and value is read once for all of them.
Positions are split into parts: a part stays in the L1 cache between its scores and its sum, and threads can
share a long text when there are fewer heads than threads. Each part has its own softmax maximum, and parts
are joined in order, so no number depends on the thread or on the number of rows in a pass.

Keys are transposed, SPAN positions side by side for each dimension, so no score is summed across the lanes of
a vector.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import carray, njit, types
from numba.core import cgutils
from numpy.typing import NDArray

from omnidemo.backends.call_layout import SPAN, Array, Cache
from omnidemo.backends.kernels import examples, gemm
from omnidemo.backends.kernels.gemm import FIVE, FOUR, INDEX, LANES, ONE, REAL, REALS, SIX, THREE, TWO, WIDE
from omnidemo.backends.kernels.integer.sets import spread
from omnidemo.backends.kernels.outlined import intrinsic, outlined
from omnidemo.backends.kernels.packed_blocks import HALF, float16, real
from omnidemo.backends.kernels.rows_kernel import compiled, exponential, int64, top
from omnidemo.backends.kernels.work_queue import pointer

PART = 2 * SPAN  # positions of one part
AHEAD = 8192  # bytes between what is added and what is prefetched
MOST = 6  # rows whose sums are in registers together
PARTS = FOUR if WIDE else TWO  # vectors of each of these rows, as many as there is room for
VECTORS = len(PARTS)
Lines = NDArray[np.float32] | NDArray[np.int16]  # the latter are float16's bits


class Queries(NamedTuple):
    """Queries that share the key head `shared`: rows `first` … `first` + `rows` − 1 of a pass that begins at
    position `start`, heads `head` … `head` + `each` − 1."""

    first: int
    rows: int
    head: int
    each: int
    shared: int
    start: int


@compiled
def rotate(row: Array, at: int, cos: Array, sin: Array, out: Array) -> None:
    """Rotary positions: out [D] = the numbers of a row from `at` on, rotated."""
    half = len(out) // 2
    for i in range(half):
        left, right = row[at + i], row[at + half + i]
        out[i] = left * cos[i] + right * sin[i]
        out[half + i] = right * cos[half + i] + left * sin[half + i]


@compiled
def layer_of(cache: Cache, layer: int) -> Cache:
    """The cache of one layer."""
    address = cache.address + layer * 2 * cache.heads * cache.capacity * cache.dim * cache.number
    return Cache(address, cache.number, cache.heads, cache.capacity, cache.dim)


@compiled
def place_of(cache: Cache, values: int, head: int, position: int) -> int:
    """The address of a position's key (`values` 0) or value (1)."""
    place = (values * cache.heads + head) * cache.capacity * cache.dim
    inside = position * cache.dim if values else position // SPAN * SPAN * cache.dim + position % SPAN
    return cache.address + (place + inside) * cache.number


@compiled
def put(numbers: Array, cache: Cache, values: int, head: int, position: int) -> None:
    """Write a position's key (`values` 0) or value (1) [D]."""
    address, apart = place_of(cache, values, head, position), 1 if values else SPAN
    if cache.number == 4:
        reals = carray(pointer(address), cache.dim * apart, np.float32)
        for i in range(cache.dim):
            reals[i * apart] = numbers[i]
    else:
        halves = carray(pointer(address), cache.dim * apart, np.int16)
        for i in range(cache.dim):
            halves[i * apart] = halved(numbers[i])


@compiled
def halved(x: Any) -> Any:
    """The bits of the float16 nearest to a float32, ties to even; infinite beyond its range."""
    bits = int64(np.float32(x).view(np.int32))
    rest, sign = bits & 0x7FFFFFFF, bits >> 16 & 0x8000
    if rest >= 0x47800000:
        half = 0x7E00 if rest > 0x7F800000 else 0x7C00
    elif rest >= 0x38800000:
        half = rest - (112 << 23) + 0xFFF + (rest >> 13 & 1) >> 13
    else:  # a multiple of the least one
        half = int64(np.rint(abs(np.float32(x)) * np.float32(2.0**24)))
    return sign | half


@compiled
def attend(
    wide: Array, who: Queries, cache: Cache, cos: Array, sin: Array, begin: int, end: int, out: Array
) -> None:
    """Attend to the positions begin … end − 1; `begin` is a multiple of PART. A row sees the positions up to
    its own. `out` [rows · each, D + 2] are, head after head of a row, sums of values weighted by e^(score −
    maximum), the maximum, and the sum of the weights.

    `wide` [T, (H + 2 Hkv) · D] are queries that are not rotated yet; cos and sin are [positions, D].
    """
    dim, size = cache.dim, who.rows * who.each
    queries, scores = np.empty((size, dim), np.float32), np.empty((size, PART), np.float32)
    sums = np.empty((size, dim + 2), np.float32)
    for row in range(who.rows):
        position = who.start + who.first + row
        for head in range(who.each):
            at = (who.head + head) * dim
            rotate(wide[who.first + row], at, cos[position], sin[position], queries[row * who.each + head])
    for low in range(begin, end, PART):
        high = min(end, low + PART)
        for first in range(low, high, SPAN):
            # whole vectors of keys; the last ones may not be written yet
            width = min(SPAN, (high - first + LANES - 1) // LANES * LANES)
            mix(queries[:, :dim], cache, place_of(cache, int64(0), who.shared, first), dim, width, SPAN,
                scores[:, first - low : first - low + width])  # fmt: skip
        made, part = scores[:, : high - low], out if low == begin else sums
        for query in range(size):
            seen = who.start + who.first + query // who.each + 1 - low
            weigh(scores[query, : high - low], max(int64(0), min(seen, high - low)), part[query], dim)
        mix(made, cache, place_of(cache, int64(1), who.shared, low), high - low, dim, dim, part[:, :dim])
        if low > begin:
            join(out, sums, dim)


@compiled
def weigh(scores: Array, seen: int, out: Array, dim: int) -> None:
    """Replace the first `seen` scores by e^(factor · (score − maximum)), factor = 1 / √D, and the others by
    0. Factor · maximum and the sum of the weights follow the D numbers of `out`."""
    factor, high, total = np.float32(1.0 / math.sqrt(dim)), np.float32(-np.inf), np.float32(0.0)
    if seen > 0:
        high = np.float32(top(scores[:seen]))
    for i in range(seen):
        scores[i] = exponential((scores[i] - high) * factor)
        total += scores[i]
    for i in range(seen, len(scores)):
        scores[i] = 0.0
    out[dim], out[dim + 1] = high * factor, total


@compiled
def join(into: Array, more: Array, dim: int) -> None:
    """Add the sums of another part of the positions."""
    for row in range(len(into)):
        if more[row, dim + 1] == 0.0:
            continue  # the part is later than the row
        high = max(into[row, dim], more[row, dim])
        left, right = exponential(into[row, dim] - high), exponential(more[row, dim] - high)
        for i in range(dim):
            into[row, i] = left * into[row, i] + right * more[row, i]
        into[row, dim] = high
        into[row, dim + 1] = left * into[row, dim + 1] + right * more[row, dim + 1]


@compiled
def write(sums: Array, who: Queries, out: Array) -> None:
    """Write weighted means to `out` [T, H · D], at the places of their heads."""
    dim = sums.shape[1] - 2
    for query in range(len(sums)):
        factor, at = np.float32(1.0) / sums[query, dim + 1], (who.head + query % who.each) * dim
        row = who.first + query // who.each
        for i in range(dim):
            out[row, at + i] = sums[query, i] * factor


@compiled
def mix(weights: Array, cache: Cache, address: int, lines: int, width: int, apart: int, out: Array) -> None:
    """out [R, width] = weights [R, lines] · the lines of a cache at an address, `apart` numbers from one line
    to the next. The rows of `weights` and `out` may be strided."""
    if cache.number == 4:
        mix_reals(weights, carray(pointer(address), (lines, apart), np.float32)[:, :width], out)
    else:
        mix_halves(weights, carray(pointer(address), (lines, apart), np.int16)[:, :width], out)


@compiled
def mix_lines(weights: Array, values: Lines, out: Array) -> None:
    """out [R, D] = weights [R, P] · values [P, D]. The rows of each may be strided."""
    rows, dim = len(weights), values.shape[1]
    wide, whole = dim - dim % (VECTORS * LANES), dim - dim % LANES
    strips = (rows + MOST - 1) // MOST
    row = 0
    for left in range(strips, 0, -1):
        size = (rows - row + left - 1) // left
        some, made = weights[row : row + size], out[row : row + size]
        for column in range(0, wide, VECTORS * LANES):
            mix_strip(some, values, column, PARTS, made)
        for column in range(wide, whole, LANES):
            mix_strip(some, values, column, ONE, made)
        row += size
    if whole < dim:
        mix_rest(weights, values, whole, out)


# Without `fastmath`: the order of the sum must not depend on the number of lines.
@njit(cache=True, error_model="numpy")
def mix_rest(weights: Array, values: Lines, begin: int, out: Array) -> None:
    """`mix_lines` from the column `begin` on."""
    for row in range(len(weights)):
        for i in range(begin, values.shape[1]):
            total = np.float32(0.0)
            for position in range(len(values)):
                total += weights[row, position] * real(values[position, i])
            out[row, i] = total


@compiled
def mix_strip(weights: Array, values: Lines, column: int, vectors: Any, out: Array) -> None:
    size = len(weights)
    if size == 1:
        mix_tile(weights, ONE, values, column, vectors, out)
    elif size == 2:
        mix_tile(weights, TWO, values, column, vectors, out)
    elif size == 3:
        mix_tile(weights, THREE, values, column, vectors, out)
    elif size == 4:
        mix_tile(weights, FOUR, values, column, vectors, out)
    elif size == 5:
        mix_tile(weights, FIVE, values, column, vectors, out)
    else:
        mix_tile(weights, SIX, values, column, vectors, out)


@intrinsic
def mix_tile(typing: Any, weights: Any, rows: Any, values: Any, column: Any, vectors: Any, out: Any) -> Any:
    """From `column` on as many vectors of out [r, D] = weights [r, P] · values [P, D], for as many rows, as
    `vectors` and `rows` have entries."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kinds, count, parts = signature.args, signature.args[1].count, signature.args[4].count
        arrays = [context.make_array(kinds[which])(context, builder, arguments[which]) for which in (0, 2, 5)]
        begins = [builder.bitcast(array.data, cgutils.voidptr_t) for array in arrays]
        strides = [cgutils.unpack_tuple(builder, array.strides)[0] for array in arrays]
        positions = cgutils.unpack_tuple(builder, arrays[1].shape)[0]
        across = builder.mul(arguments[3], INDEX(4))
        number = kinds[2].dtype.bitwidth // 8
        kind = ir.FloatType() if number == 4 else ir.IntType(16)
        rows_of = [builder.gep(begins[0], [builder.mul(INDEX(row), strides[0])]) for row in range(count)]
        zero = ir.Constant(REALS, None)
        sums = [[cgutils.alloca_once_value(builder, zero) for _ in range(parts)] for _ in range(count)]
        with cgutils.for_range_slice(builder, INDEX(0), positions, INDEX(1), intp=INDEX, inc=True) as (p, _):
            offset = builder.add(builder.mul(p, strides[1]), builder.mul(arguments[3], INDEX(number)))
            value = builder.gep(begins[1], [offset])
            gemm._fetch(builder, builder.gep(value, [INDEX(AHEAD)]), number * LANES * parts)
            loaded = [
                gemm._load(builder, builder.gep(value, [INDEX(number * LANES * part)]), kind, number)
                for part in range(parts)
            ]
            loaded = loaded if number == 4 else [float16(builder, bits, HALF) for bits in loaded]
            for place, totals in zip(rows_of, sums, strict=True):
                at = builder.gep(place, [builder.mul(p, INDEX(4))])
                weight = builder.load(builder.bitcast(at, REAL.as_pointer()), align=4)
                weight = spread(builder, weight, LANES)
                for some, total in zip(loaded, totals, strict=True):
                    builder.store(gemm._multiply_add(builder, some, weight, builder.load(total)), total)
        for row, totals in enumerate(sums):
            made = builder.gep(begins[2], [builder.add(builder.mul(INDEX(row), strides[2]), across)])
            for part, total in enumerate(totals):
                place = builder.bitcast(builder.gep(made, [INDEX(4 * LANES * part)]), REALS.as_pointer())
                builder.store(builder.load(total), place, align=4)
        return context.get_dummy_value()

    return types.void(weights, rows, values, types.intp, vectors, out), code


mix_reals = outlined(mix_lines, examples.ROWS, examples.ROWS, examples.ROWS)
mix_halves = outlined(mix_lines, examples.ROWS, examples.ROWS.astype(np.int16)[:, :1], examples.ROWS)
