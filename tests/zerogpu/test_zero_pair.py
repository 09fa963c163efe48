"""Answers that are written in another process, forked anew or old and stale, say what the plain pair says;
and it learns."""

from __future__ import annotations

import re
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gradio as gr
import pytest
import torch

from omnidemo import load_pair
from omnidemo.core.config import Settings
from omnidemo.core.private_folders import temporary_folder
from omnidemo.core.records import Generation, Reading, Round, Trace
from omnidemo.pair import conversation_pool
from omnidemo.pair.pair import Pair
from omnidemo.pair.zerogpu import start as zero_gpu
from omnidemo.pair.zerogpu.zero_pair import ZeroPair
from omnidemo.serving.services import Services
from tests.support import spaces_double as double
from tests.support.drafted_elsewhere import drafts, other_weights, stopped

PROMPTS = ("the small duck", "= 1 + 1 is a formula", "the other ducks swim")


@pytest.fixture
def settings(models: tuple[str, str], tmp_path: Path) -> Settings:
    options: dict[str, Any] = {
        "training": "inline",
        "update_interval": 2,
        "steps_per_update": 2,
        "lora_rank": 4,
        "learning_rate": 0.01,
    }
    names = {"target": models[0], "drafter": models[1]}
    options |= {"device": "cpu", "backend": "reference", "compact": "neither", "draft_policy": "fixed"}
    return Settings(storage=tmp_path / "storage", **names, **options)


@pytest.fixture
def plain(settings: Settings) -> Pair:
    """The same pair in this process, made before computing is forbidden here."""
    return load_pair(settings.target, settings.drafter, device="cpu", settings=settings)


@pytest.fixture
def zero(settings: Settings, plain: Pair, monkeypatch: pytest.MonkeyPatch) -> Iterator[Settings]:
    """ZeroGPU, started with the double."""
    torch.set_num_threads(1)
    double.reset()
    monkeypatch.setitem(sys.modules, "spaces", double)
    monkeypatch.setattr(zero_gpu, "_started", None)
    yield zero_gpu.start(settings)
    double.reset()


@pytest.fixture
def pair(zero: Settings, monkeypatch: pytest.MonkeyPatch) -> ZeroPair:
    double.forbid(monkeypatch.setattr)
    made = zero_gpu.build(zero.target, zero.drafter, zero, lambda *_: None)
    assert isinstance(made, ZeroPair)
    return made


@pytest.fixture
def services(zero: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[Services]:
    made = Services(zero)
    made.pool.load(zero.target, zero.drafter)
    until = time.monotonic() + 60
    while made.pool.state(zero.target, zero.drafter).stage != "ready":
        assert time.monotonic() < until, made.pool.state(zero.target, zero.drafter)
        time.sleep(0.05)
    yield made
    made.close()


def answers(pair: Pair, **options: Any) -> list[tuple[int, ...]]:
    return [pair.generate(prompt, max_new_tokens=24, **options).token_ids for prompt in PROMPTS]


@pytest.mark.parametrize("kept", [1, 100])
@pytest.mark.parametrize("method", ["autoregressive", "ngram-exact"])
def test_greedy_answers_equal_the_plain_pair(
    pair: ZeroPair, plain: Pair, monkeypatch: pytest.MonkeyPatch, kept: int, method: str
) -> None:
    monkeypatch.setattr(double, "kept", kept)
    written = answers(pair, method=method)
    assert double.forks == (len(PROMPTS) if kept == 1 else 1)
    assert all(1 < seconds <= 120 for seconds in double.durations)
    monkeypatch.undo()  # from here on this process computes
    assert written == answers(plain, method=method)


def test_draws_and_ngrams_equal_the_plain_pair(
    pair: ZeroPair, plain: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a temperature an answer depends on the n-grams too: a fresh fork must have those of the answers
    before."""
    written = answers(pair, temperature=1.0, seed=3)
    found = sorted((one.target_id, one.drafter_ids) for one in pair.ngrams)
    monkeypatch.undo()
    assert written == answers(plain, temperature=1.0, seed=3)
    assert found == sorted((one.target_id, one.drafter_ids) for one in plain.ngrams) and found


@pytest.mark.parametrize("kept", [1, 100])
def test_the_form_of_an_answer_goes_along(
    pair: ZeroPair, plain: Pair, monkeypatch: pytest.MonkeyPatch, kept: int
) -> None:
    monkeypatch.setattr(double, "kept", kept)
    options: dict[str, Any] = {"regex": "(duck|goose), [0-9]{2}", "temperature": 0.9, "seed": 4}
    written = [pair.generate(prompt, draft_policy="chance", **options) for prompt in PROMPTS]
    assert all(re.fullmatch(options["regex"], made.text) for made in written)
    assert sum(made.metrics["forced"] or 0 for made in written) > 0
    with pytest.raises(ValueError, match="regex of the answer"):
        pair.generate("duck", regex="(a")
    monkeypatch.undo()
    assert [made.token_ids for made in written] == answers(plain, method="autoregressive", **options)


def test_a_stale_process_forgets_ngrams_that_are_gone(
    pair: ZeroPair, plain: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(double, "kept", 100)
    answers(pair, temperature=1.0, seed=3)
    pair.clear_cache()
    written = answers(pair, temperature=1.0, seed=3)
    assert double.forks == 1
    monkeypatch.undo()
    assert written == answers(plain, temperature=1.0, seed=3)


@pytest.mark.parametrize("kept", [1, 100])
def test_a_published_version_drafts_in_the_next_call_and_goes_with_a_reset(
    pair: ZeroPair, plain: Pair, monkeypatch: pytest.MonkeyPatch, kept: int
) -> None:
    monkeypatch.setattr(double, "kept", kept)
    other = other_weights(plain)
    base = drafts(pair)
    pair.publish(1, other)
    learned, again = drafts(pair), drafts(pair)
    pair.drop_domain("default")
    pair.publish(1, other)  # another version 1
    pair.publish(0, {})
    reset = drafts(pair)
    monkeypatch.undo()
    assert base == drafts(plain) == reset and base[1].startswith("adapter-0.")
    plain.publish(1, other)
    assert learned == again == drafts(plain) and learned[1].startswith("adapter-1-")


def test_traces_rounds_and_costs_come_back(pair: ZeroPair) -> None:
    traces: list[Trace] = []
    pair.learners.append(traces.append)
    heard: list[int] = []
    pair.round_listeners.append(lambda done: heard.append(done.index))
    made = pair.generate(PROMPTS[0], max_new_tokens=24, draft_policy="confidence")
    assert [trace.key for trace in traces] == [made.key] and traces[0].top_p.size
    assert heard == [done.index for done in made.rounds] and made.metrics["time_to_first_token"]
    before = pair._line("default").cost_model
    assert before.rounds == len(made.rounds) and before.prices.taken()
    pair.generate(PROMPTS[1], max_new_tokens=24, draft_policy="confidence")
    after = pair._line("default").cost_model
    assert after is not before and after.prices.heard > before.prices.heard
    pair.forget("default")
    assert pair._line("default").cost_model.rounds == 0


def test_errors_arrive_with_their_text(pair: ZeroPair, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="draft_length = 99"):
        pair.generate("duck", draft_length=99)
    assert double.forks == 0  # no GPU was asked for
    monkeypatch.setattr(
        double, "refusal", gr.Error("You have exceeded your ZeroGPU quota (60s requested vs. 0s left).")
    )
    with pytest.raises(RuntimeError, match="exceeded your ZeroGPU quota"):
        pair.generate("duck")
    monkeypatch.setattr(double, "refusal", None)

    def broken(self: Any, call: Any, cancelled: Any) -> Any:
        raise KeyError("what went wrong over there")

    monkeypatch.setattr("omnidemo.pair.zerogpu.gpu_pair.GpuPair.serve", broken)
    with pytest.raises(
        RuntimeError, match="KeyError in the process that has the GPU: 'what went wrong over there'"
    ):
        pair.generate("duck")
    monkeypatch.setattr(
        "omnidemo.pair.zerogpu.gpu_pair.GpuPair.serve",
        lambda self, call, cancelled: sys.modules["os"]._exit(9),
    )
    with pytest.raises(RuntimeError, match="GPU task aborted"):
        pair.generate("duck")
    assert pair.in_flight == 0


@pytest.mark.parametrize("kept", [1, 100])
def test_a_lock_that_is_held_while_it_forks_is_not_waited_for(
    pair: ZeroPair, monkeypatch: pytest.MonkeyPatch, kept: int
) -> None:
    monkeypatch.setattr(double, "held", pair._lock)
    monkeypatch.setattr(double, "kept", kept)
    assert len(pair.generate("duck", max_new_tokens=8).token_ids) == 8


def test_stop_ends_an_answer_and_keeps_its_trace(pair: ZeroPair) -> None:
    traces: list[Trace] = []
    pair.learners.append(traces.append)
    stopped(pair)
    steps = pair.stream("duck", max_new_tokens=200, method="autoregressive")
    next(steps)
    steps.close()  # a closed page
    assert pair.in_flight == 0 and not list(pair._stops.iterdir())


def test_stop_ends_the_reading_of_a_long_prompt(pair: ZeroPair, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversation_pool, "chunk_size", lambda runner: 1)
    asked = threading.Event()
    parts = pair.parts(" ".join(PROMPTS * 3), max_new_tokens=20, cancelled=asked.is_set)
    assert [type(next(parts)) for _ in range(3)] == [Reading] * 3
    asked.set()
    made: list[Generation] = []

    def rest() -> Iterator[Reading | Round]:
        made.append((yield from parts))

    assert all(isinstance(part, Reading) for part in rest())
    assert made[0].finish_reason == "cancelled" and not made[0].token_ids and pair.in_flight == 0


def test_chat_compare_traffic_and_learning(
    zero: Settings, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the page does. Training inline computes in this process, so only runners of this pair are
    forbidden here."""
    names: dict[str, Any] = {"target": zero.target, "drafter": zero.drafter}
    options: dict[str, Any] = {"method": "ngram-exact", "max_new_tokens": 16, "temperature": 0.0}
    versions = []
    for number in range(3):
        said = [{"role": "user", "content": f"duck number {number}"}]
        *rounds, last = services.chats.chat(session="s", messages=said, **names, **options)
        assert "".join(done.text for done in rounds) == last.text  # type: ignore[union-attr]
        versions.append(last.adapter_version)  # type: ignore[union-attr]
    assert versions == [0, 0, 1] and services.adaptation.trainer(zero.target, zero.drafter).version == 1
    assert services.store.flush() and len(services.store.requests(session="s")) == 3
    methods = ["autoregressive", "ngram-exact"]
    rows = list(
        services.chats.compare(prompts=["duck"], methods=methods, max_new_tokens=16, temperature=0.0, **names)
    )
    assert [row.method for row in rows] == methods and all(row.identical for row in rows)
    assert {card.name for card in services.models()} <= {zero.target, zero.drafter}


def test_files_that_stop_answers_lie_where_the_next_start_sweeps(pair: ZeroPair) -> None:
    assert pair._stops.parent == temporary_folder()


def test_another_pair_is_refused_with_the_reason(zero: Settings, services: Services) -> None:
    services.pool.load("bundled/large", "bundled/drafter")
    until = time.monotonic() + 20
    while (
        services.pool.state("bundled/large", "bundled/drafter").stage != "failed" and time.monotonic() < until
    ):
        time.sleep(0.05)
    error = services.pool.state("bundled/large", "bundled/drafter").error or ""
    assert error.startswith("On ZeroGPU this app has one pair") and "restart the Space" in error
