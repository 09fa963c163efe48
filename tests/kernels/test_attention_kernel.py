"""Attention to a cache is that of numpy, in one part or several, and the same bits in a pass of any rows."""

from __future__ import annotations

import numpy as np
import pytest

from omnidemo.backends.kernels import attention_kernel
from omnidemo.backends.kernels.attention_kernel import PART, Queries


def attended(
    wide: np.ndarray, who: Queries, cache: np.ndarray, cos: np.ndarray, sin: np.ndarray
) -> np.ndarray:
    """By the kernel, to all positions at once."""
    dim, end = cache.shape[3], who.start + who.first + who.rows
    sums = np.empty((who.rows * who.each, dim + 2), np.float32)
    attention_kernel.attend(wide, who, cache, cos, sin, 0, end, sums)
    out = np.zeros((len(wide), wide.shape[1] - 2 * cache.shape[1] * dim), np.float32)
    attention_kernel.write(sums, who, out)
    return out


def rotated(x: np.ndarray, cos: np.ndarray, sin: np.ndarray) -> np.ndarray:
    half = len(x) // 2
    return x * cos + np.concatenate([x[half:], x[:half]]) * sin


@pytest.mark.parametrize("dim", [4, 24, 64, 80])
@pytest.mark.parametrize("start", [0, 5, PART - 2, 2 * PART + 3])
def test_attention_is_that_of_numpy_and_the_same_for_each_row_alone(dim: int, start: int) -> None:
    rng, groups, each, count = np.random.default_rng(0), 2, 3, 5
    capacity = start + count + 3
    cache = rng.normal(size=(2, groups, capacity, dim)).astype(np.float32)
    cache[:, :, start + count :] = np.nan  # what is not there yet is never used
    angles = rng.normal(size=(capacity, dim // 2))
    cos = np.concatenate([np.cos(angles)] * 2, 1).astype(np.float32)
    sin = np.concatenate([-np.sin(angles), np.sin(angles)], 1).astype(np.float32)
    wide = rng.normal(size=(count, (groups * each + 2 * groups) * dim)).astype(np.float32)
    for group in range(groups):
        out = attended(wide, Queries(0, count, group * each, each, group, start), cache, cos, sin)
        for row in range(count):
            end, heads = start + row + 1, range(group * each, (group + 1) * each)
            for head in heads:
                part = slice(head * dim, (head + 1) * dim)
                query = rotated(wide[row, part], cos[end - 1], sin[end - 1])
                scores = cache[0, group, :end].astype(np.float64) @ query / np.sqrt(dim)
                weights = np.exp(scores - scores.max())
                wanted = weights @ cache[1, group, :end] / weights.sum()
                np.testing.assert_allclose(out[row, part], wanted, atol=2e-5)
            alone = attended(
                wide[row : row + 1], Queries(0, 1, group * each, each, group, start + row), cache, cos, sin
            )
            own = slice(group * each * dim, (group + 1) * each * dim)
            np.testing.assert_array_equal(alone[0, own], out[row, own])


def test_parts_that_others_attended_to_come_to_the_same_bits() -> None:
    rng, dim, start = np.random.default_rng(1), 64, 3 * PART - 2
    end = start + 4
    cache = rng.normal(size=(2, 1, end, dim)).astype(np.float32)
    cos, sin = np.ones((end, dim), np.float32), np.zeros((end, dim), np.float32)
    wide, who = rng.normal(size=(4, 5 * dim)).astype(np.float32), Queries(0, 4, 0, 3, 0, start)
    parts = np.empty((4, 12, dim + 2), np.float32)
    for part in reversed(range(4)):
        begin = part * PART
        attention_kernel.attend(wide, who, cache, cos, sin, begin, min(end, begin + PART), parts[part])
    for part in range(1, 4):
        attention_kernel.join(parts[0], parts[part], dim)
    out = np.zeros((4, 3 * dim), np.float32)
    attention_kernel.write(parts[0], who, out)
    np.testing.assert_array_equal(out, attended(wide, who, cache, cos, sin))
