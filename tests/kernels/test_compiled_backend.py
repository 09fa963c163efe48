"""Rounds with compiled draws and judgements are those of the reference, whatever comes in between."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from lab.equality.tiny import random_model
from omnidemo import load_pair
from omnidemo.backends import compile_kernels
from omnidemo.backends.compiled_backend import CompiledBackend
from omnidemo.backends.fused_llama import FusedCache, FusedLlama
from omnidemo.decoding.contexts import DrafterContext
from omnidemo.decoding.engine import DecodingState, decode
from omnidemo.decoding.methods import make_method
from omnidemo.decoding.randomness import Sampler, SharedNoise
from omnidemo.decoding.sampling import SamplingParams
from omnidemo.decoding.state import TargetContext
from tests.support.models import PROMPT, save
from tests.support.worlds import NESTED, World, copy_nothing, distance, law_of, p_value


@pytest.fixture(autouse=True)
def nothing_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    copy_nothing(monkeypatch)


def test_a_drafter_whose_logits_are_no_numbers(tmp_path: Path) -> None:
    """The answer is the target's all the same."""
    assert compile_kernels.wait()
    pair = load_pair(
        save(tmp_path / "target", "byte-level"), save(tmp_path / "drafter", "sentence-piece", seed=1)
    )
    expected = pair.generate(PROMPT, method="autoregressive", max_new_tokens=12, reuse=False).token_ids
    weights = pair.drafter.runner.weights()
    pair.drafter.runner.overwrite(
        {name: weight * float("nan") for name, weight in weights.items() if "lm_head" in name}
    )
    made = pair.generate(PROMPT, method="token-intersection", max_new_tokens=12, reuse=False)
    assert made.token_ids == expected


class Compiled(World):
    """A world whose models are small Llamas."""

    @cached_property
    def runners(self) -> list[FusedLlama]:
        return [
            FusedLlama(random_model("llama", rows, seed=rows))
            for rows in (len(self.target) + 1, len(self.drafter) + 2)
        ]

    def conversation(self, prompt: Any, limit: int = 1000) -> DecodingState:
        target, drafter = (FusedCache(runner) for runner in self.runners)
        state = DecodingState(TargetContext(target), DrafterContext(drafter, self.map))
        state.start(prompt)
        return state

    def law(self, sampling: SamplingParams, count: int) -> dict[tuple[int, ...], float]:
        def row(ids: list[int]) -> np.ndarray:
            logits = FusedCache(self.runners[0]).forward(ids, 1).logits[0].astype(np.float64)
            seen = np.zeros(len(logits), np.bool_)
            seen[ids] = True
            return sampling.penalised(logits, seen) if sampling.penalises else logits

        return law_of(row, self.prompt, set(self.target.roles.get("end", ())), sampling, count)


LAWS = {
    "ngram-exact": (SamplingParams(0.8, repetition_penalty=1.7), False),
    "token-intersection": (SamplingParams(0.8, 4, 0.9, 0.05), True),
    "union": (SamplingParams(0.8), False),
}


@pytest.mark.parametrize("method", LAWS)
def test_what_is_emitted_follows_the_targets_law(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """χ² of four ids of 4,000 answers, the last two by themselves, for those come from later rounds; fixed
    seed, p > 0.001. One stream of numbers for all answers or a seed for each. `contract` has the other
    methods and samplings: there the draws are the reference's."""
    assert compile_kernels.wait()
    sampling, seeded = LAWS[method]
    monkeypatch.setattr(
        "tests.support.worlds.decode",
        lambda state, plan: decode(state, replace(plan, backend=CompiledBackend())),
    )
    world = Compiled(NESTED.target, NESTED.drafter, NESTED.prompt)
    sampler, cache, runs, ids = Sampler(3), world.cache(), 4_000, 4
    rule = make_method(method, world.map)
    with torch.inference_mode():
        numbers = (SharedNoise(seed, len(world.target) + 1) if seeded else sampler for seed in range(runs))
        counts = Counter(world.sample(rule, sampling, rng, 2, ids, cache)[-2:] for rng in numbers)

    def fit(law: dict[tuple[int, ...], float]) -> float:
        ends: dict[tuple[int, ...], float] = {}
        for path, mass in law.items():
            ends[path[-2:]] = ends.get(path[-2:], 0.0) + mass
        return p_value(counts, ends, runs)

    law, other = world.law(sampling, ids), world.law(SamplingParams(1.0), ids)
    assert fit(law) > 0.001
    assert distance(law, other) > 1e-2 and fit(other) < 0.001  # so that it would show
