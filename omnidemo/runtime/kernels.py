"""The compiled parts of passes of a few rows on a CPU: a whole one for a drafter whose weights have eight bits, and what lies between
the matrix products of others.

At batch 1 a small model spends as long between its products as in them when each step is a call of its own. Run as a program, this
compiles everything and keeps the machine code, so that another process has it in half a second.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

Array = NDArray[np.float32]
Bytes = NDArray[np.int8]
# Sums may be taken in any order, which is what vectors of numbers need; infinities and what is not a number keep their meaning.
compiled: Any = njit(cache=True, fastmath={"reassoc", "contract", "arcp", "nsz"})


@compiled
def forward(
    ids: NDArray[np.int64], start: int, buffer: Array, embed: Array, norms: Array, last: Array,
    qkv: Bytes, qkv_scale: Array, qkv_bias: Array, out: Bytes, out_scale: Array,
    gate_up: Bytes, gate_up_scale: Array, down: Bytes, down_scale: Array, head: Bytes, head_scale: Array,
    cos: Array, sin: Array, eps: float, logits: Array, states: Array,
) -> None:  # fmt: skip
    """A pass over weights of eight bits: read `ids` [T] at positions start… into the cache's `buffer` [L, 2, Hkv, C, D], and write the
    last rows' `logits` [R, V] and what the output layer reads, `states` [R, H].

    Matrices are [L, n, k] with `…_scale` [L, n], norms [L, 2, H]; qkv_bias is [L, n], zeros for none. cos, sin: see `mix`.
    """
    count, rows, layers, width, inner = len(ids), len(logits), len(buffer), embed.shape[1], down.shape[2]
    x, y = np.empty((count, width), np.float32), np.zeros((count, width), np.float32)
    wide, mixed = np.empty((count, qkv.shape[1]), np.float32), np.empty((count, out.shape[2]), np.float32)
    both, gated = np.empty((count, 2 * inner), np.float32), np.empty((count, inner), np.float32)
    for row in range(count):
        x[row] = embed[ids[row]]
    for layer in range(layers):
        add_normed(x, y, norms[layer, 0], eps, y)
        multiply(qkv[layer], qkv_scale[layer], y, wide)
        wide += qkv_bias[layer]
        mix(wide, start, buffer[layer], cos, sin, mixed)
        multiply(out[layer], out_scale[layer], mixed, y)
        add_normed(x, y, norms[layer, 1], eps, y)
        multiply(gate_up[layer], gate_up_scale[layer], y, both)
        gate(both, gated)
        multiply(down[layer], down_scale[layer], gated, y)
    add_normed(x, y, last, eps, y)
    states[:] = y[count - rows :]
    multiply(head, head_scale, states, logits)


@compiled
def multiply(weight: Any, scale: Array, x: Array, out: Array) -> None:
    """out = x · (weight · scale)ᵀ: [m, k] · [n, k]ᵀ → [m, n]; without a scale where that is empty. Four rows of the weight at a time, so
    that x is read a quarter as often."""
    n, k = weight.shape
    whole = n - n % 4
    for o in range(0, whole, 4):
        for row in range(len(x)):
            a = b = c = d = np.float32(0.0)
            for i in range(k):
                value = x[row, i]
                a += np.float32(weight[o, i]) * value
                b += np.float32(weight[o + 1, i]) * value
                c += np.float32(weight[o + 2, i]) * value
                d += np.float32(weight[o + 3, i]) * value
            out[row, o], out[row, o + 1], out[row, o + 2], out[row, o + 3] = a, b, c, d
    for o in range(whole, n):
        for row in range(len(x)):
            a = np.float32(0.0)
            for i in range(k):
                a += np.float32(weight[o, i]) * x[row, i]
            out[row, o] = a
    if len(scale):
        for row in range(len(x)):
            for o in range(n):
                out[row, o] *= scale[o]


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
    count, kv_heads, dim = len(wide), cache.shape[1], cache.shape[3]
    heads = out.shape[1] // dim
    scores = np.empty(start + count, np.float32)
    for row in range(count):
        position = start + row
        turn(wide[row], heads + kv_heads, cos[position], sin[position])
        for head in range(kv_heads):
            at, more = (heads + head) * dim, kv_heads * dim
            cache[0, head, position] = wide[row, at : at + dim]
            cache[1, head, position] = wide[row, at + more : at + more + dim]
        for head in range(heads):
            at, shared = head * dim, head * kv_heads // heads
            attend(wide[row, at : at + dim], cache[0, shared], cache[1, shared], scores[: position + 1], out[row, at : at + dim])


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
    out[:] = 0.0
    for position in range(len(scores)):
        share = np.float32(math.exp(scores[position] - top))
        total += share
        for i in range(dim):
            out[i] += share * values[position, i]
    for i in range(dim):
        out[i] /= total


@compiled
def gate(both: Array, out: Array) -> None:
    """silu(gate) · up of each row [2 · inner]."""
    inner = out.shape[1]
    for row in range(len(both)):
        for i in range(inner):
            value = both[row, i]
            out[row, i] = value / (np.float32(1.0) + np.float32(math.exp(-value))) * both[row, inner + i]


def compile_all() -> None:
    """Compile for the types that are used; a moment where another process has left its machine code."""

    def zeros(*shape: int) -> Array:
        return np.zeros(shape, np.float32)

    def bytes_(*shape: int) -> Bytes:
        return np.zeros(shape, np.int8)

    forward(
        np.zeros(1, np.int64), 0, zeros(1, 2, 1, 1, 4), zeros(1, 4), zeros(1, 2, 4), zeros(4), bytes_(1, 12, 4), zeros(1, 12),
        zeros(1, 12), bytes_(1, 4, 4), zeros(1, 4), bytes_(1, 8, 4), zeros(1, 8), bytes_(1, 4, 4), zeros(1, 4), bytes_(1, 4), zeros(1),
        zeros(1, 4), zeros(1, 4), 1e-5, zeros(1, 1), zeros(1, 4),
    )  # fmt: skip
    multiply(zeros(1, 4), zeros(0), zeros(1, 4), zeros(1, 1))
    add_normed(zeros(1, 4), zeros(1, 4), zeros(4), 1e-5, zeros(1, 4))
    mix(zeros(1, 12), 0, zeros(2, 1, 1, 4), zeros(1, 4), zeros(1, 4), zeros(1, 4))
    gate(zeros(1, 8), zeros(1, 4))
    for entry in (forward, multiply, add_normed, mix, gate):
        entry.disable_compile()  # other types would be a mistake, and would keep an answer waiting for seconds


if __name__ == "__main__":
    compile_all()
