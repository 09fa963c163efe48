"""Block verification: how long what it keeps is, by every branch; and that the law's test sees what other
implementations got wrong."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import pytest
import torch

from omnidemo.core.records import Round
from omnidemo.decoding.backend import Acceptance, Draft
from omnidemo.decoding.draft_policy import DraftPolicy
from omnidemo.decoding.engine import AnswerPlan, Limits, RoundContext, decode
from omnidemo.decoding.methods import BlockVerification, Method, TokenIntersection, block_verification
from omnidemo.decoding.methods.block_verification import one_by_one
from omnidemo.decoding.randomness import Randomness, Sampler
from omnidemo.decoding.sampling import Logits, SamplingParams
from tests.law.test_exactness import emitted
from tests.support.worlds import NESTED, PLAIN, SAME, World, exact_law

EACH = [replace(base, seed=seed) for base in (NESTED, PLAIN, SAME) for seed in range(2)]
CACHES = {id(world): world.cache() for world in (*EACH, SAME)}


def first_round(world: World, method: Method, budget: int, rng: Randomness, count: int = 50) -> Round:
    state = world.conversation(world.prompt)
    sampling, policy = SamplingParams(1.0), DraftPolicy(budget)
    plan = AnswerPlan(method, world.map, CACHES[id(world)], sampling, rng, Limits(count), policy)
    return next(decode(state, plan))


def lengths(world: World, method: Method, budget: int) -> list[float]:
    """P(so many proposals of the first round are kept), exactly."""
    law = exact_law(lambda rng: (first_round(world, method, budget, rng).accepted,))
    return [law.get((count,), 0.0) for count in range(budget + 1)]


def every_round(world: World, budget: int) -> list[tuple[float, Round]]:
    """Each round that there can be, with its probability."""
    found: list[tuple[Any, Round]] = []

    def run(rng: Randomness) -> tuple[int, ...]:
        found.append((rng, first_round(world, BlockVerification(), budget, rng)))
        return ()

    exact_law(run)
    return [(rng.mass, done) for rng, done in found]


def mean(law: list[float]) -> float:
    return sum(count * mass for count, mass in enumerate(law))


@pytest.mark.parametrize("budget", [1, 2, 3])
def test_no_fewer_are_kept_than_token_by_token(budget: int) -> None:
    gains = []
    for world in EACH:
        block, token = (
            mean(lengths(world, method, budget)) for method in (BlockVerification(), TokenIntersection())
        )
        assert block >= token - 1e-12
        gains.append(block / token - 1)
    assert max(gains) < 1e-12 if budget == 1 else max(gains) > 0.01  # a block of one is a token


@pytest.mark.parametrize("budget", [2, 3])
def test_what_is_said_of_each_position_is_what_happens(budget: int) -> None:
    """The chances that a round gives with its tokens, averaged over all drafts, are the shares that are
    kept."""
    for world in EACH[1::2]:
        reached, chances, found = [0.0] * budget, [0.0] * budget, lengths(world, BlockVerification(), budget)
        for mass, done in every_round(world, budget):
            for place, token in enumerate([*done.tokens[: done.accepted], *done.discarded][: done.judged]):
                assert token.accept is not None
                reached[place] += mass
                chances[place] += mass * token.accept
        for place in range(budget):
            assert chances[place] == pytest.approx(sum(found[place + 1 :]), abs=1e-9)
            assert reached[place] >= chances[place]


def test_chances_of_each_position_by_hand() -> None:
    assert one_by_one([0.5, 0.2]) == pytest.approx([1 - 0.5 * 0.8, 0.2 / 0.6])
    assert one_by_one([0.0, 0.0]) == [0.0, 0.0] and one_by_one([1.0]) == [1.0]


class WithoutP(BlockVerification):
    """Corrects from max(0, p − q), whatever the joint ratio is."""

    def accept(self, context: RoundContext, draft: Draft, logits: Logits) -> Acceptance:
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(
                block_verification,
                "remaining",
                lambda context, slot, row, joint: REMAINING(context, slot, row, 1.0),
            )
            return super().accept(context, draft, logits)


REMAINING = block_verification.remaining


class NoLast(BlockVerification):
    """Takes the joint ratio for the chance of every position, as for the last."""

    def _left(self, context, draft, row, joint):  # type: ignore[no-untyped-def]
        return [(0.0, at / (1 - at) if at < 1 else 1e30) for at in joint[1:-1]]


class Shortened(BlockVerification):
    """Drops the last token of a draft by what it is, so that the last position is not known from what stands
    before it."""

    def draft(self, context: RoundContext, budget: int) -> Draft:
        draft = super().draft(context, budget)
        if len(draft.slots) > 1 and draft.slots[-1].target_id == 0:
            slot = draft.slots.pop()
            context.drafter.rollback(slot.base)
        return draft


@pytest.mark.parametrize(
    "method", [WithoutP(), NoLast(), Shortened()], ids=["p left out", "no last position", "a dropped token"]
)
def test_what_is_wrong_is_seen(method: Method) -> None:
    assert max(emitted(world, method, SamplingParams(1.0), 3) for world in (NESTED, PLAIN, SAME)) > 1e-3


@pytest.mark.parametrize(("budget", "count"), list(product([2, 4], [1, 2, 3])))
def test_a_limit_cuts_the_draft_and_the_last_position_with_it(budget: int, count: int) -> None:
    with torch.inference_mode():
        done = [first_round(SAME, BlockVerification(), budget, Sampler(seed), count) for seed in range(20)]
    assert all(len(one.tokens) <= count and one.proposed <= count - 1 for one in done)
