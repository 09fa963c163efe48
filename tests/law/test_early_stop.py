"""Drafts that a rule of draft length ends early: they change how fast, never the law."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from omnidemo.decoding.cost_model import CostModel
from omnidemo.decoding.cost_policy import CostPolicy
from omnidemo.decoding.draft_policy import ChancePolicy, ConfidencePolicy, DraftPolicy, HeadPolicy
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

RULES: dict[str, Callable[[], DraftPolicy]] = {
    "confidence": lambda: ConfidencePolicy(LONGEST, CostModel(), 0.45),
    "head": lambda: HeadPolicy(LONGEST, CostModel(), 0.6, lambda state, log_q: 0.7 if log_q > -1.0 else 0.3),
    "no head": lambda: HeadPolicy(LONGEST, CostModel(), 0.6, None),
    "chance": lambda: ChancePolicy(LONGEST, known()),
    "cost": lambda: CostPolicy(LONGEST, known()),
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
