"""The law of what is emitted, with every random choice branched, where compiled passes give the logits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from lab.equality.tiny import random_model
from omnidemo.backends.fused_llama import FusedLlama
from omnidemo.decoding.backend import Pass
from omnidemo.decoding.contexts import DrafterContext
from omnidemo.decoding.engine import DecodingState
from omnidemo.decoding.methods import (
    BlockVerification,
    Method,
    NgramExact,
    StringRejection,
    TokenIntersection,
)
from omnidemo.decoding.sampling import SamplingParams
from omnidemo.decoding.state import TargetContext
from omnidemo.models.transformers_runner import TransformersRunner
from tests.support.worlds import PLAIN, World, distance, law_of

METHODS: dict[str, Method] = {
    "exact": NgramExact(),
    "exact, by closer bounds": NgramExact(attempts=0),
    "intersection": TokenIntersection(),
    "block": BlockVerification(),
    "string rejection": StringRejection(),
}


class Modelled(World):
    """A world of random Llamas in the hands of the fast runners; its law is what `transformers`' own modules
    say of the target."""

    def __init__(self, world: World, compact: bool, threads: int) -> None:
        super().__init__(world.target, world.drafter, world.prompt, world.seed)
        runners: list[tuple[FusedLlama, TransformersRunner]] = []
        object.__setattr__(self, "runners", runners)  # a world is frozen
        for rows in (len(world.target) + 1, len(world.drafter) + 2):
            model = random_model("llama", rows, seed=rows)
            for weight in model.parameters():
                weight.data.copy_(weight.data.bfloat16())
            runner = FusedLlama(model, form="bfloat16" if compact else "float32")
            runner.threads = threads
            runners.append((runner, TransformersRunner(model)))

    def conversation(self, prompt: Sequence[int], limit: int = 1000) -> DecodingState:
        target, drafter = (Widened(fast.new_cache()) for fast, _ in self.runners)
        state = DecodingState(TargetContext(target), DrafterContext(drafter, self.map))
        state.start(prompt)
        return state

    def general(self, sampling: SamplingParams, count: int) -> dict[tuple[int, ...], float]:
        def row(ids: list[int]) -> np.ndarray:
            return Widened(self.runners[0][1].new_cache()).forward(ids, 1).logits[0]

        return law_of(row, self.prompt, set(self.target.roles.get("end", ())), sampling, count)


class Widened:
    """A cache whose logits are given as float64, as the branches' masses are summed; the padded row is never
    likely."""

    def __init__(self, cache: Any) -> None:
        self.cache, self.max_positions = cache, cache.max_positions

    @property
    def length(self) -> int:
        return self.cache.length

    @property
    def nbytes(self) -> int:
        return self.cache.nbytes

    def forward(self, ids: Sequence[int], last: int, stats_at: float | None = None) -> Pass:
        logits = self.cache.forward(ids, last).logits.astype(np.float64)
        logits[:, -1] = -30.0
        return Pass(logits)

    def trim(self, length: int) -> int:
        return self.cache.trim(length)


@pytest.mark.parametrize(
    ("compact", "threads"),
    [(False, 1), (False, 3), (True, 3)],
    ids=["four bytes", "shared", "two bytes, shared"],
)
@pytest.mark.parametrize("name", METHODS)
def test_the_fast_runners_keep_the_law(
    name: str, compact: bool, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("omnidemo.backends.compiled_passes.WORTH_SHARING", 0)
    world = Modelled(PLAIN, compact, threads)
    assert (world.runners[0][0].form == "bfloat16") == compact
    law, sampling = world.emitted_law(METHODS[name], SamplingParams(0.8), 2, 2), SamplingParams(0.8)
    assert sum(law.values()) == pytest.approx(1, abs=1e-9)
    assert distance(law, world.general(sampling, 2)) < 1e-6
    assert distance(law, world.general(SamplingParams(0.9), 2)) > 1e-3  # so that it would show
