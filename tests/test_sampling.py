"""Reading tensors on the host with numpy, and draws by blocks: the same numbers as plainly."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from omnidemo.core import sampling
from omnidemo.core.sampling import BLOCK, Sampler, Warp, chosen, highest, highest_each, total


@pytest.fixture(params=["here", "elsewhere"])
def place(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "elsewhere":
        monkeypatch.setattr(sampling, "on_host", lambda tensor: False)
    return str(request.param)


def test_the_highest_is_the_first_among_equals(place: str) -> None:
    logits = torch.tensor([[0.0, 2.0, 2.0, -torch.inf], [3.0, 3.0, 3.0, 3.0], [-torch.inf, -torch.inf, -5.0, -6.0]])
    assert highest_each(logits) == [1, 0, 2] == [highest(row) for row in logits]


def test_single_entries_of_laws(place: str) -> None:
    laws = torch.rand(3, 50, generator=torch.Generator().manual_seed(1)).softmax(-1)
    assert chosen(laws, [4, 7]) == [float(laws[0, 4]), float(laws[1, 7])]
    assert total(laws[2], [1, 3, 49]) == pytest.approx(float(laws[2, 1] + laws[2, 3] + laws[2, 49]), rel=1e-6)


def _plain(law: Tensor, u: float) -> int:
    """The first token at which the running sum exceeds u."""
    sums = law.numpy().cumsum(dtype=np.float64)
    return int(sums.searchsorted(u * sums[-1], side="right"))


class _Given:
    def __init__(self, u: float) -> None:
        self.u = u

    def random(self) -> float:
        return self.u


def _draw(law: Tensor, u: float) -> int:
    sampler = Sampler(0)
    sampler._host = _Given(u)  # type: ignore[assignment]
    return sampler.draw(law)


@pytest.mark.parametrize("size", [1, BLOCK - 1, BLOCK, BLOCK + 1, 5 * BLOCK, 10_001])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_draw_by_blocks_is_the_plain_one(size: int, dtype: torch.dtype) -> None:
    law = Warp(1.0).law(torch.randn(size, generator=torch.Generator().manual_seed(size), dtype=dtype) * 4)
    law[::3] = 0.0 if size > 1 else 1.0
    rng = np.random.default_rng(size)
    for u in rng.random(300):
        assert _draw(law, u) == _plain(law, u)


@pytest.mark.parametrize("u", [0.0, 1.0 - 2**-53])
@pytest.mark.parametrize("at", [0, BLOCK - 1, BLOCK, 3 * BLOCK - 1])
def test_the_ends_of_the_range_draw_what_is_probable(u: float, at: int) -> None:
    law = torch.zeros(3 * BLOCK)
    law[at] = 1.0
    assert _draw(law, u) == at
    law[at] = 0.1
    law[7] = 0.9
    assert _draw(law, u) == (min(at, 7) if u == 0.0 else max(at, 7))
