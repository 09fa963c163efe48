"""Probabilities of single tokens: the plain form, the compiled one and torch's softmax agree."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import torch

from omnidemo.core import shares
from omnidemo.core.shares import share, use_compiled


@pytest.fixture(params=["plain", "compiled"])
def form(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setattr(shares, "_compiled", None)
    if request.param == "compiled":
        from omnidemo.runtime.compiled import shares as fast

        fast.compile_all()
        use_compiled(fast.share)
    yield request.param


@pytest.mark.parametrize("size", [1, 7, 8192, 50_001])
@pytest.mark.parametrize("scale", [0.0, 1.0, 10.0])
def test_a_share_is_the_softmax(form: str, size: int, scale: float) -> None:
    logits = torch.randn(size, generator=torch.Generator().manual_seed(size)) * scale - 50
    logits[size // 2 + 1 :: 5] = -torch.inf
    law = logits.double().softmax(-1)
    for token in {0, size - 1, size // 2, int(logits.argmax()), int(logits.argmin())}:
        assert share(logits.numpy(), token) == pytest.approx(float(law[token]), rel=5e-6, abs=1e-30)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_far_apart_logits_do_not_overflow(form: str, dtype: type) -> None:
    row = np.array([1e4, 0.0, -np.inf, 1e4 - 1.0], dtype)
    with np.errstate(over="raise", invalid="raise"):
        assert [share(row, token) for token in range(4)] == pytest.approx([0.7310586, 0.0, 0.0, 0.2689414])


def test_rows_that_the_compiled_form_does_not_know_are_served(form: str) -> None:
    rows = np.random.default_rng(0).normal(size=(4, 6)).astype(np.float32)
    wanted = torch.from_numpy(rows.copy()).softmax(0)
    assert [share(rows[:, 2], token) for token in range(4)] == pytest.approx(wanted[:, 2].tolist(), rel=1e-5)
