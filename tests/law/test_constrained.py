"""The law of answers that are held to a form: that of the target under the masks, without guesses. The wrong
rules of other programs are shown to have another law."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice, product

import numpy as np
import pytest

from omnidemo.core.records import Round
from omnidemo.decoding.backend import Acceptance, Draft, RoundPlan
from omnidemo.decoding.engine import AnswerPlan, Limits, RoundContext, decode
from omnidemo.decoding.methods import Autoregressive, BlockVerification, Copy, Method, NgramExact, Speculative
from omnidemo.decoding.randomness import Sampler
from omnidemo.decoding.sampling import Logits, SamplingParams
from tests.law.test_copies import AGAIN, METHODS, Copying
from tests.law.test_copies import emitted as copied
from tests.law.test_exactness import LOSSLESS, WARPS, emitted
from tests.support.worlds import (
    CROSSING,
    NESTED,
    PLAIN,
    SAME,
    WORLDS,
    World,
    distance,
    exact_law,
    legal_after,
)

FILTERS = {name: sampling for name, sampling in WARPS.items() if name != "t1.5"}


def formed(world: World) -> World:
    return replace(world, formed=True)


@pytest.mark.parametrize("world", [*WORLDS.values(), CROSSING], ids=[*WORLDS, "crossing"])
@pytest.mark.parametrize("budget", [1, 2])
@pytest.mark.parametrize("method", LOSSLESS.values(), ids=LOSSLESS)
def test_guesses_keep_the_masked_law(world: World, budget: int, method: Method) -> None:
    assert emitted(formed(world), method, SamplingParams(1.0), budget) < 1e-12


@pytest.mark.parametrize("sampling", FILTERS.values(), ids=FILTERS)
@pytest.mark.parametrize("world", [PLAIN, CROSSING], ids=["plain", "crossing"])
@pytest.mark.parametrize("method", [*LOSSLESS.values(), Autoregressive()], ids=[*LOSSLESS, "plain"])
def test_filters_come_behind_the_mask(world: World, sampling: SamplingParams, method: Method) -> None:
    assert emitted(formed(world), method, sampling, 2) < 1e-12


@pytest.mark.parametrize("sampling", FILTERS.values(), ids=FILTERS)
@pytest.mark.parametrize("budget", [1, 2, 3])
@pytest.mark.parametrize("method", [Speculative(), BlockVerification()], ids=["speculative", "block"])
def test_one_vocabulary(method: Method, budget: int, sampling: SamplingParams) -> None:
    assert emitted(formed(SAME), method, sampling, budget) < 1e-12


@pytest.mark.parametrize("world", [PLAIN, NESTED, CROSSING], ids=["plain", "nested", "crossing"])
@pytest.mark.parametrize("method", LOSSLESS.values(), ids=LOSSLESS)
def test_round_after_round_keeps_the_law(world: World, method: Method) -> None:
    world = formed(world)
    law = world.emitted_law(method, SamplingParams(1.0), 1, 3)
    assert distance(law, world.law(SamplingParams(1.0), 3)) < 1e-12


@pytest.mark.parametrize("world", [PLAIN, NESTED], ids=["plain", "nested"])
def test_shared_noise_keeps_the_law(world: World) -> None:
    assert emitted(formed(world), NgramExact(), SamplingParams(0.7, top_k=3), 2, shared=True) < 1e-12


@pytest.mark.parametrize("method", [*LOSSLESS.values(), Autoregressive()], ids=[*LOSSLESS, "plain"])
@pytest.mark.parametrize("world", [*WORLDS.values(), CROSSING], ids=[*WORLDS, "crossing"])
def test_greedy_ids_are_the_masked_targets_own(world: World, method: Method) -> None:
    for seed in range(10):
        own = formed(replace(world, seed=seed))
        expected = next(iter(own.law(SamplingParams(0.0), 8)))
        assert own.sample(method, SamplingParams(0.0), Sampler(0), 4, 8) == expected


@pytest.mark.parametrize("sampling", [SamplingParams(1.0), SamplingParams(1.0, top_k=3)], ids=["t1", "top-k"])
@pytest.mark.parametrize("budget", [1, 2])
@pytest.mark.parametrize("name", ["plain", "an end to copy", "crossing"])
@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_copies_and_forced_ids_that_are_wrong_keep_the_law(
    method: Method, name: str, budget: int, sampling: SamplingParams
) -> None:
    """What `DrawnForm` calls forced is anything, and is often not allowed."""
    assert copied(formed(AGAIN[name]), method, sampling, budget) < 1e-12


def test_there_are_forced_ids_copies_behind_them_and_wrong_ones() -> None:
    made: list[Round] = []
    for seed, name in product(range(10), AGAIN):
        world = replace(formed(AGAIN[name]), seed=seed)
        state = world.conversation(world.prompt)
        plan = AnswerPlan(
            Copy(), world.map, world.cache(), SamplingParams(1.0), Sampler(1), Limits(50), Copying(3),
            **world.sources(state),
        )  # fmt: skip
        made += islice(decode(state, plan), 5)
    wrong = [token.source for one in made for token in one.discarded]
    right = [token.source for one in made for token in one.tokens]
    assert {"forced", "copied"} <= {*right} and "forced" in wrong


# Rules that are not this law
# ---------------------------------------------------------------------------------------------


class Forgets(NgramExact):
    """Forgets a drawn guess that is not allowed, and all behind it."""

    def propose(self, context: RoundContext, plan: RoundPlan) -> Draft:
        draft, form = super().propose(context, plan), context.constraint
        assert form is not None
        del draft.slots[form.legal(draft.proposal) :]
        return draft


class CutBehind(NgramExact):
    """Ends a draft behind its first guess that is not allowed, which is rejected."""

    def propose(self, context: RoundContext, plan: RoundPlan) -> Draft:
        draft, form = super().propose(context, plan), context.constraint
        assert form is not None
        del draft.slots[form.legal(draft.proposal) + 1 :]
        return draft


class JudgesUnmasked(NgramExact):
    """Judges without masks, and draws the first id that is not allowed again, under its mask."""

    def accept(self, context: RoundContext, draft: Draft, logits: Logits) -> Acceptance:
        made, rows = super().accept(context, draft, logits), logits
        ids = list(context.target.ids[context.prompt :])
        written = [*draft.proposal[: made.accepted], *([] if made.token is None else [made.token])]
        for index, token in enumerate(written):
            legal = legal_after(tuple(ids), rows.shape[-1])
            if not legal[token]:
                probs = context.sampling.probs(np.where(legal, rows[index], -np.inf))
                return Acceptance(index, context.rng.draw(probs), True, made.accepts[: index + 1])
            ids.append(token)
        return made


def unmasked(world: World, sampling: SamplingParams) -> float:
    """How far the law of `JudgesUnmasked` is from the masked one."""
    found: dict[tuple[int, ...], float] = {}
    cache, whole = world.cache(), formed(world)
    made = exact_law(lambda rng: world.round(JudgesUnmasked(), sampling, rng, 2, cache))
    for ids, mass in made.items():
        for more, p in whole.law(sampling, 4, ids[:4]).items():
            found[more] = found.get(more, 0.0) + mass * p
    return distance(found, whole.law(sampling, 4))


def test_a_draft_may_end_behind_what_is_not_allowed() -> None:
    assert (
        max(emitted(formed(world), CutBehind(), SamplingParams(1.0), 2) for world in WORLDS.values()) < 1e-12
    )


def test_a_drawn_guess_that_is_forgotten_is_seen() -> None:
    assert max(emitted(formed(world), Forgets(), SamplingParams(1.0), 2) for world in WORLDS.values()) > 1e-2


def test_drawing_again_under_the_mask_is_right_without_filters_alone() -> None:
    assert unmasked(PLAIN, SamplingParams(1.0)) < 1e-12
    for sampling in (SamplingParams(1.0, top_k=3), SamplingParams(1.0, top_p=0.5)):
        assert max(unmasked(world, sampling) for world in WORLDS.values()) > 1e-2
