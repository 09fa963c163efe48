"""Packed matrices have the weights that they were made of."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from omnidemo.backends.packed_forms import COLUMNS, LAYOUTS, PackedMatrix, Quantized


def vars_of(quantized: Quantized) -> tuple[NDArray[Any] | None, ...]:
    return quantized.quants, quantized.scales, quantized.minima, quantized.super_scales


def random_matrix(form: int, rows: int, columns: int) -> tuple[PackedMatrix, NDArray[np.float32]]:
    """A packed matrix, and the same in float32, computed as a file's reader does."""
    rng, layout = np.random.default_rng(rows), LAYOUTS[form]
    first = 0 if layout.minima else -(2 ** (layout.bits - 1))
    quants = rng.integers(first, first + 2**layout.bits, (rows, columns)).astype(
        np.int8 if first else np.uint8
    )
    groups = columns // COLUMNS * layout.scales
    scales, minima = (rng.normal(size=(rows, groups)).astype(np.float16).astype(np.float32) for _ in range(2))
    super_scales = None
    if layout.blocks > 1:
        shares = columns // (COLUMNS * layout.blocks)
        super_scales = (
            rng.normal(size=(rows, shares, 1 + layout.minima)).astype(np.float16).astype(np.float32)
        )
        limits = np.iinfo(layout.number)
        scales, minima = (
            rng.integers(limits.min // 2, limits.max // 2, (rows, groups)).astype(layout.number)
            for _ in range(2)
        )
    of_all = Quantized(quants, scales, minima if layout.minima else None, super_scales)
    wide, low = of_all.numbers
    plain = np.repeat(wide, columns // groups, 1) * quants.astype(np.float32)
    if low is not None:
        plain = plain + np.repeat(low, columns // groups, 1)

    def read(begin: int, end: int) -> Quantized:
        return Quantized(*(None if one is None else one[begin:end] for one in vars_of(of_all)))

    return PackedMatrix.of(form, rows, columns, read), plain


@pytest.mark.parametrize("form", LAYOUTS)
@pytest.mark.parametrize("rows", [1, 16, 21, 700])
def test_a_packed_matrix_has_the_weights_that_it_was_made_of(form: int, rows: int) -> None:
    matrix, plain = random_matrix(form, rows, 1024)
    assert np.array_equal(matrix.values(), plain)
    assert matrix.tiles.ctypes.data % 64 == 0
