"""Two recipes of docs/contributing.md, followed place by place: a method and a source of draft tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
import pytest

from omnidemo.core.records import Match
from omnidemo.decoding.backend import Draft, Slot
from omnidemo.decoding.engine import AnswerPlan, DecodingState, Limits, RoundContext, decode
from omnidemo.decoding.method import Method, subtract
from omnidemo.decoding.methods import METHODS, fitting, make_method
from omnidemo.decoding.randomness import Sampler
from omnidemo.decoding.sampling import Probs, SamplingParams
from omnidemo.decoding.sources.copy_chances import CopiedDraft
from omnidemo.ui.figures.layout import method_colour
from tests.law.test_exactness import WARPS, emitted
from tests.law.test_memory import Fusing
from tests.support.worlds import CROSSING, NESTED, PLAIN, World, distance

PAGE = Path(__file__).parents[2] / "docs" / "contributing.md"
WORLDS = pytest.mark.parametrize("world", [PLAIN, NESTED, CROSSING], ids=["plain", "nested", "crossing"])


class OneGuess(Method):
    """One drafter token that both vocabularies have."""

    name = "one-guess"
    title = "One guess"
    lossless = True
    help = "The drafter proposes one token that both vocabularies have."

    def draft(self, context: RoundContext, budget: int) -> Draft:
        base = len(context.drafter.ids)
        token, q, probs = context.draw(lambda: context.map.draftable_logit_mask)
        context.drafter.push(token)
        slot = Slot(context.map.targets[token], (token,), q, base, distributions={(): probs}, draft_probs=[q])
        return Draft([slot], 1)

    def residual(self, context: RoundContext, slot: Slot, probs: Probs) -> int:
        proposed = np.zeros_like(probs)
        proposed[context.map.mapped_targets] = slot.distributions[()][context.map.mapped_drafters]
        return subtract(context.rng, probs, proposed)


class NewestAgain:
    """Proposes the newest id once more."""

    def __init__(self) -> None:
        self.seen: list[bool] = []

    def draft(self, ids: Sequence[int], most: int) -> CopiedDraft | None:
        return CopiedDraft([ids[-1]], [Match(1, "answer")], [0.5]) if most > 0 else None

    def learn(self, draft: CopiedDraft, written: Sequence[int]) -> None:
        self.seen.append(draft.ids[0] == written[0])


@dataclass(frozen=True)
class Repeating(World):
    def copier(self, state: DecodingState) -> NewestAgain:
        return NewestAgain()


def test_the_page_sends_readers_here() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page.index("tests/law/test_recipes.py") < page.index("**A method**") < page.index("**A source of")


@WORLDS
def test_a_method_by_its_recipe_is_offered_and_lossless(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(METHODS, OneGuess.name, OneGuess)
    assert OneGuess.name in fitting(world.map)
    made = make_method(OneGuess.name, world.map)
    assert isinstance(made, OneGuess) and method_colour(made.name)
    for sampling in (SamplingParams(1.0), *WARPS.values()):
        assert emitted(world, made, sampling, 1) < 1e-12
    assert emitted(world, made, SamplingParams(1.0), 1, shared=True) < 1e-12
    assert 0.05 < world.acceptance(made, SamplingParams(1.0), 1) < 1.0


@WORLDS
@pytest.mark.parametrize("drafted", [0, 1])
def test_a_source_by_its_recipe_is_drafted_from_learns_and_keeps_the_law(world: World, drafted: int) -> None:
    own = Repeating(**{each.name: getattr(world, each.name) for each in fields(world)})
    count, method, sampling = drafted + 2, OneGuess(), SamplingParams(1.0)
    for shared in (False, True):
        law = own.round_law(method, sampling, lambda: Fusing(1, drafted), count, shared)
        assert distance(law, own.law(sampling, count)) < 1e-12
    source, tokens = NewestAgain(), []
    for seed in range(20):
        state = own.conversation(own.prompt)
        plan = AnswerPlan(
            method, own.map, own.cache(), sampling, Sampler(seed), Limits(60), Fusing(1, drafted),
            memory=source,
        )  # fmt: skip
        tokens += [token for made in decode(state, plan) for token in made.tokens]
    copied = [token for token in tokens if token.source == "copied"]
    assert sum(source.seen) == len(copied) > 0 and not all(source.seen)
    assert {token.match for token in copied} == {Match(1, "answer")}
