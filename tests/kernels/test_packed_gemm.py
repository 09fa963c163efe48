"""Products with packed weights are those with the same weights in float32, for vectors of either width,
whatever is left over."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from omnidemo.backends.packed_forms import COLUMNS, LAYOUTS, Coded, PackedMatrix
from tests.support.narrow import WIDTHS, run

CHECK = """
import sys
import numpy as np
from omnidemo.backends.kernels import gemm, packed_gemm
from omnidemo.backends.packed_forms import COLUMNS, LAYOUTS
from tests.kernels.test_packed_gemm import random_matrix
assert gemm.LANES == int(sys.argv[1])
rng = np.random.default_rng(0)
for form in LAYOUTS:
    for n, k in ((1, 32), (3, 64), (4, 96), (7, 576), (16, 32), (52, 256)):
        k = -(-k // (COLUMNS * LAYOUTS[form].blocks)) * COLUMNS * LAYOUTS[form].blocks
        matrix, plain = random_matrix(form, n, k)
        records = packed_gemm.Records(form, matrix.records.ctypes.data, n, k // COLUMNS)
        for rows in (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 16, 17, 31, 64):
            x, out = rng.normal(size=(rows, k)).astype(np.float32), np.full((rows, n + 3), 7, np.float32)
            wanted = x.astype(float) @ plain.T.astype(float)
            packed_gemm.multiply_packed(records, x, out[:, 1 : n + 1])
            bound = 2e-6 * np.abs(x).sum(-1).max(initial=1) * np.abs(plain).max()
            assert np.allclose(out[:, 1 : n + 1], wanted, atol=bound), (form, n, k, rows)
            assert (out[:, 0] == 7).all() and (out[:, n + 1 :] == 7).all(), "it writes nothing beside"
            for which in {0, rows // 2, rows - 1} if rows else ():
                alone = np.empty((1, n), np.float32)
                packed_gemm.multiply_packed(records, x[which : which + 1], alone)
                # sums are in one order, however many rows there are
                assert np.array_equal(alone[0], out[which, 1 : n + 1]), (form, n, k, rows)
        row = np.empty(k, np.float32)
        for which in range(n):
            packed_gemm.unpack_row(records, which, row)
            assert np.array_equal(row, plain[which]), "a weight is what it is in float32"
"""


def vars_of(coded: Coded) -> tuple[NDArray[Any] | None, ...]:
    return coded.codes, coded.scales, coded.minima, coded.factors


def random_matrix(form: int, rows: int, columns: int) -> tuple[PackedMatrix, NDArray[np.float32]]:
    """A packed matrix, and the same in float32, computed as a file's reader does."""
    rng, layout = np.random.default_rng(rows), LAYOUTS[form]
    first = 0 if layout.minima else -(2 ** (layout.bits - 1))
    codes = rng.integers(first, first + 2**layout.bits, (rows, columns)).astype(
        np.int8 if first else np.uint8
    )
    groups = columns // COLUMNS * layout.scales
    scales, minima = (rng.normal(size=(rows, groups)).astype(np.float16).astype(np.float32) for _ in range(2))
    factors = None
    if layout.blocks > 1:
        shares = columns // (COLUMNS * layout.blocks)
        factors = rng.normal(size=(rows, shares, 1 + layout.minima)).astype(np.float16).astype(np.float32)
        limits = np.iinfo(layout.number)
        scales, minima = (
            rng.integers(limits.min // 2, limits.max // 2, (rows, groups)).astype(layout.number)
            for _ in range(2)
        )
    of_all = Coded(codes, scales, minima if layout.minima else None, factors)
    wide, low = of_all.numbers
    plain = np.repeat(wide, columns // groups, 1) * codes.astype(np.float32)
    if low is not None:
        plain = plain + np.repeat(low, columns // groups, 1)

    def read(begin: int, end: int) -> Coded:
        return Coded(*(None if one is None else one[begin:end] for one in vars_of(of_all)))

    return PackedMatrix.of(form, rows, columns, read), plain


@pytest.mark.parametrize("form", LAYOUTS)
@pytest.mark.parametrize("rows", [1, 16, 21, 700])
def test_a_packed_matrix_has_the_weights_that_it_was_made_of(form: int, rows: int) -> None:
    matrix, plain = random_matrix(form, rows, 1024)
    assert np.array_equal(matrix.values(), plain)
    assert matrix.records.ctypes.data % 64 == 0


@pytest.mark.parametrize("width", WIDTHS)
def test_products(width: str, machine_code: Path) -> None:
    run(CHECK, width, machine_code)
