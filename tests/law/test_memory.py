"""The law of what is emitted where memory and the drafter propose in one round: memory first, and the
drafter behind it."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cache

import pytest
import torch

from omnidemo.core.records import Round
from omnidemo.decoding.draft_policy import DraftPolicy
from omnidemo.decoding.engine import AnswerPlan, DecodingState, Limits, decode
from omnidemo.decoding.methods import Copy, Method
from omnidemo.decoding.randomness import Sampler, SharedNoise
from omnidemo.decoding.sampling import SamplingParams
from omnidemo.decoding.sources.continuations import Continuations
from omnidemo.decoding.sources.copy_chances import CopiedDraft, CopyChances
from omnidemo.decoding.sources.memory_source import MemorySource
from omnidemo.decoding.sources.phrase_source import PhraseSource
from tests.law.test_exactness import LOSSLESS, WARPS
from tests.support.worlds import CROSSING, NESTED, PLAIN, World, distance


@cache
def habits(size: int) -> Continuations:
    """Of a target that has written something behind everything."""
    table = Continuations(1 << 16)
    for first in range(size):
        for second in range(size):
            for third in (first + second + 1, first + second + 1, 2 * first + second):
                table.learn([first, second, third % size])
    return table


@dataclass(frozen=True)
class Remembering(World):
    """A world that has earlier answers, or known `phrases` in their place."""

    phrases: bool = False

    def copier(self, state: DecodingState) -> MemorySource | PhraseSource:
        ends = self.target.roles.get("end", ())
        known = habits(len(self.target))
        text, count = state.text, len(self.prompt)
        if self.phrases:
            return PhraseSource(MemorySource(text, CopyChances(), ends, count), known)
        return MemorySource(text, CopyChances(), ends, count, known=known)


def remembering(world: World, **changes: object) -> Remembering:
    return replace(Remembering(**{each.name: getattr(world, each.name) for each in fields(world)}), **changes)


MEMORIES = {
    "nested": remembering(NESTED, prompt=(2, 0, 1, 3, 0, 2, 1, 5, 0, 1)),
    "plain": remembering(PLAIN, prompt=(0, 1, 2, 1, 1, 0, 1)),
    "crossing": remembering(CROSSING, prompt=(1, 0, 2, 1, 1, 0)),
    "phrases": remembering(PLAIN, prompt=(0, 1, 2, 1, 1, 0, 1), phrases=True),
}
WORLDS = [pytest.param(world, id=name) for name, world in MEMORIES.items()]
METHODS = dict(LOSSLESS.items())
EACH = pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)


class Fusing(DraftPolicy):
    """So many ids of memory, and of the drafter, whenever there are as many."""

    def __init__(self, first: int, drafted: int) -> None:
        super().__init__(drafted)
        self.first = first

    def plan(self, copied: CopiedDraft | None, drafts: bool) -> tuple[int, int]:
        count = 0 if copied is None else min(len(copied.ids), self.first)
        return count, self.longest if drafts else 0


SHAPES = {"one each": (1, 1), "two first": (2, 1), "two behind": (1, 2)}


def emitted(
    world: World, method: Method, sampling: SamplingParams, shape: tuple[int, int], shared: bool = False
) -> float:
    count = sum(shape) + 1
    law = world.round_law(method, sampling, lambda: Fusing(*shape), count, shared)
    assert sum(law.values()) == pytest.approx(1, abs=1e-9)
    return distance(law, world.law(sampling, count))


def rounds_of(world: World, method: Method, sampling: SamplingParams, shape: tuple[int, int]) -> list[Round]:
    made: list[Round] = []
    for seed in range(20):
        state = world.conversation(world.prompt)
        plan = AnswerPlan(
            method, world.map, world.cache(), sampling, Sampler(seed), Limits(8), Fusing(*shape),
            memory=world.copier(state),
        )  # fmt: skip
        made += decode(state, plan)
    return made


@EACH
@pytest.mark.parametrize("world", WORLDS)
def test_rounds_are_fused_and_the_drafter_reads_what_memory_proposes(world: World, method: Method) -> None:
    for shape in SHAPES.values():
        found = {
            "".join("m" if token.match else "d" for token in (*done.tokens[: done.accepted], *done.discarded))
            for done in rounds_of(world, method, SamplingParams(1.0), shape)
        }
        expected = "m" * shape[0] + "d"
        assert any(each.startswith(expected) for each in found), found


@EACH
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("world", WORLDS[1:])
def test_one_fused_round_is_lossless(world: World, method: Method, shape: tuple[int, int]) -> None:
    assert emitted(world, method, SamplingParams(1.0), shape) < 1e-12


@pytest.mark.parametrize("shape", [(1, 1), (1, 2), (2, 2)])
def test_n_grams_too(shape: tuple[int, int]) -> None:
    assert emitted(MEMORIES["nested"], LOSSLESS["exact"], SamplingParams(1.0), shape) < 1e-12


@pytest.mark.parametrize("sampling", WARPS.values(), ids=WARPS)
def test_filters_and_penalties_see_what_memory_proposes(sampling: SamplingParams) -> None:
    assert emitted(MEMORIES["plain"], LOSSLESS["exact"], sampling, (1, 2)) < 1e-12


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("sampling", WARPS.values(), ids=WARPS)
def test_memory_alone_is_lossless(world: World, sampling: SamplingParams) -> None:
    assert emitted(world, Copy(), sampling, (2, 0)) < 1e-12


@EACH
@pytest.mark.parametrize("world", WORLDS)
def test_greedy_ids_are_the_targets_own(world: World, method: Method) -> None:
    for seed in range(6):
        own = replace(world, seed=seed)
        expected = next(iter(own.law(SamplingParams(0.0), 10)))
        for shape in SHAPES.values():
            state = own.conversation(own.prompt)
            plan = AnswerPlan(
                method, own.map, own.cache(), SamplingParams(0.0), Sampler(0), Limits(10), Fusing(*shape),
                memory=own.copier(state),
            )  # fmt: skip
            assert tuple(token.id for done in decode(state, plan) for token in done.tokens) == expected
            assert state.drafter.unk_count or state.drafter.spells(state.target.ids)


@EACH
def test_with_a_seed_memory_does_not_change_the_text(method: Method) -> None:
    world, sampling = MEMORIES["plain"], SamplingParams(0.9)
    if not method.coupled:
        return
    for seed in range(20):
        texts = []
        for shape in [*SHAPES.values(), (0, 2)]:
            state = world.conversation(world.prompt)
            with torch.inference_mode():
                noise = SharedNoise(seed, len(world.target) + 1)
                plan = AnswerPlan(
                    method, world.map, world.cache(), sampling, noise, Limits(8), Fusing(*shape),
                    memory=world.copier(state),
                )  # fmt: skip
                texts.append([token.id for done in decode(state, plan) for token in done.tokens])
        assert all(text == texts[0] for text in texts)
