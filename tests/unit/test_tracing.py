"""What is kept of the target's law for training."""

from __future__ import annotations

import pytest
import torch

from omnidemo.decoding import tracing
from omnidemo.decoding.tracing import _largest


@pytest.mark.parametrize("k", [1, 5, 40])
@pytest.mark.parametrize("elsewhere", [False, True])
def test_the_largest_are_those_of_topk(k: int, elsewhere: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if elsewhere:
        monkeypatch.setattr(tracing, "on_host", lambda tensor: False)
    rows = torch.rand(7, 40, generator=torch.Generator().manual_seed(k))
    values, places = _largest(rows, k)
    wanted = rows.topk(k)
    assert values.sort(descending=True).values.equal(wanted.values)
    assert places.sort().values.equal(wanted.indices.sort().values) and values.equal(rows.gather(1, places))
