"""Two sides of one drafter, one that draws ahead and one that does not, which have to draft the same."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pytest
import torch

from lab.equality.tiny import random_model
from omnidemo.backends.compiled_backend import RolledDraws
from omnidemo.backends.fused_llama import FusedCache, FusedLlama
from omnidemo.decoding.backend import Draft, Pass
from omnidemo.decoding.contexts import DrafterContext
from omnidemo.decoding.draft_policy import DraftPolicy, StopRule
from omnidemo.decoding.engine import RoundContext
from omnidemo.decoding.method import Method
from omnidemo.decoding.randomness import Sampler
from omnidemo.decoding.rollout import Rollout, RolloutRequest
from omnidemo.decoding.sampling import RepetitionPenalty, SamplingParams
from omnidemo.decoding.state import TargetContext
from omnidemo.vocabulary.ngram_cache import NgramCache
from omnidemo.vocabulary.vocabulary_map import VocabularyMap
from tests.support.runners import close
from tests.support.worlds import TableCache, vocabulary

LETTERS = [bytes([letter]) for letter in b"abcdef"]
TARGET = vocabulary([*LETTERS, *(a + b for a in LETTERS for b in LETTERS), None], end=42)
DRAFTER = vocabulary([*LETTERS, b"zz", b"zx", None], end=8)  # 6 and 7 have no target, 8 ends
MAP = VocabularyMap(TARGET, DRAFTER, len(TARGET) + 1, len(DRAFTER) + 2)
TOKENS = len(DRAFTER) + 2
WARPS = {
    "greedy": SamplingParams(0.0),
    "t0.7": SamplingParams(0.7),
    "t1": SamplingParams(1.0),
    "top-k": SamplingParams(1.0, top_k=3),
    "top-p": SamplingParams(1.0, top_p=0.8),
    "all": SamplingParams(0.9, top_k=6, top_p=0.9, min_p=0.05),
}


class Asking(DraftPolicy):
    """A draft policy of fixed length that records the drafter's probabilities and states, and stops by a
    threshold."""

    def __init__(self, longest: int, threshold: float = 0.0, guess: float = 0.0) -> None:
        super().__init__(longest)
        self.watches = self.reads_states = True
        self.threshold, self.guess = threshold, guess
        self.heard: list[float] = []
        self.states: list[Any] = []

    def stop_rule(self) -> StopRule:
        return StopRule(min_prob=self.guess)

    def keep_drafting(self, draft_probs: Any, states: Any) -> bool:
        self.heard += draft_probs
        self.states += states
        return math.prod(draft_probs) >= self.threshold


def sharp_model() -> Any:
    """A tiny random drafter of these tokens whose distributions are far from uniform."""
    model = random_model("llama", TOKENS, seed=3)
    with torch.no_grad():
        model.lm_head.weight.mul_(1.5)
    return model


def random_trie(seed: int, count: int = 14, size: int = 20_000) -> NgramCache:
    """2- to 4-grams over a few letters, so that they share beginnings, with pieces that are no target tokens
    themselves."""
    chance, cache = random.Random(seed), NgramCache(TOKENS, size)
    for target_id in range(6, 6 + count):
        cache.insert(
            target_id, tuple(chance.choice((0, 1, 2, 6, 7)) for _ in range(chance.choice((2, 2, 3, 3, 4))))
        )
    return cache


class Side:
    """A drafter's context in which a method drafts; `rolls` or not."""

    def __init__(self, runner: FusedLlama, rolls: bool) -> None:
        self.runner, self.rolls = runner, rolls
        self.cache = Counting(self.runner)
        self.drafter = DrafterContext(self.cache, MAP)
        self.drafter.start([0, 1, 2], 0)
        self.sampler, self.own = Sampler(5), 0

    def context(self, ngrams: NgramCache, sampling: SamplingParams, rule: Any = None) -> RoundContext:
        # the target has no part in a draft
        start, target = len(self.drafter.ids), TargetContext(TableCache(1, 0))
        penalty = RepetitionPenalty(MAP) if sampling.penalises else None
        made = RoundContext(
            self.drafter,
            MAP,
            ngrams,
            sampling,
            self.sampler,
            frozenset({42}),
            penalty,
            start,
            rule or DraftPolicy(0),
            target=target,
        )
        made.draws = RolledDraws() if self.rolls else None
        return made

    def draft(
        self, method: Method, ngrams: NgramCache, sampling: SamplingParams, budget: int, rule: Any = None
    ) -> Draft:
        before = self.cache.passes
        with torch.inference_mode():
            self.newest = self.context(ngrams, sampling, rule)
            draft = method.draft(self.newest, budget)
        self.own += max(0, self.cache.passes - before - 1)  # the first one reads what the target wrote
        return draft


class Counting(FusedCache):
    """Counts its rollouts."""

    def __init__(self, runner: FusedLlama) -> None:
        super().__init__(runner)
        self.rollouts, self.passes, self.reading = 0, 0, False

    def roll_out(self, order: RolloutRequest, ids: Any, row: Any, state: Any) -> Rollout | None:
        self.reading = True
        found = super().roll_out(order, ids, row, state)
        self.reading = False
        self.rollouts += found is not None and bool(found.ids)
        self.passes += found is not None and bool(ids)
        return found

    def forward(self, ids: Any, last: int, stats_at: float | None = None) -> Pass:
        self.passes += not self.reading
        return super().forward(ids, last, stats_at)


def left_over(context: RoundContext) -> int:
    """Draws that were made and not taken."""
    return len(context.draws._draws) if isinstance(context.draws, RolledDraws) else 0


def same(left: Draft, right: Draft) -> None:
    assert left.drafted == right.drafted and len(left.slots) == len(right.slots)
    for one, other in zip(left.slots, right.slots, strict=True):
        assert (one.target_id, one.draft_ids, one.base, one.limit) == (
            other.target_id,
            other.draft_ids,
            other.base,
            other.limit,
        )
        assert one.q == pytest.approx(other.q, rel=1e-4, abs=1e-9)
        assert list(one.distributions) == list(other.distributions)
        assert all(
            np.allclose(one.distributions[path], other.distributions[path], atol=1e-4)
            for path in one.distributions
        )


def rounds(
    ahead: Side,
    plain: Side,
    method: Method,
    ngrams: NgramCache,
    sampling: SamplingParams,
    budget: int,
    seed: int,
    count: int = 6,
    rule: Any = None,
) -> None:
    """Draft on both sides, keep some of it, go on; the caches hold the truth all along."""
    chance = random.Random(seed)
    for _ in range(count):
        start = len(ahead.drafter.ids)
        drafts = [side.draft(method, ngrams, sampling, budget, rule) for side in (ahead, plain)]
        same(*drafts)
        if (
            rule is None
            and method.name != "union"
            and drafts[0].slots
            and drafts[0].slots[-1].target_id != 42
        ):
            # nothing was drawn in vain, but after an end that only the host knows
            assert not left_over(ahead.newest)
        assert ahead.drafter.ids == plain.drafter.ids and ahead.sampler.peek(1) == plain.sampler.peek(1)
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
                side.drafter.commit(
                    start,
                    [len(slot.draft_ids) for slot in kept],
                    [*(slot.target_id for slot in kept), written],
                )
            assert side.cache.length < len(side.drafter.ids)
        assert ahead.drafter.ids == plain.drafter.ids
    with torch.inference_mode():
        fresh = FusedCache(plain.runner)
        assert close(ahead.drafter.logits(), fresh.forward(ahead.drafter.ids, 1).logits[0], 1e-4)
