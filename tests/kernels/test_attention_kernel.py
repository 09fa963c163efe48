"""Attention to a cache is that of numpy, in one part or several, and the same bits in a pass of any rows."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.narrow import WIDTHS, run

CHECK = """
import sys
import numpy as np
from omnidemo.backends.kernels.attention_kernel import PART, Queries, attend, join, write
from omnidemo.backends.kernels.gemm import LANES

assert LANES == int(sys.argv[1])
rng, groups, each, rows = np.random.default_rng(0), 2, 3, 5

def attended(wide, who, cache, cos, sin):
    dim, end = cache.shape[3], who.start + who.first + who.rows
    sums = np.empty((who.rows * who.each, dim + 2), np.float32)
    attend(wide, who, cache, cos, sin, 0, end, sums)
    out = np.zeros((len(wide), wide.shape[1] - 2 * groups * dim), np.float32)
    write(sums, who, out)
    return out

def in_parts(wide, who, cache, cos, sin):
    dim, end = cache.shape[3], who.start + who.first + who.rows
    parts = np.empty((-(-end // PART), who.rows * who.each, dim + 2), np.float32)
    for part in reversed(range(len(parts))):
        attend(wide, who, cache, cos, sin, part * PART, min(end, (part + 1) * PART), parts[part])
    for part in range(1, len(parts)):
        join(parts[0], parts[part], dim)
    out = np.zeros((len(wide), wide.shape[1] - 2 * groups * dim), np.float32)
    write(parts[0], who, out)
    return out

for dim in (4, 24, 64, 80):
    for start in (0, 5, PART - 2, 2 * PART + 3):
        where = dim, start
        capacity, half = start + rows + 3, dim // 2
        cache = rng.normal(size=(2, groups, capacity, dim)).astype(np.float32)
        cache[:, :, start + rows :] = np.nan  # what is not there yet is never used
        angles = rng.normal(size=(capacity, half))
        cos = np.concatenate([np.cos(angles)] * 2, 1).astype(np.float32)
        sin = np.concatenate([-np.sin(angles), np.sin(angles)], 1).astype(np.float32)
        wide = rng.normal(size=(rows, (groups * each + 2 * groups) * dim)).astype(np.float32)
        for group in range(groups):
            who = Queries(0, rows, group * each, each, group, start)
            out = attended(wide, who, cache, cos, sin)
            own = slice(group * each * dim, (group + 1) * each * dim)
            assert (in_parts(wide, who, cache, cos, sin) == out).all(), where
            for row in range(rows):
                end = start + row + 1
                for head in range(group * each, (group + 1) * each):
                    part = slice(head * dim, (head + 1) * dim)
                    query = wide[row, part]
                    query = query * cos[end - 1] + np.concatenate([query[half:], query[:half]]) * sin[end - 1]
                    scores = cache[0, group, :end].astype(np.float64) @ query / np.sqrt(dim)
                    weights = np.exp(scores - scores.max())
                    wanted = weights @ cache[1, group, :end] / weights.sum()
                    assert np.allclose(out[row, part], wanted, atol=2e-5), where
                who = Queries(0, 1, group * each, each, group, start + row)
                alone = attended(wide[row : row + 1], who, cache, cos, sin)
                assert (alone[0, own] == out[row, own]).all(), where
"""


@pytest.mark.parametrize("width", WIDTHS)
def test_attention(width: str, tmp_path: Path) -> None:
    run(CHECK, width, tmp_path)
