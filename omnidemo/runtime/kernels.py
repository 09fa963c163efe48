"""The compiled parts of passes of a few rows on a CPU: a whole one over weights in bfloat16, and what lies between the matrix products of
others.

At batch 1 a small model spends as long between its products as in them when each step is a call of its own. Run as a program, this
compiles everything and keeps the machine code, so that another process has it in half a second.
"""

from __future__ import annotations

import math
import os
from typing import Any

import numpy as np
from numba import carray, njit, types
from numba.cpython.unsafe.tuple import tuple_setitem as _tuple_setitem
from numpy.typing import NDArray

from omnidemo.runtime import shares
from omnidemo.runtime.crew import AWAKE, DONE, EAGER, PATIENCE, WORK, Board, add, claim, look, new_board, pointer, post
from omnidemo.runtime.shares import FAST, compiled, exponential

Array = NDArray[np.float32]
Bits = NDArray[np.uint16]  # of bfloat16 numbers
tuple_setitem: Any = _tuple_setitem  # (tuple, place, number) → the tuple with that number; typed as if for interpreters
PRODUCT, GATED, ATTENTION = 0, 1, 2  # kinds of work
sched_yield: Any = types.ExternalFunction("sched_yield" if os.name == "posix" else "SwitchToThread", types.int32())
THREE, FOUR, FIVE = ((np.float32(0.0),) * size for size in (3, 4, 5))


@njit(cache=True, fastmath=FAST, nogil=True)
def forward(
    board: Board, pieces: int, ids: NDArray[np.int64], start: int, buffer: Array, embed: Array, norms: Array, last: Array, qkv: Bits,
    qkv_bias: Array, out: Bits, gate_up: Bits, down: Bits, head: Bits, cos: Array, sin: Array, eps: float, logits: Array, states: Array,
) -> None:  # fmt: skip
    """A pass over weights in bfloat16: read `ids` [T] at positions start… into the cache's `buffer` [L, 2, Hkv, C, D], and write the last
    rows' `logits` [R, V] and what the output layer reads, `states` [R, H].

    Matrices are [L, n, k], norms [L, 2, H]; qkv_bias is [L, n], zeros for none. cos, sin: see `mix`. Products are split into about so
    many `pieces`, which those who `serve` the board share.
    """
    count, rows, layers, width, inner = len(ids), len(logits), len(buffer), embed.shape[1], down.shape[2]
    x, y = np.empty((count, width), np.float32), np.zeros((count, width), np.float32)
    wide, mixed = np.empty((count, qkv.shape[1]), np.float32), np.empty((count, out.shape[2]), np.float32)
    gated = np.empty((count, inner), np.float32)
    for row in range(count):
        x[row] = embed[ids[row]]
    for layer in range(layers):
        add_normed(x, y, norms[layer, 0], eps, y)
        share(board, PRODUCT, pieces, qkv[layer], y, wide)
        wide += qkv_bias[layer]
        store(wide, start, buffer[layer], cos, sin)
        share_attention(board, wide, start, buffer[layer], mixed)
        share(board, PRODUCT, pieces, out[layer], mixed, y)
        add_normed(x, y, norms[layer, 1], eps, y)
        share(board, GATED, pieces, gate_up[layer], y, gated)
        share(board, PRODUCT, pieces, down[layer], gated, y)
    add_normed(x, y, last, eps, y)
    states[:] = y[count - rows :]
    share(board, PRODUCT, pieces, head, states, logits)


@compiled
def share(board: Board, kind: int, pieces: int, weight: Bits, x: Array, out: Array) -> None:
    """PRODUCT: out = x · Wᵀ. GATED: W is [2n, k], gate and up one after the other, and out = silu(x · gateᵀ) · (x · upᵀ)."""
    n = out.shape[1]
    each = max(16, (n + pieces - 1) // pieces + 3 & -4)
    board[WORK], board[WORK + 1], board[WORK + 2], board[WORK + 3] = kind, n, each, weight.shape[1]
    board[WORK + 4], board[WORK + 5], board[WORK + 6], board[WORK + 7] = weight.ctypes.data, x.ctypes.data, len(x), out.ctypes.data
    finish(board, (n + each - 1) // each)


@compiled
def share_attention(board: Board, wide: Array, start: int, cache: Array, out: Array) -> None:
    """Attention of the queries in `wide`, whose keys and values are in the cache; see `mix`. A piece is a head of a row."""
    heads = out.shape[1] // cache.shape[3]
    board[WORK], board[WORK + 1], board[WORK + 2], board[WORK + 3] = ATTENTION, heads, cache.shape[1], cache.shape[2]
    board[WORK + 4], board[WORK + 5], board[WORK + 6], board[WORK + 7] = cache.ctypes.data, wide.ctypes.data, len(wide), out.ctypes.data
    board[WORK + 8], board[WORK + 9] = cache.shape[3], start
    finish(board, len(wide) * heads)


@compiled
def finish(board: Board, pieces: int) -> None:
    """Do the work that has been written, together with those who serve the board."""
    post(board, pieces)
    take(board)
    while look(board, DONE) < pieces:
        pass


@njit(cache=True, nogil=True)
def serve(board: Board) -> None:
    """Take pieces until there have been none for a while."""
    add(board, AWAKE, 1)
    idle = 0
    while idle < PATIENCE:
        idle = 0 if take(board) else idle + 1
        if idle > EAGER:
            sched_yield()
    add(board, AWAKE, -1)


@compiled
def take(board: Board) -> bool:
    """Do pieces as long as there are any; whether there were."""
    found = False
    while True:
        piece = claim(board)
        if piece < 0:
            return found
        if board[WORK] == ATTENTION:
            do_attention(board, piece)
        else:
            do_product(board, piece)
        add(board, DONE, 1)
        found = True


@compiled
def do_product(board: Board, piece: int) -> None:
    n, each, k, rows = board[WORK + 1], board[WORK + 2], board[WORK + 3], board[WORK + 6]
    x, out = carray(pointer(board[WORK + 5]), (rows, k), np.float32), carray(pointer(board[WORK + 7]), (rows, n), np.float32)
    begin, end = piece * each, min(n, (piece + 1) * each)
    if board[WORK] == PRODUCT:
        weight = carray(pointer(board[WORK + 4]), (n, k), np.uint16)
        multiply(weight[begin:end], x, out[:, begin:end])
    else:
        weight = carray(pointer(board[WORK + 4]), (2 * n, k), np.uint16)
        up = np.empty((rows, end - begin), np.float32)
        multiply(weight[begin:end], x, out[:, begin:end])
        multiply(weight[n + begin : n + end], x, up[:, :])
        silu_times(out[:, begin:end], up, out[:, begin:end])


@compiled
def do_attention(board: Board, piece: int) -> None:
    heads, kv_heads, capacity = board[WORK + 1], board[WORK + 2], board[WORK + 3]
    rows, dim, start = board[WORK + 6], board[WORK + 8], board[WORK + 9]
    cache = carray(pointer(board[WORK + 4]), (2, kv_heads, capacity, dim), np.float32)
    wide = carray(pointer(board[WORK + 5]), (rows, (heads + 2 * kv_heads) * dim), np.float32)
    out = carray(pointer(board[WORK + 7]), (rows, heads * dim), np.float32)
    row, head = piece // heads, piece % heads
    at, shared = head * dim, head * kv_heads // heads
    scores = np.empty(start + row + 1, np.float32)
    attend(wide[row, at : at + dim], cache[0, shared], cache[1, shared], scores, out[row, at : at + dim])


@compiled
def multiply(weight: Bits, x: Array, out: Array) -> None:
    """out = x · Wᵀ: [m, k] · [n, k]ᵀ → [m, n], in strips of at most five rows of x."""
    row = 0
    for strips in range((len(x) + 4) // 5, 0, -1):
        size = (len(x) - row + strips - 1) // strips
        some, place = x[row : row + size], out[row : row + size]
        if size == 1:
            single(weight, some[0], place[0])
        elif size == 2:
            double(weight, some, place)
        elif size == 3:
            strip(weight, some, THREE, place)
        elif size == 4:
            strip(weight, some, FOUR, place)
        else:
            strip(weight, some, FIVE, place)
        row += size


@njit(cache=True, inline="always")
def widened(bits: Any) -> Any:
    """The float32 of which these are the upper half."""
    return np.uint32(np.uint32(bits) << np.uint32(16)).view(np.float32)


@compiled
def single(weight: Bits, x: Array, out: Array) -> None:
    """out [n] = x [k] · Wᵀ, four rows of the weight at a time."""
    n, k = weight.shape
    for o in range(0, n - n % 4, 4):
        a = b = c = d = np.float32(0.0)
        for i in range(k):
            value = x[i]
            a += widened(weight[o, i]) * value
            b += widened(weight[o + 1, i]) * value
            c += widened(weight[o + 2, i]) * value
            d += widened(weight[o + 3, i]) * value
        out[o], out[o + 1], out[o + 2], out[o + 3] = a, b, c, d
    for o in range(n - n % 4, n):
        a = np.float32(0.0)
        for i in range(k):
            a += widened(weight[o, i]) * x[i]
        out[o] = a


@compiled
def double(weight: Bits, x: Array, out: Array) -> None:
    """out [2, n] = x [2, k] · Wᵀ, four rows of the weight at a time."""
    n, k = weight.shape
    y, z = x[0], x[1]
    for o in range(0, n - n % 4, 4):
        a = b = c = d = e = f = g = h = np.float32(0.0)
        for i in range(k):
            p, q, r, s = widened(weight[o, i]), widened(weight[o + 1, i]), widened(weight[o + 2, i]), widened(weight[o + 3, i])
            a, b, c, d = a + p * y[i], b + q * y[i], c + r * y[i], d + s * y[i]
            e, f, g, h = e + p * z[i], f + q * z[i], g + r * z[i], h + s * z[i]
        out[0, o], out[0, o + 1], out[0, o + 2], out[0, o + 3] = a, b, c, d
        out[1, o], out[1, o + 1], out[1, o + 2], out[1, o + 3] = e, f, g, h
    for o in range(n - n % 4, n):
        single(weight[o : o + 1], y, out[0, o : o + 1])
        single(weight[o : o + 1], z, out[1, o : o + 1])


@compiled
def strip(weight: Bits, x: Array, zeros: Any, out: Array) -> None:
    """out [r, n] = x [r, k] · Wᵀ, with r `zeros`. The sums are tuples, for only what has a fixed length is kept in registers; longer
    ones than five are not."""
    n, k = weight.shape
    for o in range(0, n - n % 4, 4):
        a, b, c, d = zeros, zeros, zeros, zeros
        for i in range(k):
            e, f, g, h = widened(weight[o, i]), widened(weight[o + 1, i]), widened(weight[o + 2, i]), widened(weight[o + 3, i])
            for j in range(len(zeros)):
                value = x[j, i]
                a, b = tuple_setitem(a, j, a[j] + e * value), tuple_setitem(b, j, b[j] + f * value)
                c, d = tuple_setitem(c, j, c[j] + g * value), tuple_setitem(d, j, d[j] + h * value)
        for j in range(len(zeros)):
            out[j, o], out[j, o + 1], out[j, o + 2], out[j, o + 3] = a[j], b[j], c[j], d[j]
    for o in range(n - n % 4, n):
        for j in range(len(zeros)):
            total = np.float32(0.0)
            for i in range(k):
                total += widened(weight[o, i]) * x[j, i]
            out[j, o] = total


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


def compile_all() -> None:
    """Compile for the types that are used; a moment where another process has left its machine code."""

    def zeros(*shape: int) -> Array:
        return np.zeros(shape, np.float32)

    def bits(*shape: int) -> Bits:
        return np.zeros(shape, np.uint16)

    shares.compile_all()
    board = new_board()
    forward(
        board, 1, np.zeros(1, np.int64), 0, zeros(1, 2, 1, 1, 4), zeros(1, 4), zeros(1, 2, 4), zeros(4), bits(1, 12, 4), zeros(1, 12),
        bits(1, 4, 4), bits(1, 8, 4), bits(1, 4, 4), bits(1, 4), zeros(1, 4), zeros(1, 4), 1e-5, zeros(1, 1), zeros(1, 4),
    )  # fmt: skip
    add_normed(zeros(1, 4), zeros(1, 4), zeros(4), 1e-5, zeros(1, 4))
    mix(zeros(1, 12), 0, zeros(2, 1, 1, 4), zeros(1, 4), zeros(1, 4), zeros(1, 4))
    gate(zeros(1, 8), zeros(1, 4))
    serve(board)
    for entry in (forward, serve, add_normed, mix, gate):
        entry.disable_compile()  # other types would be a mistake, and would keep an answer waiting for seconds


if __name__ == "__main__":
    compile_all()
