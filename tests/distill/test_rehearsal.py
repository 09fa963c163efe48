"""A drafter that learns is held to what it wrote behind prompts of the project."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import WhitespaceSplit
from torch import Tensor
from transformers import PreTrainedTokenizerFast

from omnidemo.learning.distill import rehearsal, train_step
from omnidemo.learning.distill.learner import Learner
from omnidemo.learning.distill.worker import TrainingPlan
from omnidemo.models.adapters.adapter_state import AdapterState
from tests.support.learning import VOCAB, make_trace, save_drafter

PLAN = TrainingPlan(rank=4, learning_rate=1e-2, warmup=2, head="off")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_drafter(tmp_path_factory.mktemp("drafter"))


@pytest.fixture(scope="module", params=[PLAN.rank, 0])
def learner(request: pytest.FixtureRequest, folder: Path) -> Learner:
    return Learner(folder, request.param, seed=3)


def said(learner: Learner, state: AdapterState | None = None) -> list[Tensor]:
    """Log-probabilities [m, vocabulary] at what the base drafter wrote in each text."""
    texts = learner.rehearsed
    learner.load(learner.completed(state).weights)
    with torch.no_grad():
        return [
            learner.base(text.ids[None]).logits[0, -len(text.top_p) - 1 : -1].log_softmax(-1)
            for text in texts
        ]


def lost(learner: Learner, state: AdapterState | None) -> list[float]:
    """D(p ‖ q) at each position of each text, summed over the text."""
    pairs = zip(said(learner), said(learner, state), strict=True)
    return [float((base.exp() * (base - now)).sum()) for base, now in pairs]


def test_the_base_drafter_writes_behind_prompts_of_every_topic(learner: Learner, folder: Path) -> None:
    texts = learner.rehearsed
    assert len(rehearsal._prompts()) == len(texts) == 7 * rehearsal.OF_TOPIC
    assert len(set(rehearsal._prompts())) == len(texts) and len(texts) % rehearsal.AT_ONCE == 0
    for text, base in zip(texts, said(learner), strict=True):
        assert text.ids[0] == 1 and 1 <= len(text.top_p) <= 32 and len(text.ids) <= 64, "its context"
        assert text.top_p.shape[1] == VOCAB
        torch.testing.assert_close(base.exp().gather(1, text.top_ids), text.top_p, atol=1e-5, rtol=1e-4)
        assert (text.ids[-len(text.top_p) : -1] != 2).all(), "nothing stands behind the end of an answer"
    learner.load(learner.initial.weights)
    again, other = (rehearsal.written(learner, folder, seed) for seed in (3, 4))
    assert all(one.ids.equal(two.ids) for one, two in zip(texts, again, strict=True))
    assert any(not one.ids.equal(two.ids) for one, two in zip(texts, other, strict=True))


def test_the_loss_is_the_divergence_from_the_base_drafter(learner: Learner) -> None:
    texts, each = learner.rehearsed, rehearsal.AT_ONCE
    plan = replace(PLAN, rehearsal=0.0)
    moved, _, _ = train_step.train(learner, None, None, [[make_trace(0)]] * 10, plan)
    far = lost(learner, moved)
    for number in (0, 6, 7):  # all texts have had their turn before the seventh
        start = number * each % len(texts)
        expected = sum(far[start : start + each]) / sum(len(one.top_p) for one in texts[start : start + each])
        with torch.no_grad():
            learner.load(learner.initial.weights)
            assert rehearsal.loss(learner, texts, number).item() == pytest.approx(0, abs=1e-5)
            learner.load(moved.weights)
            assert rehearsal.loss(learner, texts, number).item() == pytest.approx(expected, rel=1e-3) != 0
    few = [replace(text, top_ids=text.top_ids[:, :8], top_p=text.top_p[:, :8]) for text in texts[:each]]
    with torch.no_grad():
        rest = rehearsal.loss(learner, few, 0).item()
        assert 0 < rest < rehearsal.loss(learner, texts, 0).item(), "the other tokens count together"


def test_what_was_known_is_kept_and_the_answers_are_learned(learner: Learner) -> None:
    batch = [make_trace(seed) for seed in range(4)]
    forgotten, left = {}, {}
    for weight in (0.0, 4.0):
        plan = replace(PLAN, learning_rate=2e-3, rehearsal=weight)
        adapter, _, steps = train_step.train(learner, None, None, [batch] * 40, plan)
        forgotten[weight] = sum(lost(learner, adapter))
        left[weight] = steps[-1].loss / steps[0].loss
    assert forgotten[4.0] < 0.6 * forgotten[0.0]
    assert left[0.0] <= left[4.0] < 1


def test_a_batch_that_teaches_nothing_moves_nothing(learner: Learner) -> None:
    trace = make_trace(1)
    first, state, _ = train_step.train(learner, None, None, [[trace]] * 3, PLAN)
    known = replace(trace, accepted=trace.accepted | True)
    _, after, steps = train_step.train(learner, first, state, [[known]], replace(PLAN, errors_only=True))
    assert steps[0].grad_norm == 0
    assert all(torch.equal(after.moments[name], moment) for name, moment in state.moments.items())


def test_a_tokenizer_without_an_end_and_one_with_ids_that_the_model_has_not(
    tmp_path: Path,
) -> None:
    folder = save_drafter(tmp_path)
    words = {f"<{number}>": number for number in range(VOCAB)} | {"assistant": VOCAB + 3}
    tokenizer = Tokenizer(WordLevel(words, unk_token="<7>"))
    tokenizer.pre_tokenizer = WhitespaceSplit()
    PreTrainedTokenizerFast(tokenizer_object=tokenizer).save_pretrained(folder)
    learner = Learner(folder, 4, seed=3)
    assert learner.rehearsed == [], "every prompt has an id that no row of the embedding has"
    train_step.train(learner, None, None, [[make_trace(1)]], PLAN)

    del words["assistant"]
    tokenizer = Tokenizer(WordLevel(words, unk_token="<7>"))
    tokenizer.pre_tokenizer = WhitespaceSplit()
    PreTrainedTokenizerFast(tokenizer_object=tokenizer).save_pretrained(folder)
    learner = Learner(folder, 4, seed=5)
    assert len(learner.rehearsed) == 28 and all(len(text.top_p) == 32 for text in learner.rehearsed)


def test_a_drafter_that_cannot_write_learns_freely(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(*_: object) -> None:
        raise RuntimeError("no memory")

    monkeypatch.setattr(rehearsal, "written", fails)
    learner = Learner(folder, 4, seed=11)
    _, _, steps = train_step.train(learner, None, None, [[make_trace(1)]] * 2, PLAN)
    train_step.train(learner, None, None, [[make_trace(1)]], PLAN)
    assert len(steps) == 2 and steps[0].grad_norm > 0
    assert caplog.text.count("learn without being held") == 1 and "no memory" in caplog.text


def test_a_large_drafter_writes_fewer(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rehearsal, "WORK", 1)
    assert len(Learner(folder, 4, seed=12).rehearsed) == rehearsal.AT_ONCE
