"""Drawing ahead on a CPU: the compiled draws are the host's walk, and end where the rule would end them."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest
import torch

from omnidemo.backends.compiled_backend import roll_out
from omnidemo.backends.fused_llama import FusedCache, FusedLlama
from omnidemo.core.config import GenerationConfig
from omnidemo.decoding.contexts import DrafterContext
from omnidemo.decoding.cost_model import CostModel
from omnidemo.decoding.cost_table import CostTable
from omnidemo.decoding.draft_policy import StopRule, make_policy
from omnidemo.decoding.randomness import Sampler
from omnidemo.decoding.rollout import RolloutRequest, token_by_token
from omnidemo.decoding.sampling import SamplingParams
from tests.support.rollout_sides import (
    MAP,
    Side,
    sharp_model,
)
from tests.support.runners import close


@pytest.fixture(scope="module")
def runner() -> FusedLlama:
    return FusedLlama(sharp_model())


def test_the_given_ids_are_read_too(runner: FusedLlama) -> None:
    for count in (1, 3, 7):
        side = Side(runner, True)
        with torch.inference_mode():
            side.drafter.logits()
            for one in range(count):
                side.drafter.push(one % 6)
            rollout = roll_out(
                side.drafter,
                RolloutRequest(
                    token_by_token(MAP.draftable_logit_mask), SamplingParams(0.0), 3, MAP.to_target
                ),
            )
            assert rollout is not None and len(rollout.ids) == 3 and len(rollout.read) == 2
            ids = [0, 1, 2, *(one % 6 for one in range(count)), *rollout.read]
            wanted = FusedCache(runner).forward(ids, 3).logits
            assert close(rollout.rows, wanted, 1e-4) and side.cache.length == 3 + count
            assert [int((row + MAP.draftable_logit_mask).argmax()) for row in wanted] == rollout.ids
            for token in rollout.ids[:2]:
                side.drafter.push(token)
            assert close(side.drafter.logits(), wanted[-1], 1e-4) and side.cache.length == 5 + count


def test_rules_foresee_themselves() -> None:
    """`stop_rule` says what `keep_drafting` says, for calibrations with any history."""
    chance = random.Random(1)
    agreed = stopped = 0
    for _ in range(300):
        known = CostModel()
        for _ in range(chance.randrange(60)):
            known.learn(
                [(chance.random() ** 0.3,) for _ in range(4)],
                [float(chance.random() < 0.7) for _ in range(4)],
            )
        if chance.random() < 0.8:
            known.prices = CostTable.linear(chance.uniform(0.5, 2.0), 0.1, chance.uniform(0.01, 1.0))
        numbers: dict[str, Any] = {"longest_draft": 9, "confidence": chance.random(), "gamma": 0.5}
        for name in ("cost", "confidence", "head"):
            rule = make_policy(GenerationConfig(draft_policy=name, **numbers), known, None)
            rule.begin_round(0, 50, 0)
            rule.plan(None, True)
            for _ in range(5):
                stop, probs = rule.stop_rule(), [chance.random() ** 0.3 for _ in range(chance.choice((1, 2)))]
                guess, said = foretold(stop, math.prod(probs)), rule.keep_drafting(probs, [])
                assert guess == said
                agreed, stopped = agreed + said, stopped + (not said)
                if not said:
                    break
    assert agreed > 300 and stopped > 300


def foretold(stop: StopRule, prob: float) -> bool:
    segment = [segment for segment in stop.segments if prob >= segment[0]][-1]
    cumulative = stop.cumulative * (segment[1] + segment[2] * prob)
    return bool(prob >= stop.min_prob and cumulative * (segment[3] + segment[4] * prob) > stop.price)


def test_a_drafter_context_whose_window_slides(runner: FusedLlama) -> None:
    """A short window: the context goes on drafting, whatever can be drawn ahead."""
    cache = FusedCache(runner)
    cache.max_positions = 16
    drafter = DrafterContext(cache, MAP)
    drafter.start([0, 1, 2], 0)
    rule, drawn = token_by_token(MAP.draftable_logit_mask), 0
    order = RolloutRequest(rule, SamplingParams(1.0), 3, MAP.to_target, Sampler(1).peek(40))
    with torch.inference_mode():
        for turn in range(40):
            rollout = roll_out(drafter, order)
            drawn += rollout is not None
            drafter.logits()
            start = len(drafter.ids)
            drafter.commit(start, [], [turn % 6])
            assert cache.length <= cache.max_positions
    assert 5 < drawn < 40
