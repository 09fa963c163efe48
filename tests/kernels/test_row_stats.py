"""What a compiled pass tells of its logits is what they say."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from lab.equality.tiny import random_model
from omnidemo.backends import compiled_passes as cpu_passes
from omnidemo.backends.fused_llama import FusedCache, FusedLlama
from omnidemo.decoding.row_ops import BEST, MASS, TEMPERED, TOP, RowStats
from omnidemo.decoding.sampling import SamplingParams


def stats_of(rows: Any, temperature: float) -> RowStats:
    """Those of logits [R, V] by numpy."""
    best = rows.argmax(-1)
    top = rows[np.arange(len(rows)), best]
    away = (rows - top[:, None]).astype(np.float64)
    return RowStats(
        rows,
        np.stack([best, top, np.exp(away).sum(-1), np.exp(away / (temperature or 1.0)).sum(-1)], 1).astype(
            np.float32
        ),
        temperature,
    )


@pytest.fixture(scope="module")
def runner() -> FusedLlama:
    return FusedLlama(random_model("llama", 517, seed=2))


@pytest.mark.parametrize("temperature", [0.0, 0.3, 1.0, 1.8])
@pytest.mark.parametrize("rows", [1, 2, 5])
@pytest.mark.parametrize("shared", [False, True])
def test_a_pass_tells_its_peaks(
    runner: FusedLlama, temperature: float, rows: int, shared: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if shared:
        monkeypatch.setattr(cpu_passes, "WORTH_SHARING", 1)
        monkeypatch.setattr(cpu_passes.CompiledPasses, "helpers", property(lambda self: 2))
    cache = FusedCache(runner)
    cache.forward([1, 2, 3], 1)
    stats = cache.forward([4, 5, 6, 7, 8], rows, temperature).stats
    assert stats is not None and cache.length == 8
    cache.trim(3)
    logits = cache.forward([4, 5, 6, 7, 8], rows).logits
    assert np.array_equal(logits, stats.rows)
    wanted = stats_of(stats.rows, temperature)
    columns = [BEST, TOP, MASS, *([TEMPERED] if temperature else [])]
    assert np.allclose(stats.numbers[:, columns], wanted.numbers[:, columns], rtol=3e-6)
    assert stats.best() == logits.argmax(-1).tolist()
    tokens = [3, 500, 17, 0, 516][:rows]
    assert stats.token_probs(tokens) == pytest.approx(
        [
            float(np.exp(row - row.max())[one] / np.exp(row - row.max()).sum())
            for row, one in zip(logits, tokens, strict=True)
        ],
        rel=1e-5,
    )
    assert stats.token_probs(tokens[1:], 1) == pytest.approx(stats.token_probs(tokens)[1:])
    if temperature:
        law = SamplingParams(temperature).probs(logits)
        for row in range(rows):
            assert np.allclose(stats.probs(row), law[row], rtol=1e-5, atol=1e-9)
        assert stats.tempered_probs(tokens) == pytest.approx(
            [float(row[one]) for row, one in zip(law, tokens, strict=True)], rel=1e-5, abs=1e-30
        )


@pytest.mark.parametrize("size", [1, 2, 255, 256, 257, 8192, 50_001])
def test_the_highest_is_numpys(size: int) -> None:
    from omnidemo.backends.kernels.rows_kernel import highest  # not before its machine code is there

    chance = np.random.default_rng(size)
    for row in (
        chance.standard_normal(size), -abs(chance.standard_normal(size)), np.zeros(size),
        np.full(size, -np.inf), np.full(size, -3.5),
        chance.integers(-2, 2, size), np.where(chance.random(size) < 0.9, -np.inf,
            chance.standard_normal(size)),
    ):  # fmt: skip
        row = row.astype(np.float32)
        assert highest(row) == row.argmax()  # the lowest among equals
    row[size // 2] = np.nan
    assert highest(row) == size // 2  # and never an index outside


def test_a_mass_of_far_away_logits() -> None:
    from omnidemo.backends.kernels.rows_kernel import mass

    row = np.array([1e4, 0.0, -np.inf, 1e4 - 1.0], np.float32)
    assert mass(row, row[0], np.float32(1.0)) == pytest.approx(1 + math.exp(-1))
    assert mass(row, row[0], np.float32(0.5)) == pytest.approx(1 + math.exp(-0.5))
