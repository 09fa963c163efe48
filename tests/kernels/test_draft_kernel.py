"""Drawing ahead on a CPU: the compiled draws are the host's walk, and end where the rule would end them."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pytest
import torch

from omnidemo.backends import fused_llama
from omnidemo.backends.compiled_backend import roll_out
from omnidemo.backends.fused_llama import FusedCache, FusedLlama
from omnidemo.core.config import GenerationConfig
from omnidemo.decoding.contexts import DrafterContext
from omnidemo.decoding.cost_model import CostModel
from omnidemo.decoding.cost_table import CostTable
from omnidemo.decoding.draft_policy import StopRule, make_policy
from omnidemo.decoding.methods import NgramExact, make_method
from omnidemo.decoding.randomness import Sampler
from omnidemo.decoding.rollout import RolloutRequest, token_by_token
from omnidemo.decoding.sampling import SamplingParams
from tests.support.rollout_sides import (
    MAP,
    WARPS,
    Asking,
    Side,
    left_over,
    random_trie,
    rounds,
    same,
    sharp_model,
)
from tests.support.runners import close

# The recorded step of a GPU knows no penalty, so these are not among the others.
SAMPLINGS = WARPS | {
    "penalty": SamplingParams(0.7, repetition_penalty=1.6),
    "penalty, greedy": SamplingParams(0.0, repetition_penalty=1.6),
    "a model's manner": SamplingParams(0.7, top_k=5, top_p=0.9, min_p=0.02, repetition_penalty=1.3),
}


@pytest.fixture(scope="module")
def runner() -> FusedLlama:
    return FusedLlama(sharp_model())


@pytest.mark.parametrize("sampling", SAMPLINGS.values(), ids=SAMPLINGS)
@pytest.mark.parametrize("overrun", [0, 2])
@pytest.mark.parametrize("budget", [1, 2, 3, 4, 6])
def test_compiled_draws_are_the_hosts_walk(
    runner: FusedLlama, sampling: SamplingParams, overrun: int, budget: int
) -> None:
    rollouts = own = 0
    for seed in range(3):
        ahead, plain = Side(runner, True), Side(runner, False)
        rounds(ahead, plain, NgramExact(overrun), random_trie(seed), sampling, budget, seed)
        rollouts, own = rollouts + ahead.cache.rollouts, own + ahead.own
        assert plain.cache.rollouts == 0
    assert rollouts >= 18
    assert own == 0  # no pass besides those of the rollouts, walks that were thrown away included


@pytest.mark.parametrize("sampling", SAMPLINGS.values(), ids=SAMPLINGS)
@pytest.mark.parametrize("name", ["token-intersection", "union", "string-exact-match", "ngram-merge"])
def test_other_methods(runner: FusedLlama, name: str, sampling: SamplingParams) -> None:
    ahead, plain = Side(runner, True), Side(runner, False)
    rounds(ahead, plain, make_method(name, MAP), random_trie(1), sampling, 5, 1)
    assert ahead.cache.rollouts >= 6


@pytest.mark.parametrize("sampling", SAMPLINGS.values(), ids=SAMPLINGS)
@pytest.mark.parametrize(
    ("threshold", "guess"), [(0.0, 0.0), (0.15, 0.15), (0.15, 0.0), (0.0, 0.15), (0.0, 1.0)]
)
@pytest.mark.parametrize("name", ["ngram-exact", "string-exact-match"])
def test_a_wrong_guess_of_the_rule_changes_nothing(
    runner: FusedLlama, name: str, threshold: float, guess: float, sampling: SamplingParams
) -> None:
    both = Side(runner, True), Side(runner, False)
    rules = [Asking(9, threshold=threshold, guess=guess) for _ in both]
    method, ngrams, foreseen = make_method(name, MAP), random_trie(2), 0
    for _ in range(12):
        start = len(both[0].drafter.ids)
        drafts = [
            side.draft(method, ngrams, sampling, 9, rule) for side, rule in zip(both, rules, strict=True)
        ]
        same(*drafts)
        ended = any(slot.target_id == 42 for slot in drafts[0].slots)  # which only the host sees
        foreseen += 0 if ended else left_over(both[0].newest)
        for side in both:
            side.drafter.commit(start, [], [3])
    assert rules[0].heard == pytest.approx(rules[1].heard, rel=1e-4) and len(rules[0].heard) >= 12
    for one, other in zip(rules[0].states, rules[1].states, strict=True):
        assert np.allclose(one, other, atol=1e-4)
    if threshold == guess and name == "ngram-exact":
        # nothing was drawn in vain, and once was enough
        assert foreseen == 0 and both[0].cache.rollouts == 12
    elif guess == 1.0:
        assert both[0].cache.rollouts > 12


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


def test_a_window_that_ends_and_a_room_that_grows(
    runner: FusedLlama, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fused_llama, "START", 8)
    ahead, plain = Side(runner, True), Side(runner, False)
    rounds(ahead, plain, NgramExact(), random_trie(2), SamplingParams(1.0), 4, 1, count=20)
    assert ahead.cache._kv.capacity >= 32 and ahead.cache.rollouts == 20
    ahead.cache.max_positions = ahead.cache.length + 4
    with torch.inference_mode():
        context = ahead.context(random_trie(2), SamplingParams(1.0))
        context.begin_slot(NgramExact().drawing_rule, 4)
    assert not left_over(context) and ahead.cache.rollouts == 20


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
            rule.budget(0)
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
