"""What is asked of pairs whose answers another process writes."""

from __future__ import annotations

import threading

import pytest
import torch
from torch import Tensor

from omnidemo.core.records import Generation
from omnidemo.pair.pair import Pair


def other_weights(pair: Pair) -> dict[str, Tensor]:
    """Random numbers in place of the drafter's matrices."""
    weights = pair.drafter.runner.weights()
    return {
        name: torch.randn(weight.shape, generator=torch.Generator().manual_seed(5))
        for name, weight in weights.items()
        if weight.dim() == 2
    }


def drafts(pair: Pair) -> tuple[list[tuple[int, int]], str]:
    """How an answer was drafted, and whose guesses it says that these were."""
    made = pair.generate("the small duck", method="union", max_new_tokens=24, learn=False, draft_length=4)
    return [(done.proposed, done.accepted) for done in made.rounds], made.guesses


def stopped(pair: Pair) -> Generation:
    """An answer that is stopped after its first round."""
    asked = threading.Event()
    steps = pair.stream("duck", max_new_tokens=200, method="autoregressive", cancelled=asked.is_set)
    next(steps)
    asked.set()
    with pytest.raises(StopIteration) as ended:
        while True:
            next(steps)
    made: Generation = ended.value.value
    assert made.finish_reason == "cancelled" and 1 <= len(made.token_ids) < 200
    return made
