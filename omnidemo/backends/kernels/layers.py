"""The steps of a pass of a few rows: products with matrices of any form, and what lies between them.

A model is a table of matrices; which form one has is asked once for a task, never in a loop.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import carray

from omnidemo.backends.call_layout import Array, Whole
from omnidemo.backends.kernels.attention_kernel import rotate
from omnidemo.backends.kernels.gemm import multiply_bfloat16, multiply_float32
from omnidemo.backends.kernels.packed_gemm import SIZES, Records, multiply_records, unpack_one
from omnidemo.backends.kernels.rows_kernel import append, compiled, exponential, int64
from omnidemo.backends.kernels.work_queue import pointer
from omnidemo.backends.packed_forms import BFLOAT16, COLUMNS, FLOAT32, ROWS

# A matrix, in a row of a table: its form, where it begins, and how many rows it has.
FORM, ADDRESS, COUNT = range(3)


class Rows(NamedTuple):
    """Rows of float32 numbers: where the first begins, how many there are, and how many numbers lie from one
    to the next."""

    address: int
    rows: int
    width: int


@compiled
def multiply_rows(matrix: Whole, begin: int, end: int, x: Rows, out: Rows) -> None:
    """out = x · Wᵀ for the rows begin … end − 1 of a matrix in the table, all of whose columns x has; `begin`
    is a multiple of 16."""
    n, k, address = end - begin, x.width, place_of(matrix, begin, x.width)
    rows = carray(pointer(x.address), (x.rows, k), np.float32)
    made = carray(pointer(out.address), (x.rows, out.width), np.float32)[:, :n]
    if matrix[FORM] == FLOAT32:
        multiply_float32(carray(pointer(address), (n, k), np.float32), rows, made)
    elif matrix[FORM] == BFLOAT16:
        multiply_bfloat16(carray(pointer(address), (n, k), np.uint16), rows, made)
    else:
        multiply_records(Records(matrix[FORM], address, n, k // COLUMNS), rows, made)


@compiled
def place_of(matrix: Whole, row: int, k: int) -> int:
    """Where a row begins in a matrix of k columns, or the group of sixteen that it is the first of."""
    if matrix[FORM] == FLOAT32:
        return matrix[ADDRESS] + 4 * k * row
    if matrix[FORM] == BFLOAT16:
        return matrix[ADDRESS] + 2 * k * row
    return matrix[ADDRESS] + row // ROWS * (k // COLUMNS) * SIZES[matrix[FORM]]


@compiled
def look_up(matrix: Whole, row: int, out: Array) -> None:
    """Row of a matrix in float32, or packed, to out [k]."""
    k = len(out)
    if matrix[FORM] == FLOAT32:
        append(out, int64(0), carray(pointer(place_of(matrix, row, k)), k, np.float32))
    else:
        unpack_one(Records(matrix[FORM], matrix[ADDRESS], matrix[COUNT], k // COLUMNS), row, out)


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
def silu_times(x: Array, y: Array, out: Array) -> None:
    """x · σ(x) · y of vectors; `out` may be x."""
    for i in range(len(x)):
        out[i] = x[i] / (np.float32(1.0) + exponential(-x[i])) * y[i]
