"""A small target that writes several tokens in one go: the same tokens, rounds and contexts as one by one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from time import perf_counter
from typing import Any

import pytest

from omnidemo import load_pair
from omnidemo.bench.tiny import random_model
from omnidemo.core.ahead import Order, Rollout, anything
from omnidemo.core.contexts import TargetContext
from omnidemo.core.draft_length import ByCost, Fixed
from omnidemo.core.knowledge import Knowledge
from omnidemo.core.sampling import Sampler, Warp, as_tensor
from omnidemo.runtime import passes
from omnidemo.runtime.lean import LeanCache, LeanLlamaRunner
from omnidemo.runtime.pair import Pair
from test_pair import PROMPT, save
from test_runners import close

ROWS = 61


@pytest.fixture(scope="module")
def runner() -> LeanLlamaRunner:
    return LeanLlamaRunner(random_model("llama", ROWS, seed=4))


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    root = tmp_path_factory.mktemp("writing")
    return load_pair(save(root / "target", "byte-level"), save(root / "drafter", "sentence-piece", seed=1))


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[Rollout]:
    """What targets write in one go from now on."""
    found: list[Rollout] = []
    original = LeanCache.roll_out

    def noted(self: LeanCache, order: Order, *given: Any) -> Rollout | None:
        rollout = original(self, order, *given)
        if order.course is anything(self.runner.rows, self.runner.device) and rollout is not None:
            found.append(rollout)
        return rollout

    monkeypatch.setattr(LeanCache, "roll_out", noted)
    return found


def context(runner: LeanLlamaRunner) -> TargetContext:
    target = TargetContext(LeanCache(runner))
    target.start([1, 2, 3])
    return target


def order(runner: LeanLlamaRunner, count: int, ends: tuple[int, ...] = ()) -> Order:
    return Order(anything(ROWS, runner.device), Warp(0.0), count, ends=ends)


def true_row(runner: LeanLlamaRunner, ids: list[int]) -> Any:
    return LeanCache(runner).extend(ids, 1)


def both(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """In one go, and one by one."""
    for strides in (8, 1):
        monkeypatch.setattr(passes, "STRIDES", strides)
        yield


@pytest.mark.parametrize("temperature", [0.0, 0.6, 1.0])
@pytest.mark.parametrize(
    "options", [{}, {"stop": ("e",)}, {"max_new_tokens": 9}, {"method": "ngram-exact", "draft_length": 0, "probe_every": 5}]
)
def test_answers_are_those_of_one_by_one(
    pair: Pair, temperature: float, options: dict[str, Any], written: list[Rollout], monkeypatch: pytest.MonkeyPatch
) -> None:
    def answer(seed: int, reuse: bool) -> Any:
        given = {"method": "autoregressive", "max_new_tokens": 40, "seed": seed, "temperature": temperature, "reuse": reuse} | options
        began = perf_counter()
        done = pair.generate(PROMPT + "x" * seed, **given)
        lasted = perf_counter() - began
        times = [r.seconds for r in done.rounds]
        assert all(seconds >= 0.0 for one in times for seconds in one.values()) and sum(one["total"] for one in times) <= lasted
        shown = [(token.text, token.source, token.pieces) for r in done.rounds for token in r.tokens]
        return done.token_ids, done.finish_reason, len(done.rounds), shown, [token.p for r in done.rounds for token in r.tokens]

    answers, counts = [], []
    for _ in both(monkeypatch):
        pair._idle.clear()
        answers.append([answer(seed, reuse) for seed in range(6) for reuse in (False, True)])
        counts.append(len(written))
    assert counts[0] == counts[1] > 4 and max(len(one.ids) for one in written) == 8
    for one, other in zip(*answers, strict=True):
        assert one[:-1] == other[:-1]
        assert one[-1] == pytest.approx(other[-1], rel=1e-4)


@pytest.mark.parametrize("options", [{"top_p": 0.9}, {"top_k": 5}, {"min_p": 0.1}, {"repetition_penalty": 1.2}])
def test_other_warps_go_one_by_one(pair: Pair, options: dict[str, Any], written: list[Rollout]) -> None:
    pair.generate(PROMPT, method="autoregressive", temperature=1.0, max_new_tokens=12, seed=1, **options)
    assert not written


def test_the_first_token_waits_for_no_other(pair: Pair, written: list[Rollout]) -> None:
    rounds = pair.stream(PROMPT, method="autoregressive", max_new_tokens=20, reuse=False)
    next(rounds)
    assert not written
    next(rounds)
    assert len(written) == 1
    rounds.close()


def test_a_cancelled_answer_leaves_a_context_to_go_on_from(pair: Pair) -> None:
    fresh = pair.generate(PROMPT, method="autoregressive", max_new_tokens=30, reuse=False)
    pair._idle.clear()
    rounds = pair.stream(PROMPT, method="autoregressive", max_new_tokens=30)
    for _ in range(4):
        next(rounds)
    rounds.close()
    assert pair.generate(PROMPT, method="autoregressive", max_new_tokens=30).token_ids == fresh.token_ids


def test_no_row_is_read_twice_and_each_is_the_models(runner: LeanLlamaRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    target = context(runner)
    target.write_on(order(runner, 5), perf_counter)
    assert target.foresees
    monkeypatch.setattr(LeanCache, "_compiled", None)  # no other pass is made
    rows, lead = [], 0.0
    for _ in range(5):
        assert target.foresees
        rows.append(target.verify([]))
        lead += target.lead
        assert target.drawn is not None and target.drawn[0] == int(rows[-1][0].argmax()) and target.peaks is None
        assert target.cache.length == len(target.ids)
        target.append([target.drawn[0]])
    monkeypatch.undo()
    assert not target.foresees and lead == pytest.approx(0.0)
    for place, row in enumerate(rows):
        assert close(as_tensor(row), true_row(runner, target.ids[: 3 + place]), 1e-4)


@pytest.mark.parametrize("taken", [0, 1, 3])
def test_a_proposal_after_all(runner: LeanLlamaRunner, taken: int) -> None:
    """What was written is dropped, and its seconds are told to whom they were spent in vain."""
    target = context(runner)
    target.write_on(order(runner, 5), perf_counter)
    lead = 0.0
    for _ in range(taken):
        target.verify([])
        lead += target.lead
        assert target.drawn is not None
        target.append([target.drawn[0]])
    rows = target.verify([7, 8])
    assert target.lead < 0.0 and lead + target.lead == pytest.approx(0.0 if taken else target.lead)
    assert not target.foresees and target.drawn is None and target.peaks is not None
    for place, row in enumerate(rows):
        assert close(as_tensor(row), true_row(runner, [*target.ids, *[7, 8][:place]])[0], 1e-4)


def test_another_token_than_the_one_drawn(runner: LeanLlamaRunner) -> None:
    target = context(runner)
    target.write_on(order(runner, 5), perf_counter)
    target.verify([])
    assert target.drawn is not None
    target.append([(target.drawn[0] + 1) % ROWS])
    assert not target.foresees
    assert close(as_tensor(target.verify([])), true_row(runner, target.ids), 1e-4)


def test_nothing_is_written_after_an_end(runner: LeanLlamaRunner) -> None:
    target = context(runner)
    target.write_on(order(runner, 6), perf_counter)
    assert target._ahead is not None
    ids = target._ahead[1].ids
    third = next(place for place in range(2, 6) if ids[place] not in ids[:place])
    again = context(runner)
    again.write_on(order(runner, 6, ends=(ROWS + 5, ids[third])), perf_counter)
    assert again._ahead is not None and again._ahead[1].ids == ids[: third + 1] and len(again._ahead[1].read) == third


def test_a_window_that_ends(runner: LeanLlamaRunner) -> None:
    target = context(runner)
    target.cache.limit = 6
    target.write_on(order(runner, 5), perf_counter)
    assert not target.foresees and target.cache.length == 2
    assert close(as_tensor(target.verify([])), true_row(runner, [1, 2, 3]), 1e-4)


def test_logits_that_are_no_numbers(runner: LeanLlamaRunner) -> None:
    """A broken model is not made worse: the host sees its row."""
    broken = LeanLlamaRunner(random_model("llama", ROWS, seed=4))
    broken.overwrite({name: weight * float("nan") for name, weight in broken.weights().items() if "lm_head" in name or "embed" in name})
    target = context(broken)
    target.write_on(order(broken, 5), perf_counter)
    assert not target.foresees and target.cache.length == 2
    assert bool(as_tensor(target.verify([])).isnan().all())


def test_large_models_write_token_by_token(runner: LeanLlamaRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    made = LeanCache(runner)
    assert made.strides == passes.STRIDES
    for parameters, strides in ((8_600_000, 8), (20_000_000, 4), (135_000_000, 1)):
        monkeypatch.setattr(runner, "parameters", parameters)
        assert made.strides == strides
    monkeypatch.setattr(runner, "passes", None)
    assert made.strides == 1


def test_rules_say_how_long_they_rest() -> None:
    assert Fixed(4).resting() == 0 and Fixed(0).resting() > 8
    known = Knowledge()
    rule = ByCost(8, known)
    assert rule.resting() == 0
    known.speculating, known.left = False, 5
    rests = []
    while rule.budget(1, lambda: ([], 0.0)) == 0 and len(rests) < 9:
        rests.append(rule.resting())
    assert rests == [4, 3, 2, 1, 0]


def test_sampled_tokens_use_the_numbers_that_they_were_drawn_with(runner: LeanLlamaRunner) -> None:
    sampler, target = Sampler(3), context(runner)
    numbers = sampler.look_ahead(40)
    target.write_on(Order(anything(ROWS, runner.device), Warp(0.9), 4, numbers), perf_counter)
    other = Sampler(3)
    for _ in range(4):
        row = target.verify([])
        law = Warp(0.9).law(row)[0]
        assert target.drawn is not None and target.drawn[0] == other.draw(law)
        assert target.drawn[1] == pytest.approx(float(law[target.drawn[0]]), rel=1e-4)
        target.append([target.drawn[0]])


def test_a_target_without_compiled_code(tmp_path: Path, written: list[Rollout], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("omnidemo.runtime.compiling._ready", None)
    alone = load_pair(save(tmp_path / "target", "byte-level", ends=False), save(tmp_path / "drafter", "sentence-piece", seed=1))
    assert len(alone.generate(PROMPT, method="autoregressive", max_new_tokens=12).token_ids) == 12
    assert not written
