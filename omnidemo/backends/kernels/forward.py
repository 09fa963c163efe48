"""A whole pass of a few rows over weights in bfloat16, which threads may share.

At batch 1 a small model spends as long between its products as in them when each step is a call of its own.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numba import carray, njit, types
from numpy.typing import NDArray

from omnidemo.backends.kernels.gemm import Array, Weight, multiply
from omnidemo.backends.kernels.layers import add_normed, attend, silu_times, store, turn
from omnidemo.backends.kernels.rows_kernel import FAST, compiled, highest, mass
from omnidemo.backends.kernels.work_queue import add, claim, look, pointer, post
from omnidemo.backends.thread_pool import AWAKE, DONE, EAGER, PATIENCE, PIECES, WORK, Board

PRODUCT, GATED, ATTENTION, SUMMARY, HEADS = range(5)  # kinds of work, and what is written of each on the board:
KIND, ROWS, X, OUT, WEIGHT, N, K, EACH = range(WORK, WORK + 8)
CACHE, QUERIES, GROUPS, CAPACITY, DIM, START, COS, SIN = range(WORK + 4, WORK + 12)  # after the first four
SIZE = WORK + 12  # bytes of a weight
WIDE, MATRIX, WIDTH, BIAS = range(WORK + 13, WORK + 17)  # of heads, after all others
BLOCK = 8  # rows whose attention is computed together
WORTH_SHARING = 60_000  # multiplications of attention that take longer than to find a thread that helps
# A model: its cache's buffer [L, 2, Hkv, C, D], embedding [V, H], norms [L, 2, H], the last norm [H], the biases [L, n] of queries, keys
# and values (zeros for none), the addresses [4 L + 1] of each layer's matrices (queries, keys and values [n, H]; out [H, heads · D]; gate
# and up [2 · inner, H]; down [H, inner]) and of the head [V, H], the bytes of their numbers (4, or 2 in bfloat16), inner, rotary cosines
# and sines as in `store`, and what the norms add.
Model = tuple[Array, Array, Array, Array, Array, NDArray[np.int64], int, int, Array, Array, float]
sched_yield: Any = types.ExternalFunction("sched_yield" if os.name == "posix" else "SwitchToThread", types.int32())


@njit(cache=True, fastmath=FAST, error_model="numpy", nogil=True)
def forward(
    board: Board, pieces: int, chunk: int, model: Model, ids: NDArray[np.int64], start: int, logits: Array, states: Array, heat: float,
    peaks: Array,
) -> None:  # fmt: skip
    """A pass: read `ids` [T] at positions start… into the cache of the `model`, and write the last rows' `logits` [R, V] and what the
    output layer reads, `states` [R, H]. `peaks` [R or 0, 4] become the numbers of `core.peaks.RowStats` for the temperature `heat`. `chunk`
    tokens are read at a time. Products are split into about so many `pieces`, which those who `serve` the board share.
    """
    unread = len(ids) - len(logits)
    for begin in range(0, len(ids), chunk):
        end = min(begin + chunk, len(ids))
        shown, after = max(0, begin - unread), max(0, end - unread)
        read(board, pieces, model, ids[begin:end], start + begin, logits[shown:after], states[shown:after])
    if len(peaks):
        peaks[:, 3] = 1.0 / heat
        share(board, SUMMARY, pieces, 0, logits, peaks)


@compiled
def read(board: Board, pieces: int, model: Model, ids: NDArray[np.int64], start: int, logits: Array, states: Array) -> None:
    """`forward` for one chunk."""
    buffer, embed, norms, last, bias, weights, board[SIZE], inner, cos, sin, eps = model
    count, rows, layers, width = len(ids), len(logits), len(buffer), embed.shape[1]
    x, y = np.empty((count, width), np.float32), np.zeros((count, width), np.float32)
    wide = np.empty((count, bias.shape[1]), np.float32)
    mixed = np.empty((count, bias.shape[1] - 2 * buffer.shape[2] * buffer.shape[4]), np.float32)
    gated = np.empty((count, inner), np.float32)
    by_heads = count <= BLOCK and 1 < pieces <= PIECES * buffer.shape[2]  # as many of the keys' heads as there are threads, at least
    for row in range(count):
        x[row] = embed[ids[row]]
    for layer in range(layers):
        add_normed(x, y, norms[layer, 0], eps, y)
        if by_heads:
            share_heads(board, weights[4 * layer], y, bias[layer], wide, start, buffer[layer], cos, sin, mixed)
        else:
            share(board, PRODUCT, pieces, weights[4 * layer], y, wide)
            wide += bias[layer]
            store(wide, start, buffer[layer], cos, sin, 0, buffer.shape[2])
            share_attention(board, wide, start, buffer[layer], cos, sin, mixed)
        share(board, PRODUCT, pieces, weights[4 * layer + 1], mixed, y)
        add_normed(x, y, norms[layer, 1], eps, y)
        share(board, GATED, pieces, weights[4 * layer + 2], y, gated)
        share(board, PRODUCT, pieces, weights[4 * layer + 3], gated, y)
    add_normed(x, y, last, eps, y)
    states[:] = y[count - rows :]
    share(board, PRODUCT, pieces, weights[4 * layers], states, logits)


@compiled
def share(board: Board, kind: int, pieces: int, weight: int, x: Array, out: Array) -> None:
    """PRODUCT: out = x · Wᵀ of the matrix at an address. GATED: W is [2n, k], gate and up one after the other, and
    out = silu(x · gateᵀ) · (x · upᵀ). SUMMARY: the peaks `out` of logits x; a piece is a row."""
    n = out.shape[1] if kind != SUMMARY else len(x)
    each = max(16, (n + pieces - 1) // pieces + 3 & -4) if kind != SUMMARY else 1
    board[KIND], board[ROWS], board[X], board[OUT] = kind, len(x), x.ctypes.data, out.ctypes.data
    board[WEIGHT], board[N], board[K], board[EACH] = weight, n, x.shape[1], each
    finish(board, (n + each - 1) // each)


@compiled
def share_attention(board: Board, wide: Array, start: int, cache: Array, cos: Array, sin: Array, out: Array) -> None:
    """Attention of the queries in `wide`, not turned yet, to the keys and values in the cache, from [T, (H + 2 Hkv) · D] to `out`
    [T, H · D]; see `store`. A piece is a head of `BLOCK` rows."""
    rows, heads = len(wide), out.shape[1] // cache.shape[3]
    board[KIND], board[ROWS], board[X], board[OUT] = ATTENTION, rows, wide.ctypes.data, out.ctypes.data
    describe(board, heads, cache, start, cos, sin)
    pieces = (rows + BLOCK - 1) // BLOCK * heads
    if rows * out.shape[1] * (start + rows) < WORTH_SHARING:
        for piece in range(pieces):
            do_attention(board, piece)
    else:
        finish(board, pieces)


@compiled
def share_heads(
    board: Board, weight: int, x: Array, bias: Array, wide: Array, start: int, cache: Array, cos: Array, sin: Array, out: Array
) -> None:
    """Queries, keys and values of a few rows x [T, H], and attention: a piece is what belongs to one head of the keys, from the product to
    what is attended. Nothing of it crosses from core to core in between. `wide` [T, (H + 2 Hkv) · D] is where they work."""
    board[KIND], board[ROWS], board[X], board[OUT] = HEADS, len(x), x.ctypes.data, out.ctypes.data
    board[WIDE], board[MATRIX], board[WIDTH], board[BIAS] = wide.ctypes.data, weight, x.shape[1], bias.ctypes.data
    describe(board, out.shape[1] // cache.shape[3], cache, start, cos, sin)
    finish(board, cache.shape[1])


@compiled
def describe(board: Board, heads: int, cache: Array, start: int, cos: Array, sin: Array) -> None:
    board[CACHE], board[QUERIES], board[GROUPS], board[CAPACITY] = cache.ctypes.data, heads, cache.shape[1], cache.shape[2]
    board[DIM], board[START], board[COS], board[SIN] = cache.shape[3], start, cos.ctypes.data, sin.ctypes.data


@compiled
def finish(board: Board, pieces: int) -> None:
    """Do the work that has been written, together with those who serve the board."""
    post(board, pieces)
    take(board)
    looks = 0
    while look(board, DONE) < pieces:
        looks += 1
        if looks > PATIENCE:
            sched_yield()  # whoever has the last piece may be waiting for this core


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
        elif board[KIND] == HEADS:
            do_heads(board, piece)
        elif board[KIND] == SUMMARY:
            do_summary(board, piece)
        else:
            do_product(board, piece)
        add(board, DONE, 1)
        found = True


@compiled
def do_product(board: Board, piece: int) -> None:
    total, k = board[N] * (2 if board[KIND] == GATED else 1), board[K]
    if board[SIZE] == 2:
        do_rows(board, piece, carray(pointer(board[WEIGHT]), (total, k), np.uint16))
    else:
        do_rows(board, piece, carray(pointer(board[WEIGHT]), (total, k), np.float32))


@compiled
def do_rows(board: Board, piece: int, weight: Weight) -> None:
    rows, n, k, each = board[ROWS], board[N], board[K], board[EACH]
    x, out = carray(pointer(board[X]), (rows, k), np.float32), carray(pointer(board[OUT]), (rows, n), np.float32)
    begin, end = piece * each, min(n, (piece + 1) * each)
    multiply(weight[begin:end], x, out[:, begin:end])
    if board[KIND] == GATED:
        up = np.empty((rows, end - begin), np.float32)
        multiply(weight[n + begin : n + end], x, up[:, :])
        for row in range(rows):
            silu_times(out[row, begin:end], up[row], out[row, begin:end])


@compiled
def do_summary(board: Board, piece: int) -> None:
    rows, k = board[ROWS], board[K]
    row, found = carray(pointer(board[X]), (rows, k), np.float32)[piece], carray(pointer(board[OUT]), (rows, 4), np.float32)[piece]
    best, factor = highest(row), found[3]
    found[0], found[1] = best, row[best]
    found[2] = mass(row, row[best], np.float32(1.0))
    found[3] = found[2] if factor == np.float32(1.0) else mass(row, row[best], factor)


@compiled
def do_heads(board: Board, piece: int) -> None:
    rows, heads, groups, dim, start = board[ROWS], board[QUERIES], board[GROUPS], board[DIM], board[START]
    count, each, width = (heads + 2 * groups) * dim, heads // groups, board[WIDTH]
    if board[SIZE] == 2:
        project(board, carray(pointer(board[MATRIX]), (count, width), np.uint16), piece)
    else:
        project(board, carray(pointer(board[MATRIX]), (count, width), np.float32), piece)
    wide = carray(pointer(board[WIDE]), (rows, count), np.float32)
    cache = carray(pointer(board[CACHE]), (2, groups, board[CAPACITY], dim), np.float32)
    end, out = start + rows, carray(pointer(board[OUT]), (rows, heads * dim), np.float32)
    cos, sin = carray(pointer(board[COS]), (end, dim), np.float32), carray(pointer(board[SIN]), (end, dim), np.float32)
    store(wide, start, cache, cos, sin, piece, piece + 1)
    for head in range(piece * each, (piece + 1) * each):
        attend_turned(wide, 0, rows, head, start, cache, piece, cos, sin, out)


@compiled
def project(board: Board, weight: Weight, piece: int) -> None:
    """The queries, keys and values that belong to one head of the keys."""
    rows, heads, groups, dim = board[ROWS], board[QUERIES], board[GROUPS], board[DIM]
    x = carray(pointer(board[X]), (rows, board[WIDTH]), np.float32)
    wide, bias = carray(pointer(board[WIDE]), (rows, len(weight)), np.float32), carray(pointer(board[BIAS]), len(weight), np.float32)
    for part in range(3):
        size = heads // groups * dim if part == 0 else dim
        begin = piece * size if part == 0 else (heads + (part - 1) * groups + piece) * dim
        multiply(weight[begin : begin + size], x, wide[:, begin : begin + size])
        for row in range(rows):
            for i in range(begin, begin + size):
                wide[row, i] += bias[i]


@compiled
def do_attention(board: Board, piece: int) -> None:
    rows, heads, groups, dim, start = board[ROWS], board[QUERIES], board[GROUPS], board[DIM], board[START]
    cache = carray(pointer(board[CACHE]), (2, groups, board[CAPACITY], dim), np.float32)
    wide = carray(pointer(board[X]), (rows, (heads + 2 * groups) * dim), np.float32)
    end, out = start + rows, carray(pointer(board[OUT]), (rows, heads * dim), np.float32)
    cos, sin = carray(pointer(board[COS]), (end, dim), np.float32), carray(pointer(board[SIN]), (end, dim), np.float32)
    first, head = piece // heads * BLOCK, piece % heads
    attend_turned(wide, first, min(BLOCK, rows - first), head, start, cache, head * groups // heads, cos, sin, out)


@compiled
def attend_turned(
    wide: Array, first: int, count: int, head: int, start: int, cache: Array, shared: int, cos: Array, sin: Array, out: Array
) -> None:
    """Turn `count` queries of a head, from row `first` on, and have them attend to the keys and values of the head `shared`."""
    dim = cache.shape[3]
    at, begin, end = head * dim, start + first, start + first + count
    queries, mixed = np.empty((count, dim), np.float32), np.empty((count, dim), np.float32)
    for row in range(count):
        turn(wide[first + row], at, cos[begin + row], sin[begin + row], queries[row])
    attend(queries, begin, cache[0, shared, :end], cache[1, shared, :end], mixed)
    for row in range(count):
        out[first + row, at : at + dim] = mixed[row]
