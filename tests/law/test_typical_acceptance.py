"""Typical acceptance is not lossless: how far it is from the target's law, by every branch, is what it says
of itself."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from omnidemo.core.metrics import measure
from omnidemo.core.records import Round
from omnidemo.decoding.draft_policy import DraftPolicy
from omnidemo.decoding.engine import AnswerPlan, Limits, decode
from omnidemo.decoding.methods import METHODS, NgramMerge, TokenIntersection, TypicalAcceptance
from omnidemo.decoding.methods.typical_acceptance import DELTA, EPSILON, threshold
from omnidemo.decoding.randomness import Randomness, Sampler
from omnidemo.decoding.sampling import SamplingParams
from tests.law.test_copies import AGAIN, Copying
from tests.support.worlds import NESTED, PLAIN, SAME, World, distance, exact_law

EACH = [replace(base, seed=seed) for base in (NESTED, PLAIN, SAME) for seed in range(3)]
SAMPLINGS = [SamplingParams(1.0), SamplingParams(0.7), SamplingParams(1.0, top_p=0.9)]


def rounds_of(
    world: World, sampling: SamplingParams, budget: int, copied: bool = False
) -> list[tuple[float, Round]]:
    """Each first round that there can be, with its probability."""
    found: list[tuple[Any, Round]] = []

    def run(rng: Randomness) -> tuple[int, ...]:
        state, policy = world.conversation(world.prompt), Copying(budget) if copied else DraftPolicy(budget)
        plan = AnswerPlan(
            TypicalAcceptance(), world.map, world.cache(), sampling, rng, Limits(50), policy,
            **world.sources(state),
        )  # fmt: skip
        found.append((rng, next(decode(state, plan))))
        return ()

    exact_law(run)
    return [(rng.mass, done) for rng, done in found]


def test_the_threshold_by_hand() -> None:
    assert threshold(np.array([1.0, 0.0])) == EPSILON  # no entropy: δ is more
    flat = np.full(10, 0.1)
    assert threshold(flat) == pytest.approx(DELTA / 10) and DELTA / 10 < EPSILON
    assert threshold(np.array([0.5, 0.5])) == pytest.approx(min(EPSILON, DELTA * math.exp(-math.log(2))))


@pytest.mark.parametrize("sampling", SAMPLINGS, ids=["t1", "t0.7", "top-p"])
@pytest.mark.parametrize("copied", [False, True], ids=["drafted", "copied"])
def test_the_distance_of_one_position_is_the_one_that_is_said(sampling: SamplingParams, copied: bool) -> None:
    told = []
    for world in AGAIN.values() if copied else EACH:
        law: dict[tuple[int, ...], float] = {}
        for mass, done in rounds_of(world, sampling, 1, copied):
            ids = (done.tokens[0].id,)
            law[ids] = law.get(ids, 0.0) + mass
            said = done.variation
        assert said is not None
        assert said == pytest.approx(distance(law, world.law(sampling, 1)), abs=1e-6 if copied else 1e-9)
        told.append(said)
    assert max(told) > 0.02


def test_the_text_as_a_whole_is_no_farther_than_the_sum() -> None:
    sampling = SamplingParams(1.0)
    for world in EACH[::2]:
        law = world.round_law(TypicalAcceptance(), sampling, 2, 3)
        away = distance(law, world.law(sampling, 3))
        assert (
            1e-3
            < away
            <= sum(mass * (done.variation or 0.0) for mass, done in rounds_of(world, sampling, 2)) + 1e-9
        )


def test_the_figure_is_the_mean_over_the_tokens() -> None:
    (_, one), *_ = rounds_of(NESTED, SamplingParams(1.0), 2)
    plain = replace(one, variation=None)
    found = measure([replace(one, variation=0.3), plain, replace(one, variation=0.1)], 0.1)["total_variation"]
    assert found == pytest.approx(0.4 / (3 * len(one.tokens)))
    assert measure([plain], 0.1)["total_variation"] is None  # of lossless methods there is none to tell


def test_only_what_is_not_lossless_says_a_distance() -> None:
    plan = AnswerPlan(
        TokenIntersection(), SAME.map, SAME.cache(), SamplingParams(1.0), Sampler(1), Limits(20),
        DraftPolicy(2),
    )  # fmt: skip
    assert all(done.variation is None for done in decode(SAME.conversation(SAME.prompt), plan))
    assert (
        not any(method.coupled for method in METHODS.values() if not method.lossless)
        and not NgramMerge.coupled
    )


def test_greedy_ids_are_the_targets_own() -> None:
    for seed in range(20):
        own = replace(NESTED, seed=seed)
        expected = next(iter(own.law(SamplingParams(0.0), 8)))
        assert own.sample(TypicalAcceptance(), SamplingParams(0.0), Sampler(0), 4, 8) == expected


def test_it_keeps_more_than_a_lossless_rule() -> None:
    kept = sum(
        mass * done.accepted for world in EACH for mass, done in rounds_of(world, SamplingParams(1.0), 2)
    )
    lossless = sum(world.acceptance(TokenIntersection(), SamplingParams(1.0), 2) for world in EACH)
    first = sum(
        mass * (done.accepted > 0)
        for world in EACH
        for mass, done in rounds_of(world, SamplingParams(1.0), 2)
    )
    assert first > lossless and kept > first
