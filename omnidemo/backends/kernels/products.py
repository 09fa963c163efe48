"""Products with matrices of any form. A model is a table of them; which form one has is asked once for a task, never in a loop."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from llvmlite import binding
from numba import carray, cfunc, types
from numpy.typing import NDArray

from omnidemo.backends.kernels.gemm import Array, multiply
from omnidemo.backends.kernels.packed_gemm import Records, multiply_packed, record_size, unpack_row
from omnidemo.backends.kernels.rows_kernel import FAST, append, compiled, int64
from omnidemo.backends.kernels.work_queue import pointer
from omnidemo.backends.packed_forms import BFLOAT16, COLUMNS, FLOAT32, ROWS

# A matrix, in a row of a table: its form, where it begins, and how many rows it has.
FORM, ADDRESS, COUNT = range(3)
Matrices = NDArray[np.int64]  # [matrices, 3]
run_product: Any = types.ExternalFunction("omnidemo_run_product", types.void(*[types.int64] * 8))


class Rows(NamedTuple):
    """Rows of float32 numbers: where the first begins, how many there are, and how many numbers lie from one to the next."""

    address: int
    rows: int
    width: int


@compiled
def multiply_rows(matrix: NDArray[np.int64], begin: int, end: int, x: Rows, out: Rows) -> None:
    """out = x · Wᵀ for the rows begin … end − 1 of a matrix in the table, all of whose columns x has; `begin` is a multiple of 16."""
    run_product(matrix[FORM], place_of(matrix, begin, x.width), end - begin, x.address, x.rows, x.width, out.address, out.width)


@compiled
def place_of(matrix: NDArray[np.int64], row: int, k: int) -> int:
    """Where a row begins in a matrix of k columns, or the group of sixteen that it is the first of."""
    if matrix[FORM] == FLOAT32:
        return matrix[ADDRESS] + 4 * k * row
    if matrix[FORM] == BFLOAT16:
        return matrix[ADDRESS] + 2 * k * row
    return matrix[ADDRESS] + row // ROWS * (k // COLUMNS) * record_size(matrix[FORM])


@compiled
def look_up(matrix: NDArray[np.int64], row: int, out: Array) -> None:
    """Row of a matrix in float32, or packed, to out [k]."""
    k = len(out)
    if matrix[FORM] == FLOAT32:
        append(out, int64(0), carray(pointer(place_of(matrix, row, k)), k, np.float32))
    else:
        unpack_row(Records(matrix[FORM], matrix[ADDRESS], matrix[COUNT], k // COLUMNS), row, out)


# Called by its address, so that its code is optimised once, and not again with each function that multiplies.
@cfunc(types.void(*[types.int64] * 8), cache=True, fastmath=FAST, error_model="numpy")
def _run_product(form: int, address: int, n: int, x_at: int, rows: int, k: int, out_at: int, width: int) -> None:
    """x [rows, k] times n rows of a matrix of a form, to the first n columns of [rows, width]."""
    x, out = carray(pointer(x_at), (rows, k), np.float32), carray(pointer(out_at), (rows, width), np.float32)[:, :n]
    if form == FLOAT32:
        multiply(carray(pointer(address), (n, k), np.float32), x, out)
    elif form == BFLOAT16:
        multiply(carray(pointer(address), (n, k), np.uint16), x, out)
    else:
        multiply_packed(Records(form, address, n, k // COLUMNS), x, out)


binding.add_symbol("omnidemo_run_product", _run_product.address)
