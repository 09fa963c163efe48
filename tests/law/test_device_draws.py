"""Draws on a device: the law is the same as on a CPU, and a drafted token costs one wait. A CPU plays the
device here."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from omnidemo.decoding import randomness
from omnidemo.decoding import round as decoding_round
from omnidemo.decoding import sampling as decoding_sampling
from omnidemo.decoding.backend import Slot
from omnidemo.decoding.draft_policy import FixedPolicy
from omnidemo.decoding.engine import AnswerPlan, Limits, decode
from omnidemo.decoding.methods import make_method, ngram_residual
from omnidemo.decoding.randomness import Sampler, draw_with_prob
from omnidemo.decoding.round import RoundContext
from omnidemo.decoding.sampling import SamplingParams, fetch
from tests.support.worlds import CASES, NESTED, Branching, World, pretend_device


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend_device(monkeypatch)


class Asking(FixedPolicy):
    """A rule of fixed length that wants to know how sure the drafter was."""

    watches = True

    def __init__(self, longest: int) -> None:
        super().__init__(longest)
        self.heard: list[float] = []

    def keep_drafting(self, draft_probs: Any, states: Any) -> bool:
        self.heard += draft_probs
        return True


@pytest.mark.parametrize("index", [0, 7, 2**24 + 1, 2**31 - 1])
@pytest.mark.parametrize("number", [0.0, 1.0, 0.1, 1e-30])
def test_fetch_is_exact(index: int, number: float) -> None:
    wanted = torch.tensor([number])
    assert fetch(torch.tensor([index]), wanted) == ([index], [float(wanted)])


def test_draws_elsewhere_are_those_on_a_cpu(elsewhere: None, monkeypatch: pytest.MonkeyPatch) -> None:
    law = torch.rand(5000, generator=torch.Generator().manual_seed(1)) ** 8
    law[::3] = 0.0
    law /= law.sum()
    there, known, here = Sampler(3), Sampler(3), Sampler(3)
    ids = [there.draw(law) for _ in range(200)]
    pairs = [draw_with_prob(known, law) for _ in range(200)]
    monkeypatch.undo()
    assert ids == [here.draw(law) for _ in range(200)] == [index for index, _ in pairs]
    assert all(probability == float(law[index]) > 0 for index, probability in pairs)


def test_draws_follow_the_law(elsewhere: None) -> None:
    law, sampler = torch.tensor([0.0, 0.5, 0.0, 0.3, 0.2, 0.0]), Sampler(0)
    counts = Counter(sampler.draw(law) for _ in range(20_000))
    assert set(counts) == {1, 3, 4}
    # Six standard deviations of a share of 20,000 draws are at most 0.022.
    assert all(abs(counts[index] / 20_000 - float(law[index])) < 0.022 for index in (1, 3, 4))


def test_other_choosers_need_not_know(elsewhere: None) -> None:
    law = torch.tensor([0.0, 0.25, 0.75], dtype=torch.float64)
    assert draw_with_prob(Branching([2]), law) == (2, 0.75)


def _run(world: World, method: str, sampling: SamplingParams) -> tuple[list[list[int]], list[float]]:
    rule, answers = Asking(4), []
    for seed in range(5):
        one = replace(world, seed=seed)
        chosen, state = make_method(method, one.map), one.conversation(one.prompt)
        plan = AnswerPlan(chosen, one.map, one.cache(), sampling, Sampler(seed), Limits(30), rule)
        answers.append([token.id for r in decode(state, plan) for token in r.tokens])
    return answers, rule.heard


@pytest.mark.parametrize(("world", "method"), CASES, ids=lambda one: one if isinstance(one, str) else "")
@pytest.mark.parametrize(
    "sampling",
    [SamplingParams(0.0), SamplingParams(1.0), SamplingParams(0.8, top_k=3, repetition_penalty=1.2)],
    ids=["greedy", "sampled", "warped"],
)
def test_the_engine_says_the_same_elsewhere(
    world: World, method: str, sampling: SamplingParams, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = _run(world, method, sampling)
    for module in (decoding_sampling, randomness, decoding_round, ngram_residual):
        monkeypatch.setattr(module, "on_host", lambda tensor: False)
    there = _run(world, method, sampling)
    assert there[0] == here[0]
    assert there[1] == pytest.approx(here[1], rel=1e-5)
    assert (method in ("autoregressive", "copy")) is not bool(here[1])


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_a_drafted_token_costs_one_wait(
    temperature: float, elsewhere: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[str] = []

    def watch(name: str) -> None:
        original = getattr(Tensor, name)

        def watched(self: Tensor, *more: Any, **options: Any) -> Any:
            waits.append(name)
            return original(self, *more, **options)

        monkeypatch.setattr(Tensor, name, watched)

    world = NESTED
    state = world.conversation(world.prompt)
    assert state.drafter is not None
    sampling, rule = SamplingParams(temperature), Asking(4)
    context = RoundContext(
        state.drafter,
        world.map,
        world.cache(),
        sampling,
        Sampler(1),
        frozenset(),
        policy=rule,
        target=state.target,
    )
    state.drafter.logits()
    for name in ("cpu", "item", "tolist", "__int__", "__float__", "__bool__"):
        watch(name)
    drawn, q, law = context.draw(context.readable_logit_mask)
    slot = Slot(0, (drawn,), q, len(state.drafter.ids), distributions={(): law}, draft_probs=(q,))
    assert context.keep_drafting(slot) and rule.heard == [q] and 0.0 < q < 1.0
    assert waits == ["cpu"]
