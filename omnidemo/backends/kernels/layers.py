"""What lies between the matrix products of a pass of a few rows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from omnidemo.backends.call_layout import Array
from omnidemo.backends.kernels.gemm import multiply_float32
from omnidemo.backends.kernels.rows_kernel import compiled, exponential


@compiled
def add_normed(x: Array, more: Array, weight: Array, eps: float, out: Array) -> None:
    """x += more, and out = the root mean square norm of each row of x: x · w / √(mean x² + ε). `out` may be
    `more`."""
    for row in range(len(x)):
        total = np.float32(0.0)
        for i in range(len(weight)):
            x[row, i] += more[row, i]
            total += x[row, i] * x[row, i]
        factor = np.float32(1.0 / math.sqrt(total / len(weight) + eps))
        for i in range(len(weight)):
            out[row, i] = x[row, i] * factor * weight[i]


@compiled
def norm_heads(wide: Array, begin: int, end: int, norms: Array, which: int) -> None:
    """Put the root mean square norm of each head in place of it: of the heads `begin` to `end` in each row of
    `wide` [T, (H + 2 Hkv) · D]. `norms` [2 D + 1] are the weights for queries (`which` 0), those for keys
    (1), and ε."""
    dim = len(norms) // 2
    weight, eps = norms[which * dim : (which + 1) * dim], norms[2 * dim]
    for row in range(len(wide)):
        for at in range(begin * dim, end * dim, dim):
            total = np.float32(0.0)
            for i in range(dim):
                total += wide[row, at + i] * wide[row, at + i]
            factor = np.float32(1.0 / math.sqrt(total / dim + eps))
            for i in range(dim):
                wide[row, at + i] *= factor * weight[i]


@compiled
def store(wide: Array, start: int, cache: Array, cos: Array, sin: Array, begin: int, end: int) -> None:
    """Write keys, rotated by their positions, and values into the cache: those of the heads `begin` to `end`.

    `wide` [T, (H + 2 Hkv) · D] are queries, keys and values, `cache` is [2, Hkv, C, D], written to at start…;
    cos and sin [positions, D]: the sines' first half is negative.
    """
    kv_heads, dim = cache.shape[1], cache.shape[3]
    heads = wide.shape[1] // dim - 2 * kv_heads
    for row in range(len(wide)):
        for head in range(begin, end):
            at, position = (heads + head) * dim, start + row
            rotate(wide[row], at, cos[position], sin[position], cache[0, head, position])
            cache[1, head, position] = wide[row, at + kv_heads * dim : at + (kv_heads + 1) * dim]


@compiled
def rotate(row: Array, at: int, cos: Array, sin: Array, out: Array) -> None:
    """Rotary positions: out [D] = what stands in a row from `at` on, rotated."""
    half = len(out) // 2
    for i in range(half):
        left, right = row[at + i], row[at + half + i]
        out[i] = left * cos[i] + right * sin[i]
        out[half + i] = right * cos[half + i] + left * sin[half + i]


@compiled
def attend(queries: Array, start: int, keys: Array, values: Array, out: Array) -> None:
    """softmax(q · Kᵀ / √D) · V of queries [R, D], each of which sees one position more than the one before
    it, the last all of keys and values [start + R, D]; `out` is [R, D]."""
    factor, scores = (
        np.float32(1.0 / math.sqrt(queries.shape[1])),
        np.empty((len(queries), len(keys)), np.float32),
    )
    multiply_float32(keys, queries, scores[:, :])  # whose type is that of rows that lie apart
    for row in range(len(queries)):
        seen = scores[row, : start + row + 1]
        total = exponentials(seen, factor)
        mix(seen, values, np.float32(1.0) / total, out[row])


@compiled
def exponentials(scores: Array, factor: float) -> Any:
    """Turn scores into exp(factor · (score − the highest)), in place; their sum."""
    top, total = np.float32(-np.inf), np.float32(0.0)
    for position in range(len(scores)):
        top = max(top, scores[position])
    for position in range(len(scores)):
        scores[position] = exponential((scores[position] - top) * factor)
        total += scores[position]
    return total


@compiled
def mix(weights: Array, values: Array, factor: float, out: Array) -> None:
    """out [D] = factor · Σ weight · value over as many positions as there are weights, four at a time."""
    count, dim = len(weights), len(out)
    out[:] = 0.0
    for p in range(0, count - count % 4, 4):
        a, b, c, d = weights[p], weights[p + 1], weights[p + 2], weights[p + 3]
        for i in range(dim):
            out[i] += a * values[p, i] + b * values[p + 1, i] + c * values[p + 2, i] + d * values[p + 3, i]
    for p in range(count - count % 4, count):
        for i in range(dim):
            out[i] += weights[p] * values[p, i]
    for i in range(dim):
        out[i] *= factor


@compiled
def silu_times(x: Array, y: Array, out: Array) -> None:
    """x · σ(x) · y of vectors; `out` may be x."""
    for i in range(len(x)):
        out[i] = x[i] / (np.float32(1.0) + exponential(-x[i])) * y[i]
