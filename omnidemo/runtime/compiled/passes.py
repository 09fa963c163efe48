"""A whole pass of a few rows over weights in bfloat16, which threads may share.

At batch 1 a small model spends as long between its products as in them when each step is a call of its own. Run as a program, this
compiles everything and keeps the machine code, so that another process has it in half a second.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numba import carray, njit, types
from numpy.typing import NDArray

from omnidemo.runtime.compiled import shares
from omnidemo.runtime.compiled.board import add, claim, look, pointer, post
from omnidemo.runtime.compiled.layers import add_normed, attend, gate, mix, silu_times, store
from omnidemo.runtime.compiled.products import Array, Bits, multiply
from omnidemo.runtime.compiled.shares import FAST, compiled
from omnidemo.runtime.crew import AWAKE, DONE, EAGER, PATIENCE, WORK, Board, new_board

PRODUCT, GATED, ATTENTION = 0, 1, 2  # kinds of work, and what is written of each on the board:
KIND, ROWS, X, OUT, WEIGHT, N, K, EACH = range(WORK, WORK + 8)
CACHE, HEADS, KV_HEADS, CAPACITY, DIM, START = range(WORK + 4, WORK + 10)  # after the first four
sched_yield: Any = types.ExternalFunction("sched_yield" if os.name == "posix" else "SwitchToThread", types.int32())


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
    board[KIND], board[ROWS], board[X], board[OUT] = kind, len(x), x.ctypes.data, out.ctypes.data
    board[WEIGHT], board[N], board[K], board[EACH] = weight.ctypes.data, n, weight.shape[1], each
    finish(board, (n + each - 1) // each)


@compiled
def share_attention(board: Board, wide: Array, start: int, cache: Array, out: Array) -> None:
    """Attention of the queries in `wide`, whose keys and values are in the cache; see `mix`. A piece is a head of a row."""
    heads = out.shape[1] // cache.shape[3]
    board[KIND], board[ROWS], board[X], board[OUT] = ATTENTION, len(wide), wide.ctypes.data, out.ctypes.data
    board[CACHE], board[HEADS], board[KV_HEADS], board[CAPACITY] = cache.ctypes.data, heads, cache.shape[1], cache.shape[2]
    board[DIM], board[START] = cache.shape[3], start
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
        if board[KIND] == ATTENTION:
            do_attention(board, piece)
        else:
            do_product(board, piece)
        add(board, DONE, 1)
        found = True


@compiled
def do_product(board: Board, piece: int) -> None:
    rows, n, k, each = board[ROWS], board[N], board[K], board[EACH]
    x, out = carray(pointer(board[X]), (rows, k), np.float32), carray(pointer(board[OUT]), (rows, n), np.float32)
    begin, end = piece * each, min(n, (piece + 1) * each)
    if board[KIND] == PRODUCT:
        weight = carray(pointer(board[WEIGHT]), (n, k), np.uint16)
        multiply(weight[begin:end], x, out[:, begin:end])
    else:
        weight = carray(pointer(board[WEIGHT]), (2 * n, k), np.uint16)
        up = np.empty((rows, end - begin), np.float32)
        multiply(weight[begin:end], x, out[:, begin:end])
        multiply(weight[n + begin : n + end], x, up[:, :])
        silu_times(out[:, begin:end], up, out[:, begin:end])


@compiled
def do_attention(board: Board, piece: int) -> None:
    rows, heads, kv_heads, dim, start = board[ROWS], board[HEADS], board[KV_HEADS], board[DIM], board[START]
    cache = carray(pointer(board[CACHE]), (2, kv_heads, board[CAPACITY], dim), np.float32)
    wide = carray(pointer(board[X]), (rows, (heads + 2 * kv_heads) * dim), np.float32)
    out = carray(pointer(board[OUT]), (rows, heads * dim), np.float32)
    row, head = piece // heads, piece % heads
    at, shared = head * dim, head * kv_heads // heads
    scores = np.empty(start + row + 1, np.float32)
    attend(wide[row, at : at + dim], cache[0, shared], cache[1, shared], scores, out[row, at : at + dim])


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
