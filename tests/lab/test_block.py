"""A block of guesses in one step: what its masks see, rounds of known guesses, and that it learns."""

from __future__ import annotations

import numpy as np
import torch

from lab.drafters.ceilings import Prices
from lab.drafters.shards import Recorded
from lab.seeds.block import Block, Kept, block_table, chained, right_ahead, rounds, train, wanted


def test_the_next_token_is_guessed_as_before_and_masks_see_their_own_place_alone() -> None:
    block = Block.new("bundled/drafter-3", 4)
    ids = torch.arange(100, 120)
    with torch.inference_mode():
        plain = block.model(ids[None]).logits[0]
        whole = block.logits(ids, torch.tensor([5, 9]))
        alone = block.logits(ids[:10], torch.tensor([9]))
    assert torch.allclose(whole[:, 0], plain[[5, 9]], atol=1e-3)
    assert torch.allclose(whole[1], alone[0], atol=1e-3)


def test_what_stands_ahead() -> None:
    goal = wanted(torch.tensor([7, 8, 9]), torch.tensor([0, 1]), 3)
    assert goal.tolist() == [[8, 9, -100], [9, -100, -100]]


def test_rounds_count_whole_target_tokens() -> None:
    right = chained(np.array([True, True, False, True, True]), 3)
    assert right.tolist()[1] == [True, False, True]
    starts = [0, 1, 3, 4, 5]  # the second target token needs two drafter tokens
    assert rounds(right, starts, 3) == (4, [2, 2])  # the first, the second by the target | the last two
    one = Kept(Recorded("s", "s/0", "t", 0.0, "end", [1], [5] * 4), right, right, starts)
    (first, *_) = block_table([one, one], Prices({1: 4.0, 2: 5.0}, 0.5)).splitlines()[2:]
    assert first.startswith("| 1 | 0.800 |") and first.endswith("| +0.0 ± 0.0 % |")


def test_it_learns_what_stands_ahead() -> None:
    block, ids = Block.new("bundled/drafter-3", 3), np.array([300, 301, 302, 303] * 8, np.int32)
    before = right_ahead(block, ids, 2).mean(0)
    times = iter(np.linspace(0, 60, 60).tolist())
    assert train(block, [(ids, 2)], 1.0, lambda said: None, clock=lambda: next(times)) > 100
    after = right_ahead(block, ids, 2).mean(0)
    assert after[1] > before[1] + 0.3 and after[2] > before[2] + 0.3
