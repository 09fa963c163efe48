"""Attention of a few rows to the keys and values of a cache.

The queries that share a head of the keys are taken together, so that each key and value is read once for all
of them, and the positions part by part: a part stays in the first cache between its scores and its sum, and
threads can share a long text where heads do not come out even. A part's sum is weighted by its own maximum,
and parts are joined in their order. So no number depends on who computed it, or on how many rows a pass has.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils

from omnidemo.backends.call_layout import Array
from omnidemo.backends.kernels import gemm
from omnidemo.backends.kernels.gemm import (
    FIVE,
    FOUR,
    INDEX,
    LANES,
    MOST,
    ONE,
    REALS,
    SIX,
    THREE,
    TWO,
    multiply_float32,
    spread,
)
from omnidemo.backends.kernels.outlined import intrinsic
from omnidemo.backends.kernels.rows_kernel import compiled, exponential, int64, top

PART = 128  # positions that are attended to at once
AHEAD = 8192  # bytes between what is added and what is fetched
VECTORS = 4  # of an output row, whose sums are in registers together


class Queries(NamedTuple):
    """Queries that share the head `shared` of the keys: of the rows `first` … `first` + `rows` − 1 of a pass
    that begins at the position `start`, the heads `head` … `head` + `each` − 1."""

    first: int
    rows: int
    head: int
    each: int
    shared: int
    start: int


@compiled
def rotate(row: Array, at: int, cos: Array, sin: Array, out: Array) -> None:
    """Rotary positions: out [D] = what stands in a row from `at` on, rotated."""
    half = len(out) // 2
    for i in range(half):
        left, right = row[at + i], row[at + half + i]
        out[i] = left * cos[i] + right * sin[i]
        out[half + i] = right * cos[half + i] + left * sin[half + i]


@compiled
def attend(
    wide: Array, who: Queries, cache: Array, cos: Array, sin: Array, begin: int, end: int, out: Array
) -> None:
    """Attend to the positions `begin` … `end` − 1, `begin` a multiple of PART: `out` [rows · each, D + 2], a
    row's heads behind one another, are sums of values, weighted by e^(score − maximum), the maximum, and the
    sum of the weights. A row sees the positions up to its own.

    `wide` [T, (H + 2 Hkv) · D] are queries that are not rotated yet, `cache` is [2, Hkv, C, D], cos and sin
    are [positions, D]."""
    dim, size = cache.shape[3], who.rows * who.each
    queries, scores = np.empty((size, dim), np.float32), np.empty((size, PART), np.float32)
    sums = np.empty((size, dim + 2), np.float32)
    for row in range(who.rows):
        position = who.start + who.first + row
        for head in range(who.each):
            at = (who.head + head) * dim
            rotate(wide[who.first + row], at, cos[position], sin[position], queries[row * who.each + head])
    for low in range(begin, end, PART):
        high = min(end, low + PART)
        made = scores[:, : high - low]
        # four keys at a time, of which the last ones may be none yet: products are the same in any pass
        keys = cache[0, who.shared, low : min(cache.shape[2], low + (high - low + 3 & -4))]
        multiply_float32(keys, queries, scores[:, : len(keys)])
        part = out if low == begin else sums
        for query in range(size):
            seen = who.start + who.first + query // who.each + 1 - low
            weigh(scores[query, : high - low], max(int64(0), min(seen, high - low)), part[query], dim)
        mix(made, cache[1, who.shared, low:high], part[:, :dim])
        if low > begin:
            join(out, sums, dim)


@compiled
def weigh(scores: Array, seen: int, out: Array, dim: int) -> None:
    """Turn the first `seen` scores into e^(factor · (score − the highest)), and the others into nothing; the
    highest, times the factor 1 / √D, and their sum stand behind the D numbers of `out`."""
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
            continue  # it is behind what the row sees
        high = max(into[row, dim], more[row, dim])
        left, right = exponential(into[row, dim] - high), exponential(more[row, dim] - high)
        for i in range(dim):
            into[row, i] = left * into[row, i] + right * more[row, i]
        into[row, dim] = high
        into[row, dim + 1] = left * into[row, dim + 1] + right * more[row, dim + 1]


@compiled
def write(sums: Array, who: Queries, out: Array) -> None:
    """out [T, H · D] = the means that sums are of, in the places of their heads."""
    dim = sums.shape[1] - 2
    for query in range(len(sums)):
        factor, at = np.float32(1.0) / sums[query, dim + 1], (who.head + query % who.each) * dim
        row = who.first + query // who.each
        for i in range(dim):
            out[row, at + i] = sums[query, i] * factor


@compiled
def mix(weights: Array, values: Array, out: Array) -> None:
    """out [R, D] = weights [R, P] · values [P, D]; the rows of `weights` and `out` may lie apart."""
    rows, dim = len(weights), values.shape[1]
    wide, whole = dim - dim % (VECTORS * LANES), dim - dim % LANES
    strips = (rows + MOST - 1) // MOST
    row = 0
    for left in range(strips, 0, -1):
        size = (rows - row + left - 1) // left
        some, made = weights[row : row + size], out[row : row + size]
        for column in range(0, wide, VECTORS * LANES):
            mix_strip(some, values, column, FOUR, made)
        for column in range(wide, whole, LANES):
            mix_strip(some, values, column, ONE, made)
        row += size
    for row in range(rows if whole < dim else 0):
        for i in range(whole, dim):
            total = np.float32(0.0)
            for position in range(len(values)):
                total += weights[row, position] * values[position, i]
            out[row, i] = total


@compiled
def mix_strip(weights: Array, values: Array, column: int, vectors: Any, out: Array) -> None:
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
        rows_of = [builder.gep(begins[0], [builder.mul(INDEX(row), strides[0])]) for row in range(count)]
        zero = ir.Constant(REALS, None)
        sums = [[cgutils.alloca_once_value(builder, zero) for _ in range(parts)] for _ in range(count)]
        with cgutils.for_range_slice(builder, INDEX(0), positions, INDEX(1), intp=INDEX, inc=True) as (p, _):
            value = builder.gep(begins[1], [builder.add(builder.mul(p, strides[1]), across)])
            gemm._fetch(builder, builder.gep(value, [INDEX(AHEAD)]), 4 * LANES * parts)
            loaded = [
                gemm._load(builder, builder.gep(value, [INDEX(4 * LANES * part)]), ir.FloatType(), 4)
                for part in range(parts)
            ]
            for place, totals in zip(rows_of, sums, strict=True):
                weight = spread(builder, builder.gep(place, [builder.mul(p, INDEX(4))]))
                for number, total in zip(loaded, totals, strict=True):
                    builder.store(gemm._multiply_add(builder, number, weight, builder.load(total)), total)
        for row, totals in enumerate(sums):
            made = builder.gep(begins[2], [builder.add(builder.mul(INDEX(row), strides[2]), across)])
            for part, total in enumerate(totals):
                place = builder.bitcast(builder.gep(made, [INDEX(4 * LANES * part)]), REALS.as_pointer())
                builder.store(builder.load(total), place, align=4)
        return context.get_dummy_value()

    return types.void(weights, rows, values, types.intp, vectors, out), code
