"""What lies between the matrix products of a pass of a few rows."""

from __future__ import annotations

import math

import numpy as np

from omnidemo.runtime.compiled.products import Array
from omnidemo.runtime.compiled.shares import compiled, exponential


@compiled
def add_normed(x: Array, more: Array, weight: Array, eps: float, out: Array) -> None:
    """x += more, and out = the root mean square norm of each row of x: x · w / √(mean x² + ε). `out` may be `more`."""
    for row in range(len(x)):
        total = np.float32(0.0)
        for i in range(len(weight)):
            x[row, i] += more[row, i]
            total += x[row, i] * x[row, i]
        factor = np.float32(1.0 / math.sqrt(total / len(weight) + eps))
        for i in range(len(weight)):
            out[row, i] = x[row, i] * factor * weight[i]


@compiled
def mix(wide: Array, start: int, cache: Array, cos: Array, sin: Array, out: Array) -> None:
    """Attention of a layer, from queries, keys and values `wide` [T, (H + 2 Hkv) · D] to `out` [T, H · D].

    Turns queries and keys by their positions (cos, sin [positions, D]; the sines' first half is negative), and writes keys and values
    into `cache` [2, Hkv, C, D] at start….
    """
    store(wide, start, cache, cos, sin)
    kv_heads, dim = cache.shape[1], cache.shape[3]
    heads = out.shape[1] // dim
    scores = np.empty(start + len(wide), np.float32)
    for row in range(len(wide)):
        for head in range(heads):
            at, shared = head * dim, head * kv_heads // heads
            used = scores[: start + row + 1]
            attend(wide[row, at : at + dim], cache[0, shared], cache[1, shared], used, out[row, at : at + dim])


@compiled
def store(wide: Array, start: int, cache: Array, cos: Array, sin: Array) -> None:
    """Turn queries and keys by their positions, and write keys and values into the cache; see `mix`."""
    kv_heads, dim = cache.shape[1], cache.shape[3]
    heads = wide.shape[1] // dim - 2 * kv_heads
    for row in range(len(wide)):
        position = start + row
        turn(wide[row], heads + kv_heads, cos[position], sin[position])
        for head in range(kv_heads):
            at, more = (heads + head) * dim, kv_heads * dim
            cache[0, head, position] = wide[row, at : at + dim]
            cache[1, head, position] = wide[row, at + more : at + more + dim]


@compiled
def turn(row: Array, heads: int, cos: Array, sin: Array) -> None:
    """Rotary positions, in place, on the first so many heads."""
    dim = len(cos)
    half = dim // 2
    for at in range(0, heads * dim, dim):
        for i in range(half):
            left, right = row[at + i], row[at + half + i]
            row[at + i] = left * cos[i] + right * sin[i]
            row[at + half + i] = right * cos[half + i] + left * sin[half + i]


@compiled
def attend(query: Array, keys: Array, values: Array, scores: Array, out: Array) -> None:
    """softmax(q · Kᵀ / √D) · V for one query [D] over as many positions as there is room for in `scores`."""
    dim, factor, top = len(query), np.float32(1.0 / math.sqrt(len(query))), np.float32(-np.inf)
    for position in range(len(scores)):
        score = np.float32(0.0)
        for i in range(dim):
            score += query[i] * keys[position, i]
        scores[position] = score * factor
        top = max(top, scores[position])
    total = np.float32(0.0)
    for position in range(len(scores)):
        scores[position] = exponential(scores[position] - top)
        total += scores[position]
    out[:] = 0.0
    for position in range(len(scores)):
        share = scores[position]
        for i in range(dim):
            out[i] += share * values[position, i]
    for i in range(dim):
        out[i] /= total


@compiled
def gate(both: Array, out: Array) -> None:
    """silu(gate) · up of each row [2 · inner]."""
    inner = out.shape[1]
    silu_times(both[:, :inner], both[:, inner:], out)


@compiled
def silu_times(x: Array, y: Array, out: Array) -> None:
    """x · σ(x) · y; `out` may be x."""
    for row in range(len(x)):
        for i in range(x.shape[1]):
            out[row, i] = x[row, i] / (np.float32(1.0) + exponential(-x[row, i])) * y[row, i]
