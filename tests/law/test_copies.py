"""The law of what is emitted where drafts are copied from the text, alone and together with every lossless
method."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
import torch

from omnidemo.core.records import Round
from omnidemo.decoding.backend import Slot
from omnidemo.decoding.draft_policy import DraftPolicy
from omnidemo.decoding.engine import AnswerPlan, Limits, RoundContext, decode
from omnidemo.decoding.methods import Copy, Method, NgramMerge, Speculative, TokenIntersection
from omnidemo.decoding.randomness import Sampler, SharedNoise
from omnidemo.decoding.sampling import Probs, SamplingParams
from omnidemo.decoding.sources.copy_chances import CopiedDraft
from tests.law.test_exactness import LOSSLESS, WARPS
from tests.support.worlds import CROSSING, NESTED, PLAIN, SAME, World, distance, p_value

# Prompts that say everything twice, so that there is something to copy after most of what follows.
AGAIN = {
    "nested": replace(NESTED, prompt=(2, 0, 1, 3, 0, 2, 1, 5, 0, 1, 2, 0, 1), copying=True),
    "plain": replace(PLAIN, prompt=(0, 1, 2, 1, 1, 0, 1), copying=True),
    "an end to copy": replace(PLAIN, prompt=(0, 1, 3, 2, 0, 1), copying=True),
    "crossing": replace(CROSSING, prompt=(1, 0, 2, 1, 1, 0, 0, 1, 0), copying=True),
}
METHODS = {"copy": Copy(), **LOSSLESS}
WORLDS = [pytest.param(world, id=name) for name, world in AGAIN.items()]
SMALL = WORLDS[1:]  # the law of every method over several rounds takes seconds in these
EACH = pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)


class Copying(DraftPolicy):
    """Copies whenever it can."""

    def plan(self, copied: CopiedDraft | None, drafts: bool) -> tuple[int, int]:
        return super().plan(None, drafts) if copied is None else (min(len(copied.ids), self.longest), 0)


def first_round(world: World, method: Method, sampling: SamplingParams) -> Round:
    state = world.conversation(world.prompt)
    plan = AnswerPlan(
        method, world.map, world.cache(), sampling, Sampler(1), Limits(50), Copying(3), **world.sources(state)
    )  # fmt: skip
    return next(decode(state, plan))


def emitted(world: World, method: Method, sampling: SamplingParams, budget: int) -> float:
    law = world.round_law(method, sampling, lambda: Copying(budget), budget + 2)
    assert sum(law.values()) == pytest.approx(1, abs=1e-9)
    return distance(law, world.law(sampling, budget + 2))


@pytest.mark.parametrize("world", WORLDS)
def test_there_is_something_to_copy(world: World) -> None:
    done = first_round(world, Copy(), SamplingParams(1.0))
    proposed = [*done.tokens[: done.accepted], *done.discarded]
    assert proposed and {token.source for token in proposed} == {"copied"}
    assert all(token.q == 1.0 and token.match and token.match.origin == "prompt" for token in proposed)


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("budget", [1, 2])
@pytest.mark.parametrize("sampling", WARPS.values(), ids=WARPS)
def test_copies_are_lossless(world: World, budget: int, sampling: SamplingParams) -> None:
    assert emitted(world, Copy(), sampling, budget) < 1e-12


@pytest.mark.parametrize("world", SMALL)
@EACH
def test_one_round_after_another_keeps_the_law(world: World, method: Method) -> None:
    """By the default rule, so that some rounds copy and in some the drafter drafts."""
    law = world.emitted_law(method, SamplingParams(1.0), 2, 3)
    assert distance(law, world.law(SamplingParams(1.0), 3)) < 1e-12


@pytest.mark.parametrize("world", WORLDS)
@EACH
def test_greedy_ids_are_the_targets_own(world: World, method: Method) -> None:
    for seed in range(10):
        own = replace(world, seed=seed)
        expected = next(iter(own.law(SamplingParams(0.0), 12)))
        assert own.sample(method, SamplingParams(0.0), Sampler(0), 4, 12) == expected


def test_one_vocabulary() -> None:
    world = replace(SAME, prompt=(0, 1, 2, 1, 1, 0, 1), copying=True)
    assert (
        distance(
            world.emitted_law(Speculative(), SamplingParams(0.7), 2, 3), world.law(SamplingParams(0.7), 3)
        )
        < 1e-12
    )


class Unmended(TokenIntersection):
    """Corrects a copied token from p itself."""

    def _correction(self, context: RoundContext, slot: Slot, probs: Probs) -> int:
        return context.rng.draw(probs)


def test_a_wrong_correction_is_seen() -> None:
    assert emitted(AGAIN["plain"], Unmended(), SamplingParams(1.0), 2) > 1e-3


def test_the_papers_merging_may_copy_too() -> None:
    world = AGAIN["nested"]
    # in a round that copies it merges nothing
    assert emitted(world, NgramMerge(), SamplingParams(1.0), 3) < 1e-12


@pytest.mark.parametrize("method", [Copy(), LOSSLESS["exact"]], ids=["copy", "exact"])
def test_samples_agree_with_the_law(method: Method) -> None:
    world, sampling, sampler, runs = AGAIN["nested"], SamplingParams(1.0), Sampler(3), 2_000
    cache = world.cache()
    with torch.inference_mode():
        counts = Counter(world.sample(method, sampling, sampler, 3, 2, cache) for _ in range(runs))
    assert p_value(counts, world.law(sampling, 2), runs) > 0.001


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_with_shared_noise_copies_do_not_change_the_text(method: Method) -> None:
    world, sampling = AGAIN["plain"], SamplingParams(0.9)
    alone = replace(world, copying=False)
    for seed in range(40):
        noise = [SharedNoise(seed, len(world.target) + 1) for _ in range(2)]
        with torch.inference_mode():
            texts = [
                one.sample(method, sampling, rng, 4, 8)
                for one, rng in zip((world, alone), noise, strict=True)
            ]
        assert texts[0] == texts[1]
