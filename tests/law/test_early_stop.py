"""Drafts that a rule of draft length ends early: they change how fast, never the law."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from omnidemo.core.config import GenerationConfig
from omnidemo.core.config.answer_options import Policy
from omnidemo.decoding.cost_model import CostModel
from omnidemo.decoding.draft_policy import DraftPolicy, Head, make_policy
from omnidemo.decoding.methods import (
    BlockVerification,
    NgramExact,
    StringExactMatch,
    StringRejection,
    TokenIntersection,
    Union,
)
from omnidemo.decoding.sampling import SamplingParams
from tests.support.cost_models import known
from tests.support.worlds import CROSSING, NESTED, PLAIN, World, distance

LONGEST = 3


def rule(name: Policy, costs: Callable[[], CostModel] = CostModel, head: Head | None = None) -> DraftPolicy:
    asked = GenerationConfig(draft_policy=name, longest_draft=LONGEST, confidence=0.45, gamma=0.6)
    return make_policy(asked, costs(), head)


RULES: dict[str, Callable[[], DraftPolicy]] = {
    "confidence": partial(rule, "confidence"),
    "head": partial(rule, "head", head=lambda state, log_q: 0.7 if log_q > -1.0 else 0.3),
    "no head": partial(rule, "head"),
    "chance": partial(rule, "chance", known),
    "cost": partial(rule, "cost", known),
}


@pytest.mark.parametrize("world", [NESTED, PLAIN, CROSSING], ids=["nested", "plain", "crossing"])
@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
@pytest.mark.parametrize(
    "method",
    [
        NgramExact(),
        NgramExact(0),
        TokenIntersection(),
        BlockVerification(),
        Union(),
        StringExactMatch(),
        StringRejection(),
    ],
)
def test_a_draft_that_ends_early_leaves_the_law_as_it_is(
    world: World,
    rule: Callable[[], DraftPolicy],
    method: NgramExact | TokenIntersection | StringExactMatch | StringRejection,
) -> None:
    for sampling in (SamplingParams(1.0), SamplingParams(0.7)) if world is PLAIN else (SamplingParams(1.0),):
        law = world.round_law(method, sampling, rule, LONGEST + 1)
        assert sum(law.values()) == pytest.approx(1, abs=1e-9)
        assert distance(law, world.law(sampling, LONGEST + 1)) < 1e-12
