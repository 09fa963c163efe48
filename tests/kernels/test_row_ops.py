"""Probabilities of single tokens, and tokens of single numbers: the plain form, the compiled one and torch
agree."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import torch

from omnidemo.backends import compile_kernels
from omnidemo.decoding.row_ops import BLOCK, inverse_cdf, softmax_given, token_prob


@pytest.fixture(params=["plain", "compiled"])
def form(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setattr("omnidemo.decoding.sources.compiled.functions", None)
    if request.param == "compiled":
        monkeypatch.setattr("omnidemo.decoding.sources.compiled.functions", compile_kernels.kernels())
    yield request.param


@pytest.mark.parametrize("size", [1, 7, 8192, 50_001])
@pytest.mark.parametrize("scale", [0.0, 1.0, 10.0])
def test_a_token_prob_is_the_softmax(form: str, size: int, scale: float) -> None:
    logits = torch.randn(size, generator=torch.Generator().manual_seed(size)) * scale - 50
    logits[size // 2 + 1 :: 5] = -torch.inf
    probs = logits.double().softmax(-1)
    for token in {0, size - 1, size // 2, int(logits.argmax()), int(logits.argmin())}:
        assert token_prob(logits.numpy(), token) == pytest.approx(float(probs[token]), rel=5e-6, abs=1e-30)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_far_apart_logits_do_not_overflow(form: str, dtype: type) -> None:
    row = np.array([1e4, 0.0, -np.inf, 1e4 - 1.0], dtype)
    with np.errstate(over="raise", invalid="raise"):
        assert [token_prob(row, token) for token in range(4)] == pytest.approx(
            [0.7310586, 0.0, 0.0, 0.2689414]
        )


def test_rows_that_the_compiled_form_does_not_know_are_served(form: str) -> None:
    rows = np.random.default_rng(0).normal(size=(4, 6)).astype(np.float32)
    wanted = torch.from_numpy(rows.copy()).softmax(0)
    assert [token_prob(rows[:, 2], token) for token in range(4)] == pytest.approx(
        wanted[:, 2].tolist(), rel=1e-5
    )


@pytest.mark.parametrize("size", [1, BLOCK - 1, BLOCK, BLOCK + 1, 5 * BLOCK, 10_001])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_draw_is_where_the_running_sum_exceeds_a_number(form: str, size: int, dtype: type) -> None:
    rng = np.random.default_rng(size)
    probs = np.exp(4 * rng.normal(size=size)).astype(dtype)
    probs[::3] = 0.0 if size > 1 else 1.0
    probs /= probs.sum()
    sums = probs.cumsum(dtype=np.float64)
    for u in rng.random(300):
        assert inverse_cdf(probs, u) == int(sums.searchsorted(u * sums[-1], side="right"))


@pytest.mark.parametrize("u", [0.0, 1.0 - 2**-53])
@pytest.mark.parametrize("at", [0, BLOCK - 1, BLOCK, 3 * BLOCK - 1])
def test_the_ends_of_the_range_draw_what_is_probable(form: str, u: float, at: int) -> None:
    probs = np.zeros(3 * BLOCK, np.float32)
    probs[at] = 1.0
    assert inverse_cdf(probs, u) == at
    probs[at] = 0.1
    probs[7] = 0.9
    assert inverse_cdf(probs, u) == (min(at, 7) if u == 0.0 else max(at, 7))


@pytest.mark.parametrize("factor", [0.5, 1.0, 3.0])
def test_softmax_given_its_sum_is_the_softmax(form: str, factor: float) -> None:
    logits = torch.randn(8192, generator=torch.Generator().manual_seed(1)) * 5
    logits[::7] = -torch.inf
    probs = (logits.double() * factor).softmax(-1)
    top = float(logits.max())
    mass = float(((logits.double() - top) * factor).exp().sum())
    found = softmax_given(logits.numpy(), top, factor, mass)
    assert np.allclose(found, probs.numpy(), rtol=1e-5, atol=1e-30) and float(found.sum()) == pytest.approx(
        1.0, abs=1e-5
    )
    assert not found[::7].any()
