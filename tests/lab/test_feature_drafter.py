"""The feature drafter of the laboratory: recorded states are the target's, and along them it learns to guess
several tokens ahead."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from lab.drafters.answers import save as save_answers
from lab.drafters.batched import Answer, Order
from lab.drafters.features.feature_scores import count_rounds, guess_ahead
from lab.drafters.features.feature_training import AHEAD, Steps, beginning, most_frequent, train
from lab.drafters.features.layer import Features, load, save
from lab.drafters.features.recorder import matrices, record, walks
from lab.drafters.training.optimiser import Rates
from lab.drafters.training.plan import Plan
from omnidemo.backends.fused_llama import FusedLlama

VOCABULARY, TOP = 48, 16


def answered(folder: Path, runner: FusedLlama, count: int = 12) -> None:
    """A shard of greedy answers of a tiny target."""
    answers = []
    for number in range(count):
        prompt, cache = [number + 1, 2 * number + 3], runner.new_cache()
        ids, top, logprobs = list[int](), list[np.ndarray](), list[np.ndarray]()
        unread = prompt
        for _ in range(24):
            logits = torch.as_tensor(cache.forward(unread, 1).logits)[0]
            values, best = logits.log_softmax(-1).topk(TOP)
            top.append(best.numpy().astype(np.int32))
            logprobs.append(values.numpy().astype(np.float16))
            ids.append(int(best[0]))
            unread = ids[-1:]
        order = Order(f"t/{'ab'[number % 2]}/{number}/0", 0.0, number, 24)
        answers.append(Answer(order, prompt, ids, np.stack(top), np.stack(logprobs), "length"))
    save_answers(folder, "t", answers)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Answers of a target and the states along them."""
    torch.manual_seed(5)
    config = LlamaConfig(
        vocab_size=VOCABULARY, hidden_size=32, intermediate_size=48, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=128, initializer_range=0.3,
    )  # fmt: skip
    runner = FusedLlama(LlamaForCausalLM(config).eval().requires_grad_(False), fast=False)
    made = tmp_path_factory.mktemp("features")
    (made / "answers").mkdir()
    answered(made / "answers", runner)
    model = cast(Any, SimpleNamespace(runner=runner, name="tiny"))
    assert record(model, made / "answers", "t", made / "states", 10**6, str) == 12 * 24
    return made


def test_recorded_states_are_what_the_target_wrote_from(folder: Path) -> None:
    _, head = matrices(folder / "states")
    found = list(walks(folder / "answers", "t", folder / "states"))
    assert len(found) == 12
    for walk in found:
        assert walk.ids == [walk.answer.prompt[-1], *walk.answer.ids]
        assert walk.states.shape == (25, 32) and walk.answer.top is not None
        logits = torch.from_numpy(walk.states[1:].astype(np.float32) @ head.astype(np.float32).T)
        found_there = logits.log_softmax(-1).gather(-1, torch.from_numpy(walk.answer.top.astype(np.int64)))
        assert np.allclose(found_there, walk.answer.logprobs, atol=0.05)  # all are kept in float16


def test_it_learns_to_guess_ahead_and_comes_back_from_its_file(folder: Path, tmp_path: Path) -> None:
    places = folder / "answers", "t", folder / "states"
    found = list(walks(*places))
    kept, (embedding, head) = most_frequent(found, 40), matrices(folder / "states")
    fresh = Features(beginning(kept, embedding, head, 16, 32), VOCABULARY)
    said = list[str]()
    model = train(*places, 40, 16, 32, Plan(60 * 64, 1, batch=64), Rates(0.02, 5e-3, 4, 0.5), said.append)
    before, after = (
        np.mean([np.nanmean(guess_ahead(one, walk)[0], 1) for walk in found], 0) for one in (fresh, model)
    )
    assert (after > before + 0.1).all() and "12 answers" in said[0]
    save(model, tmp_path / "f" / "drafter.safetensors")
    read = load(tmp_path / "f" / "drafter.safetensors")
    assert read.vocabulary == VOCABULARY and read.named["kept"].tolist() == kept.tolist()
    first, again = guess_ahead(model, found[0]), guess_ahead(read, found[0])
    assert np.array_equal(first[0], again[0], equal_nan=True)


def test_labels_and_chains_stay_within_an_answer(folder: Path) -> None:
    found = list(walks(folder / "answers", "t", folder / "states"))[:2]
    embedding, head = matrices(folder / "states")
    model = Features(beginning(torch.arange(VOCABULARY), embedding, head, 8, 8), VOCABULARY)
    steps = Steps.of(found, model.places)
    chains = steps.chains(torch.tensor([0, 22, 24]))
    assert [same.tolist() for _, same in chains] == [
        [True, True, False], [True, True, False], [True, False, False], [True, False, False],
    ]  # fmt: skip
    for ahead in guess_ahead(model, found[0]):
        assert ahead.shape == (AHEAD, 24) and np.isnan(ahead).sum() == 1 + 2 + 3


def test_rounds_are_counted_with_what_a_chain_guesses_from_where_it_begins() -> None:
    right = np.array([[1, 0, 1, 1, 1.0], [1, 1, 0, 1, np.nan], [0, 1, 1, np.nan, np.nan], [np.nan] * 5])
    # two right and the target's own; then one right, and its end
    assert count_rounds(right) == 2
    assert count_rounds(np.ones((AHEAD, 11))) == 3  # 5 + 5 + 1
