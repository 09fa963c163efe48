"""Products with matrices of any form. A model is a table of them; which form one has is asked once for a
task, never in a loop."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import carray

from omnidemo.backends.call_layout import Array, Whole
from omnidemo.backends.kernels.gemm import multiply_bfloat16, multiply_float32
from omnidemo.backends.kernels.packed_gemm import SIZES, Records, multiply_records, unpack_one
from omnidemo.backends.kernels.rows_kernel import append, compiled, int64
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
