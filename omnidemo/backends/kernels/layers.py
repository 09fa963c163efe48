"""The steps of a forward pass, and their tasks, which threads claim from the queue.

A model is a table of matrices. A matrix's weight format is read once a task, never in a loop.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import carray

from omnidemo.backends.call_layout import Array, Cache, Whole
from omnidemo.backends.kernels.attention_kernel import PART, Queries, attend, put, rotate, write
from omnidemo.backends.kernels.gemm import multiply_bfloat16, multiply_float32
from omnidemo.backends.kernels.integer.products import multiply_integers
from omnidemo.backends.kernels.packed_blocks import SIZES, PackedRows, look_up_row
from omnidemo.backends.kernels.rows_kernel import append, compiled, exponential, int64, write_stats
from omnidemo.backends.kernels.work_queue import pointer
from omnidemo.backends.packed_forms import BFLOAT16, COLUMNS, FLOAT32
from omnidemo.backends.packed_forms import ROWS as RECORD_ROWS
from omnidemo.backends.thread_pool import WORK, Queue

# kinds of work, and what is written of each in the queue:
PRODUCT, GATED, ATTENTION, ROW_STATS, HEADS = range(5)
KIND, ROWS, X, OUT, PARTS, N, K, EACH = range(WORK, WORK + 8)
CACHE, QUERIES, GROUPS, CAPACITY, DIM, START, COS, SIN = range(WORK + 4, WORK + 12)  # after the first four
MATRICES = WORK + 12  # how many matrices of the table, from PARTS on, are multiplied as one
WIDE, PROJECTIONS, WIDTH, BIAS, NORMS = range(WORK + 13, WORK + 18)  # of heads, after all others
SUMS = WORK + 18  # of attention: where the sums of parts are written, or 0
QUANTIZED = WORK + 19  # what a product reads in whole numbers
NUMBER = WORK + 20  # bytes of a number of the cache
BLOCK = 8  # rows whose attention is computed together
FORM, ADDRESS, COUNT, ENTRY = range(4)  # a matrix as a row of the table: its form, address and rows


class Rows(NamedTuple):
    """Float32 rows: the address of the first, their number, and numbers from one row to the next."""

    address: int
    rows: int
    width: int


class Read(NamedTuple):
    """The input of a product: the address of the float32 rows, their number and width, and the address of the
    same rows quantized, if a matrix needs them."""

    address: int
    rows: int
    width: int
    quantized: int


@compiled
def multiply_rows(matrix: Whole, begin: int, end: int, x: Read, out: Rows) -> None:
    """out = x · Wᵀ for the rows begin … end − 1 of a matrix in the table. x has all columns; `begin` is a
    multiple of 16."""
    n, k, address = end - begin, x.width, place_of(matrix, begin, x.width)
    rows = carray(pointer(x.address), (x.rows, k), np.float32)
    form = matrix[FORM]
    made = carray(pointer(out.address), (x.rows, out.width), np.float32)[:, :n]
    if form == FLOAT32:
        multiply_float32(carray(pointer(address), (n, k), np.float32), rows, made)
    elif form == BFLOAT16:
        multiply_bfloat16(carray(pointer(address), (n, k), np.uint16), rows, made)
    else:
        multiply_integers(PackedRows(form, address, n, k // COLUMNS), x.quantized, made)


@compiled
def place_of(matrix: Whole, row: int, k: int) -> int:
    """The address of a row, or of the group of sixteen rows that it begins, in a matrix of k columns."""
    if matrix[FORM] == FLOAT32:
        return matrix[ADDRESS] + 4 * k * row
    if matrix[FORM] == BFLOAT16:
        return matrix[ADDRESS] + 2 * k * row
    return matrix[ADDRESS] + row // RECORD_ROWS * (k // COLUMNS) * SIZES[matrix[FORM]]


@compiled
def look_up(matrix: Whole, row: int, out: Array) -> None:
    """Copy a row of a float32 or packed matrix to `out` [k]."""
    k = len(out)
    if matrix[FORM] == FLOAT32:
        append(out, int64(0), carray(pointer(place_of(matrix, row, k)), k, np.float32))
    else:
        look_up_row(PackedRows(matrix[FORM], matrix[ADDRESS], matrix[COUNT], k // COLUMNS), row, out)


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
    """Apply the root mean square norm to the heads begin … end − 1 of each row of `wide` [T, (H + 2 Hkv) ·
    D], in place. `norms` [2 D + 1] are the weights for queries (`which` 0) and keys (1), and ε."""
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
def store(wide: Array, start: int, cache: Cache, cos: Array, sin: Array, begin: int, end: int) -> None:
    """Write the rotated keys and the values of the heads begin … end − 1 into a layer's cache, from position
    `start` on.

    `wide` [T, (H + 2 Hkv) · D] are queries, keys and values. cos and sin are [positions, D]; the first half
    of a sine row is negative.
    """
    dim = cache.dim
    heads, key = wide.shape[1] // dim - 2 * cache.heads, np.empty(dim, np.float32)
    for row in range(len(wide)):
        for head in range(begin, end):
            at, position = (heads + head) * dim, start + row
            rotate(wide[row], at, cos[position], sin[position], key)
            put(key, cache, int64(0), head, position)
            at += cache.heads * dim
            put(wide[row, at : at + dim], cache, int64(1), head, position)


@compiled
def silu_times(x: Array, y: Array, out: Array) -> None:
    """out = x · σ(x) · y of vectors; `out` may be x."""
    for i in range(len(x)):
        out[i] = x[i] / (np.float32(1.0) + exponential(-x[i])) * y[i]


@compiled
def do_task(queue: Queue, task: int) -> None:
    if queue[KIND] == ATTENTION:
        do_attention(queue, task)
    elif queue[KIND] == HEADS:
        do_heads(queue, task)
    elif queue[KIND] == ROW_STATS:
        do_row_stats(queue, task)
    else:
        do_product(queue, task)


@compiled
def do_product(queue: Queue, task: int) -> None:
    rows, n, k, each, parts = queue[ROWS], queue[N], queue[K], queue[EACH], queue[MATRICES]
    matrices = carray(pointer(queue[PARTS]), (parts, ENTRY), np.int64)
    begin, end = task * each, min(n, (task + 1) * each)
    x = Read(queue[X], rows, k, queue[QUANTIZED])
    if queue[KIND] == GATED:
        out = carray(pointer(queue[OUT]), (rows, n), np.float32)
        up = np.empty((rows, end - begin), np.float32)
        multiply_rows(matrices[0], begin, end, x, Rows(queue[OUT] + 4 * begin, rows, n))
        multiply_rows(matrices[1], begin, end, x, Rows(up.ctypes.data, rows, end - begin))
        for row in range(rows):
            silu_times(out[row, begin:end], up[row], out[row, begin:end])
        return
    first = int64(0)
    for part in range(parts):
        low, high = max(begin, first), min(end, first + matrices[part, COUNT])
        if low < high:
            multiply_rows(matrices[part], low - first, high - first, x, Rows(queue[OUT] + 4 * low, rows, n))
        first += matrices[part, COUNT]


@compiled
def do_row_stats(queue: Queue, task: int) -> None:
    rows, k = queue[ROWS], queue[K]
    logits = carray(pointer(queue[X]), (rows, k), np.float32)
    stats = carray(pointer(queue[OUT]), (rows, 4), np.float32)
    write_stats(logits[task], stats[task])


@compiled
def do_heads(queue: Queue, task: int) -> None:
    rows, heads, groups, dim, start = queue[ROWS], queue[QUERIES], queue[GROUPS], queue[DIM], queue[START]
    count, each = (heads + 2 * groups) * dim, heads // groups
    wide = carray(pointer(queue[WIDE]), (rows, count), np.float32)
    project(queue, wide, task)
    if queue[NORMS]:
        norms = carray(pointer(queue[NORMS]), 2 * dim + 1, np.float32)
        norm_heads(wide, task * each, (task + 1) * each, norms, int64(0))
        norm_heads(wide, heads + task, heads + task + 1, norms, int64(1))
    cache = Cache(queue[CACHE], queue[NUMBER], groups, queue[CAPACITY], dim)
    end, out = start + rows, carray(pointer(queue[OUT]), (rows, heads * dim), np.float32)
    cos = carray(pointer(queue[COS]), (end, dim), np.float32)
    sin = carray(pointer(queue[SIN]), (end, dim), np.float32)
    store(wide, start, cache, cos, sin, task, task + 1)
    attend_all(wide, queries_of(queue, int64(0), rows, task), cache, cos, sin, out)


@compiled
def queries_of(queue: Queue, first: int, count: int, group: int) -> Queries:
    """The queries of `count` rows that share a key head."""
    each = queue[QUERIES] // queue[GROUPS]
    return Queries(first, count, group * each, each, group, queue[START])


@compiled
def attend_all(wide: Array, who: Queries, cache: Cache, cos: Array, sin: Array, out: Array) -> None:
    """Attend to all positions that the last row sees."""
    sums = np.empty((who.rows * who.each, cache.dim + 2), np.float32)
    attend(wide, who, cache, cos, sin, int64(0), who.start + who.first + who.rows, sums)
    write(sums, who, out)


@compiled
def project(queue: Queue, wide: Array, task: int) -> None:
    """The queries, keys and values that belong to one key head."""
    rows, heads, groups, dim, n = queue[ROWS], queue[QUERIES], queue[GROUPS], queue[DIM], wide.shape[1]
    matrices = carray(pointer(queue[PROJECTIONS]), (3, ENTRY), np.int64)
    x = Read(queue[X], rows, queue[WIDTH], queue[QUANTIZED])
    bias = carray(pointer(queue[BIAS]), n, np.float32)
    for part in range(3):
        size = heads // groups * dim if part == 0 else dim
        begin = task * size if part == 0 else (heads + (part - 1) * groups + task) * dim
        multiply_rows(
            matrices[part], task * size, (task + 1) * size, x, Rows(queue[WIDE] + 4 * begin, rows, n)
        )
        for row in range(rows):
            for i in range(begin, begin + size):
                wide[row, i] += bias[i]


@compiled
def do_attention(queue: Queue, task: int) -> None:
    rows, heads, groups, dim, start = queue[ROWS], queue[QUERIES], queue[GROUPS], queue[DIM], queue[START]
    cache = Cache(queue[CACHE], queue[NUMBER], groups, queue[CAPACITY], dim)
    wide = carray(pointer(queue[X]), (rows, (heads + 2 * groups) * dim), np.float32)
    end, out = start + rows, carray(pointer(queue[OUT]), (rows, heads * dim), np.float32)
    cos = carray(pointer(queue[COS]), (end, dim), np.float32)
    sin = carray(pointer(queue[SIN]), (end, dim), np.float32)
    if not queue[SUMS]:
        first = task // groups * BLOCK
        who = queries_of(queue, first, min(BLOCK, rows - first), task % groups)
        attend_all(wide, who, cache, cos, sin, out)
        return
    parts, size = (end + PART - 1) // PART, rows * heads // groups
    group, part = task // parts, task % parts
    sums = carray(pointer(queue[SUMS]), (groups, parts, size, dim + 2), np.float32)
    who = queries_of(queue, int64(0), rows, group)
    attend(wide, who, cache, cos, sin, part * PART, min(end, (part + 1) * PART), sums[group, part])
