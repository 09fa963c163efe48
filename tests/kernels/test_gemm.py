"""Compiled products are those of numpy, for vectors of either width, whatever is left over."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from llvmlite import binding

CHECK = """
import sys
from llvmlite import binding
if sys.argv[1] == "narrow":
    features = binding.get_host_cpu_features()
    features.update({name: False for name in features if name.startswith("avx512")})
    binding.get_host_cpu_features = lambda: features
import numpy as np
from omnidemo.backends.kernels import gemm
assert gemm.LANES == 8 or sys.argv[1] != "narrow"
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


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], subprocess.CompletedProcess[str]]:
    """The check for vectors of a width, which is compiled anew and takes seconds."""

    @cache
    def ran(width: str) -> subprocess.CompletedProcess[str]:
        environment = {
            **os.environ,
            "NUMBA_CACHE_DIR": str(tmp_path_factory.mktemp("code")),
            "PYTHONPATH": str(Path(__file__).parents[2]),
        }
        return subprocess.run(
            [sys.executable, "-c", CHECK, width], env=environment, capture_output=True, text=True, timeout=200
        )

    return ran


@pytest.mark.parametrize("width", ["narrow", "as wide as can be"])
def test_products(width: str, run: Callable[[str], subprocess.CompletedProcess[str]]) -> None:
    """Where a processor has no wider vectors than the narrow ones, both are the same check, which is made
    once."""
    wide = any(name.startswith("avx512") and has for name, has in binding.get_host_cpu_features().items())
    done = run(width if wide else "narrow")
    assert done.returncode == 0, done.stderr
