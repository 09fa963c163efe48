"""Compiled products are those of numpy, for vectors of either width, whatever is left over."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.narrow import WIDTHS, run

CHECK = """
import sys
import numpy as np
from omnidemo.backends.kernels import gemm
assert gemm.LANES == int(sys.argv[1])
rng = np.random.default_rng(0)
for n, k in ((1, 1), (3, 5), (4, 16), (7, 40), (13, 33), (64, 160)):
    weight = rng.normal(size=(n, k)).astype(np.float32)
    bits = (weight.view(np.uint32) >> 16).astype(np.uint16)
    for given, plain in ((weight, weight), (bits, (bits.astype(np.uint32) << 16).view(np.float32))):
        for rows in (1, 2, 3, 4, 5, 6, 11):
            x, out = rng.normal(size=(rows, k)).astype(np.float32), np.full((rows, n + 3), 7, np.float32)
            gemm.multiply(given, x, out[:, 1 : n + 1])
            assert np.allclose(out[:, 1 : n + 1], x @ plain.T, atol=1e-4), (n, k, rows, given.dtype)
            assert (out[:, 0] == 7).all() and (out[:, n + 1 :] == 7).all(), "it writes nothing beside"
"""


@pytest.mark.parametrize("width", WIDTHS)
def test_products(width: str, machine_code: Path) -> None:
    run(CHECK, width, machine_code)
