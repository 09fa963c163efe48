"""Drawing ahead: what the device draws in a row is what the host's walk would have drawn, with one wait. A CPU plays the device here."""

from __future__ import annotations

import logging
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from omnidemo import engine, load_pair
from omnidemo.bench.tiny import random_model
from omnidemo.core import sampling
from omnidemo.core.ahead import Course, Order, Rollout, least
from omnidemo.core.contexts import DrafterContext
from omnidemo.core.device_trie import DeviceTrie
from omnidemo.core.draft_length import Fixed
from omnidemo.core.ngrams import NgramCache
from omnidemo.core.sampling import Sampler, Warp
from omnidemo.core.vocabulary import VocabularyMap
from omnidemo.methods import NgramExact, base, fitting, make_method
from omnidemo.methods.base import Draft, Hand, Method
from omnidemo.runtime import lean
from omnidemo.runtime.ahead import Roller, roller_of
from omnidemo.runtime.graphs import FixedPasses
from omnidemo.runtime.lean import LeanCache, LeanLlamaRunner
from test_graphs import Notes, recorded
from test_pair import PROMPT, save
from test_runners import close
from worlds import Branching, vocabulary

LETTERS = [bytes([letter]) for letter in b"abcdef"]
TARGET = vocabulary([*LETTERS, *(a + b for a in LETTERS for b in LETTERS), None], end=42)
DRAFTER = vocabulary([*LETTERS, b"zz", b"zx", None], end=8)  # 6 and 7 have no target, 8 ends
MAP = VocabularyMap(TARGET, DRAFTER, len(TARGET) + 1, len(DRAFTER) + 2)
TOKENS = len(DRAFTER) + 2
WARPS = {
    "greedy": Warp(0.0),
    "t0.7": Warp(0.7),
    "t1": Warp(1.0),
    "top-k": Warp(1.0, top_k=3),
    "top-p": Warp(1.0, top_p=0.8),
    "all": Warp(0.9, top_k=6, top_p=0.9, min_p=0.05),
}


@dataclass
class Asking(Fixed):
    """A rule of fixed length that wants to know how sure the drafter was, and stops by that."""

    watches: bool = True
    reads_states: bool = True
    threshold: float = 0.0
    heard: list[float] = field(default_factory=list)
    states: list[Any] = field(default_factory=list)

    def goes_on(self, sure: Any, states: Any) -> bool:
        self.heard += sure
        self.states += states
        return min(sure) >= self.threshold


@pytest.fixture(scope="module")
def model() -> Any:
    model = random_model("llama", TOKENS, seed=3)
    with torch.no_grad():
        model.lm_head.weight.mul_(1.5)
    return model


def random_trie(seed: int, count: int = 14, size: int = 20_000) -> NgramCache:
    """2- to 4-grams over a few letters, so that they share beginnings, with pieces that are no target tokens themselves."""
    chance, cache = random.Random(seed), NgramCache(TOKENS, size)
    for target_id in range(6, 6 + count):
        cache.insert(target_id, tuple(chance.choice((0, 1, 2, 6, 7)) for _ in range(chance.choice((2, 2, 3, 3, 4)))))
    return cache


class Side:
    """A drafter's context in which a method drafts; `rolls` or not."""

    def __init__(self, model: Any, rolls: bool) -> None:
        self.runner, self.notes = recorded(model)
        self.cache = _Counting(self.runner, rolls)
        self.drafter = DrafterContext(self.cache, MAP)
        self.drafter.start([0, 1, 2], 0)
        self.sampler = Sampler(5)

    def hand(self, ngrams: NgramCache, warp: Warp, rule: Any = None) -> Hand:
        return Hand(self.drafter, MAP, ngrams, warp, self.sampler, frozenset({42}), None, len(self.drafter.ids), rule)

    def draft(self, method: Method, ngrams: NgramCache, warp: Warp, budget: int, rule: Any = None) -> Draft:
        with torch.inference_mode():
            return method.draft(self.hand(ngrams, warp, rule), budget)


class _Counting(LeanCache):
    """Counts its rollouts, or has none."""

    def __init__(self, runner: LeanLlamaRunner, rolls: bool) -> None:
        super().__init__(runner)
        self.can, self.rollouts, self.passes = rolls, 0, 0

    @property
    def rolls(self) -> bool:
        return self.can and super().rolls

    def roll_out(self, order: Order, row: Tensor, state: Tensor) -> Rollout | None:
        found = super().roll_out(order, row, state)
        self.rollouts += found is not None
        return found

    def extend(self, ids: Any, rows: int) -> Tensor:
        self.passes += 1
        return super().extend(ids, rows)


def same(left: Draft, right: Draft) -> None:
    assert left.drafted == right.drafted and len(left.slots) == len(right.slots)
    for one, other in zip(left.slots, right.slots, strict=True):
        assert (one.target_id, one.pieces, one.base, one.limit) == (other.target_id, other.pieces, other.base, other.limit)
        assert one.q == pytest.approx(other.q, rel=1e-4, abs=1e-9)
        assert list(one.laws) == list(other.laws)
        assert all(torch.allclose(one.laws[path], other.laws[path], atol=1e-4) for path in one.laws)


def rounds(ahead: Side, plain: Side, method: Method, ngrams: NgramCache, warp: Warp, budget: int, seed: int, count: int = 6) -> None:
    """Draft on both sides, keep some of it, go on; the caches hold the truth all along."""
    chance = random.Random(seed)
    for _ in range(count):
        drafts = [side.draft(method, ngrams, warp, budget) for side in (ahead, plain)]
        same(*drafts)
        assert ahead.drafter.ids == plain.drafter.ids and ahead.sampler.look_ahead(1) == plain.sampler.look_ahead(1)
        slots = [slot for slot in drafts[0].slots if slot.target_id >= 0]
        kept = slots[: chance.randint(0, len(slots))]
        written, corrects = chance.randrange(6), chance.random() < 0.3 and len(kept) < len(drafts[0].slots)
        for side, draft in zip((ahead, plain), drafts, strict=True):
            with torch.inference_mode():
                if corrects:  # as a residual does
                    side.drafter.rollback(draft.slots[len(kept)].base)
                    side.drafter.push(1)
                    side.drafter.logits()
                    side.drafter.rollback(draft.slots[len(kept)].base)
                start = draft.slots[0].base
                side.drafter.commit(start, [len(slot.pieces) for slot in kept], [*(slot.target_id for slot in kept), written])
            assert side.cache.length < len(side.drafter.ids)
        assert ahead.drafter.ids == plain.drafter.ids
    with torch.inference_mode():
        fresh = LeanCache(plain.runner)
        assert close(ahead.drafter.logits(), fresh.extend(ahead.drafter.ids, 1)[0], 1e-4)


@pytest.mark.parametrize("warp", WARPS.values(), ids=WARPS)
@pytest.mark.parametrize("overrun", [0, 2])
@pytest.mark.parametrize("budget", [1, 2, 3, 4, 6])
def test_a_rollout_is_the_hosts_walk(model: Any, warp: Warp, overrun: int, budget: int) -> None:
    rollouts = deeper = 0
    for seed in range(3):
        ahead, plain = Side(model, True), Side(model, False)
        ngrams = random_trie(seed)
        rounds(ahead, plain, NgramExact(overrun), ngrams, warp, budget, seed)
        rollouts += ahead.cache.rollouts
        deeper += plain.cache.passes - ahead.cache.passes
        assert plain.cache.rollouts == 0
    assert rollouts >= 12 and (budget == 1 or deeper > 0)
