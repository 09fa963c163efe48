"""A small target that writes several tokens in one go: the same tokens, rounds and contexts as one by one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from time import perf_counter
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from lab.equality.tiny import random_model
from omnidemo import load_pair
from omnidemo.backends import compiled_passes
from omnidemo.backends.cpu_backend import CpuBackend
from omnidemo.backends.fused_cache import FusedCache
from omnidemo.backends.fused_llama import FusedLlama
from omnidemo.decoding.backend import RoundPlan, RoundResult
from omnidemo.decoding.cost_model import CostModel
from omnidemo.decoding.cost_policy import CostPolicy
from omnidemo.decoding.draft_policy import HOLD, FixedPolicy
from omnidemo.decoding.methods import Autoregressive
from omnidemo.decoding.price_list import PriceList
from omnidemo.decoding.randomness import Sampler
from omnidemo.decoding.rollout import Rollout, RolloutRequest, anything
from omnidemo.decoding.round import RoundContext
from omnidemo.decoding.sampling import SamplingParams, as_tensor
from omnidemo.decoding.state import TargetContext
from omnidemo.pair.pair import Pair
from omnidemo.vocabulary.ngram_cache import NgramCache
from tests.support.models import PROMPT, save
from tests.support.runners import close

ROWS = 61


@pytest.fixture(scope="module")
def runner() -> FusedLlama:
    return FusedLlama(random_model("llama", ROWS, seed=4))


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    root = tmp_path_factory.mktemp("writing")
    return load_pair(save(root / "target", "byte-level"), save(root / "drafter", "sentence-piece", seed=1))


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[Rollout]:
    """What targets write in one go from now on."""
    found: list[Rollout] = []
    original = FusedCache.roll_out

    def noted(self: FusedCache, order: RolloutRequest, *given: Any) -> Rollout | None:
        rollout = original(self, order, *given)
        if order.rule is anything(self.runner.rows, self.runner.device) and rollout is not None:
            found.append(rollout)
        return rollout

    monkeypatch.setattr(FusedCache, "roll_out", noted)
    return found


class Plain:
    """A target that makes plain rounds through the backend, as the engine has it made them."""

    def __init__(
        self, runner: FusedLlama, temperature: float = 0.0, ends: tuple[int, ...] = (), seed: int = 0
    ) -> None:
        self.target, self.backend = TargetContext(FusedCache(runner)), CpuBackend(perf_counter)
        self.target.start([1, 2, 3])
        # all that a round without a draft asks of a vocabulary map
        known: Any = SimpleNamespace(to_drafter=torch.zeros(ROWS))
        nobody: Any = None
        self.sampler = Sampler(seed)
        self.context = RoundContext(
            nobody, known, NgramCache(ROWS), SamplingParams(temperature), self.sampler, frozenset(ends),
            target=self.target
        )  # fmt: skip

    def round(self, lookahead: int = 4) -> RoundResult | None:
        with torch.inference_mode():
            return self.backend.run_round(self.context, Autoregressive(), RoundPlan(0, 50, lookahead))


def true_row(runner: FusedLlama, ids: list[int]) -> Any:
    return FusedCache(runner).forward(ids, 1).logits


def both(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """In one go, and one by one."""
    for steps_per_call in (8, 1):
        monkeypatch.setattr(compiled_passes, "STRIDES", steps_per_call)
        yield


@pytest.mark.parametrize("temperature", [0.0, 0.6, 1.0])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"stop": ("e",)},
        {"max_new_tokens": 9},
        {"method": "ngram-exact", "draft_length": 0},
    ],
)
def test_answers_are_those_of_one_by_one(
    pair: Pair,
    temperature: float,
    options: dict[str, Any],
    written: list[Rollout],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def answer(seed: int, reuse: bool) -> Any:
        given = {
            "method": "autoregressive",
            "max_new_tokens": 40,
            "seed": seed,
            "temperature": temperature,
            "reuse": reuse,
        } | options
        began = perf_counter()
        done = pair.generate(PROMPT + "x" * seed, **given)
        lasted = perf_counter() - began
        times = [r.seconds for r in done.rounds]
        assert (
            all(seconds >= 0.0 for one in times for seconds in one.values())
            and sum(one["total"] for one in times) <= lasted
        )
        shown = [(token.text, token.source, token.pieces) for r in done.rounds for token in r.tokens]
        return (
            done.token_ids,
            done.finish_reason,
            len(done.rounds),
            shown,
            [token.p for r in done.rounds for token in r.tokens],
        )

    answers, counts = [], []
    for _ in both(monkeypatch):
        pair._conversations._idle.clear()
        answers.append([answer(seed, reuse) for seed in range(6) for reuse in (False, True)])
        counts.append(len(written))
    assert counts[0] == counts[1] > 4 and max(len(one.ids) for one in written) == 8
    for one, other in zip(*answers, strict=True):
        assert one[:-1] == other[:-1]
        assert one[-1] == pytest.approx(other[-1], rel=1e-4)


@pytest.mark.parametrize("temperature", [0.0, 0.3, 1.0])
@pytest.mark.parametrize(
    "options",
    [
        {"top_p": 0.9},
        {"top_k": 5},
        {"min_p": 0.1},
        {"repetition_penalty": 1.4},
        {"top_k": 20, "top_p": 0.9, "repetition_penalty": 1.15},
    ],
    ids=lambda options: " ".join(options),
)
@pytest.mark.parametrize("steps", [8, 1])
def test_filters_and_penalties_are_written_in_one_go_too(
    pair: Pair,
    temperature: float,
    options: dict[str, Any],
    steps: int,
    written: list[Rollout],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where a call writes one token alone, it does so if there is something to filter. With the reference's
    probabilities, too."""
    monkeypatch.setattr(compiled_passes, "STRIDES", steps)
    given: dict[str, Any] = {
        "method": "autoregressive",
        "temperature": temperature,
        "max_new_tokens": 40,
        "reuse": False,
    } | options
    made = [pair.generate(PROMPT, seed=seed, **given) for seed in range(3)]
    filtered = temperature > 0.0 or "repetition_penalty" in options
    assert bool(written) == (steps == 8 or filtered) and all(len(one.ids) <= steps for one in written)
    monkeypatch.setattr(CpuBackend, "run_round", lambda *given: None)
    for seed, one in enumerate(made):
        wanted = pair.generate(PROMPT, seed=seed, **given)
        assert one.token_ids == wanted.token_ids
        pairs = [[token.p for done in answer.rounds for token in done.tokens] for answer in (one, wanted)]
        assert pairs[0] == pytest.approx(pairs[1], rel=1e-3, abs=1e-6)


def test_the_first_token_waits_for_no_other(pair: Pair, written: list[Rollout]) -> None:
    rounds = pair.stream(PROMPT, method="autoregressive", max_new_tokens=20, reuse=False)
    next(rounds)
    assert not written
    next(rounds)
    assert len(written) == 1
    rounds.close()


def test_a_cancelled_answer_leaves_a_context_to_go_on_from(pair: Pair) -> None:
    fresh = pair.generate(PROMPT, method="autoregressive", max_new_tokens=30, reuse=False)
    pair._conversations._idle.clear()
    rounds = pair.stream(PROMPT, method="autoregressive", max_new_tokens=30)
    for _ in range(4):
        next(rounds)
    rounds.close()
    assert pair.generate(PROMPT, method="autoregressive", max_new_tokens=30).token_ids == fresh.token_ids


def test_no_row_is_read_twice_and_each_is_the_models(
    runner: FusedLlama, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain, rows = Plain(runner), []
    for place in range(5):
        made = plain.round()
        assert (
            made is not None and made.next_token == int(as_tensor(made.logits)[0].argmax()) and not made.slots
        )
        assert plain.target.cache.length == len(plain.target.ids) and all(one >= 0.0 for one in made.seconds)
        monkeypatch.setattr(FusedCache, "_compiled", None)  # no other pass is made
        monkeypatch.setattr(FusedCache, "roll_out", None)
        rows.append(made.logits)
        plain.target.append([made.next_token])
        assert len(plain.backend._ahead) == 4 - place
    monkeypatch.undo()
    for place, row in enumerate(rows):
        assert close(as_tensor(row), true_row(runner, plain.target.ids[: 3 + place]), 1e-4)


@pytest.mark.parametrize("taken", [0, 1, 3])
def test_a_draft_after_all(runner: FusedLlama, taken: int) -> None:
    """What was written is dropped, and its seconds are not charged to a plain round."""
    plain = Plain(runner)
    for _ in range(max(1, taken)):
        made = plain.round()
        assert made is not None and made.next_token is not None
        plain.target.append([made.next_token])
    left = sum(sum(one.seconds) for one in plain.backend._ahead)
    read = plain.target.verify([7, 8])
    assert read.stats is not None
    for place, row in enumerate(read.logits):
        assert close(as_tensor(row), true_row(runner, [*plain.target.ids, *[7, 8][:place]])[0], 1e-4)
    plain.target.append([])
    made = plain.round()
    assert (
        made is not None
        and made.seconds.draft == 0.0
        and plain.backend._wasted == pytest.approx(left)
        and left > 0.0
    )


def test_another_token_than_the_one_drawn(runner: FusedLlama) -> None:
    plain = Plain(runner)
    made = plain.round()
    assert made is not None and made.next_token is not None and plain.backend._ahead
    plain.target.append([(made.next_token + 1) % ROWS])
    made = plain.round()
    assert made is not None and made.next_token is not None
    assert close(as_tensor(made.logits), true_row(runner, plain.target.ids), 1e-4)
    plain.target.append([made.next_token])
    assert close(as_tensor(plain.target.verify([]).logits), true_row(runner, plain.target.ids), 1e-4)


def test_nothing_is_written_after_an_end(runner: FusedLlama, written: list[Rollout]) -> None:
    Plain(runner).round(5)
    ids = written[0].ids
    third = next(place for place in range(2, 6) if ids[place] not in ids[:place])
    again = Plain(runner, ends=(ROWS + 5, ids[third]))
    again.round(5)
    assert written[1].ids == ids[: third + 1] and len(written[1].read) == third


def test_a_window_that_ends(runner: FusedLlama) -> None:
    plain = Plain(runner)
    plain.target.cache.max_positions = 6
    assert plain.round() is None and plain.target.cache.length == 2
    assert close(as_tensor(plain.target.verify([]).logits), true_row(runner, [1, 2, 3]), 1e-4)


def test_logits_that_are_no_numbers(runner: FusedLlama) -> None:
    """A broken model is not made worse: the reference sees its row."""
    broken = FusedLlama(random_model("llama", ROWS, seed=4))
    broken.overwrite(
        {
            name: weight * float("nan")
            for name, weight in broken.weights().items()
            if "lm_head" in name or "embed" in name
        }
    )
    plain = Plain(broken)
    assert plain.round() is None and plain.target.cache.length == 2
    assert bool(as_tensor(plain.target.verify([]).logits).isnan().all())


def test_large_models_write_token_by_token(runner: FusedLlama, monkeypatch: pytest.MonkeyPatch) -> None:
    made = FusedCache(runner)
    assert made.steps_per_call == compiled_passes.STRIDES
    for parameters, steps_per_call in ((8_600_000, 8), (20_000_000, 4), (135_000_000, 1)):
        monkeypatch.setattr(runner, "parameters", parameters)
        assert made.steps_per_call == steps_per_call
    monkeypatch.setattr(runner, "passes", None)
    assert made.steps_per_call == 1


def test_rules_say_how_long_they_are_plain() -> None:
    assert FixedPolicy(4).plain_lookahead() == 0 and FixedPolicy(0).plain_lookahead() > 8
    rule, told = CostPolicy(8, CostModel(PriceList.linear(1.0, 9.0, 9.0))), []
    for index in range(1, HOLD):
        rule.begin_round(index, 50, 0)
        assert rule.budget(index) == 0
        told.append(rule.plain_lookahead())
    assert told == [*range(HOLD - 2, -1, -1)]


def test_sampled_tokens_use_the_numbers_that_they_were_drawn_with(runner: FusedLlama) -> None:
    plain, other = Plain(runner, temperature=0.9, seed=3), Sampler(3)
    for _ in range(4):
        made = plain.round(3)
        assert made is not None and made.next_token is not None
        row = as_tensor(made.logits)[0]
        assert (
            made.next_token == other.draw(SamplingParams(0.9).probs(row))
            and plain.sampler.position == other.position
        )
        assert made.target_probs == [pytest.approx(float(row.softmax(-1)[made.next_token]), rel=1e-4)]
        plain.target.append([made.next_token])


def test_a_target_without_compiled_code(
    tmp_path: Path, written: list[Rollout], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("omnidemo.backends.compile_kernels._ready", None)
    alone = load_pair(
        save(tmp_path / "target", "byte-level", ends=False),
        save(tmp_path / "drafter", "sentence-piece", seed=1),
    )
    assert len(alone.generate(PROMPT, method="autoregressive", max_new_tokens=12).token_ids) == 12
    assert not written
