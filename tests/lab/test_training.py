"""Training of a drafter at toy size: its vocabulary, the lean model, the loop and what it writes."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedTokenizerFast

from lab.drafters import drafter_training
from lab.drafters import rows as rows_module
from lab.drafters.drafter_tokenizer import learn
from lab.drafters.drafter_training import train_drafter
from lab.drafters.rows import Chat, chat_of, pack, write_rows
from lab.drafters.spelling import LABELS, WHOLE, Spelled
from lab.drafters.training import flat_llama, row_files
from lab.drafters.training.flat_llama import Shape
from lab.drafters.training.optimiser import Rates
from lab.drafters.training.plan import Plan
from lab.drafters.training.row_files import shard_path
from lab.drafters.training.training_llama import TrainingLlama
from lab.drafters.training.training_loop import Job, latest, train
from omnidemo.models.chat_template import Speller
from omnidemo.vocabulary.vocabulary import read_vocabulary
from tests.support.tokenizer_families import SENTENCES

TEXTS = [
    'def f(x):\n    """Say it."""\n\tif x:\n        return [i for i in x][1:]\n\n\n',
    "Ünïcode – naïve café, 日本語, emoji 😀👍🏽, and a zero-width\u200bspace",
    "  leading,   multiple  and trailing   ",
    " \n \n\t\t x\r\ny\r",
    "numbers 1234567.89 and 3*4=12, don't; <0x41> <|not special|> ~!@#$%^&*()_+{}|:\"<>?`-=[]\\;',./",
    "",
    " ",
]


@pytest.fixture(scope="module")
def tokenizer() -> PreTrainedTokenizerFast:
    return learn(SENTENCES, 340)


def chats(tokenizer: PreTrainedTokenizerFast, count: int) -> list[Chat]:
    """So many, of different lengths; each token of an answer has a second label."""
    chance, found = np.random.default_rng(4), list[Chat]()
    for number in range(count):
        words = SENTENCES[number % len(SENTENCES)].split(" ")[: 2 + number % 7]
        question = [{"role": "user", "content": f"Say {number}."}]
        first = len(tokenizer.apply_chat_template(question, add_generation_prompt=True)["input_ids"])
        answered = [*question, {"role": "assistant", "content": " ".join(words)}]
        ids = tokenizer.apply_chat_template(answered)["input_ids"]
        labels, weights = np.zeros((2, len(ids), LABELS), np.uint16)
        labels[:, 0], weights[:, 0] = ids, WHOLE
        labels[first:, 1] = chance.integers(256, len(tokenizer), len(ids) - first)
        weights[first:, :2] = WHOLE - WHOLE // 4, WHOLE // 4
        found.append(chat_of("s", Spelled(ids, first, [], [], labels, weights)))
    return found


def test_every_text_comes_back_and_digits_stand_alone(
    tokenizer: PreTrainedTokenizerFast, tmp_path: Path
) -> None:
    tokenizer.save_pretrained(tmp_path)
    loaded = AutoTokenizer.from_pretrained(tmp_path)
    pieces = read_vocabulary(loaded).tokens
    for text in TEXTS:
        tokens = loaded.encode(text, add_special_tokens=False)
        assert loaded.decode(tokens) == text
        assert b"".join(pieces[token] or b"" for token in tokens) == text.encode()
    assert len(loaded.tokenize("1234")) == 4


def test_the_template_is_what_the_product_spells(tokenizer: PreTrainedTokenizerFast) -> None:
    messages = [
        {"role": role, "content": text}
        for role, text in zip(
            ("user", "assistant") * 2, ("Hi  there,", " Hello.\n", "2 + 2?", "4"), strict=True
        )
    ]
    text = tokenizer.apply_chat_template(messages, tokenize=False)
    assert (
        text == "<|begin|><|user|>Hi  there,<|end|><|assistant|> Hello.\n<|end|><|user|>2 +"
        " 2?<|end|><|assistant|>4<|end|>"
    )
    asked = tokenizer.apply_chat_template(messages[:3], add_generation_prompt=True)["input_ids"]
    assert Speller(tokenizer, read_vocabulary(tokenizer)).messages(messages[:3]) == asked
    assert tokenizer.decode(asked).endswith("2?<|end|><|assistant|>")


def test_lean_equals_transformers_chat_by_chat(tokenizer: PreTrainedTokenizerFast) -> None:
    shape = Shape(len(tokenizer), layers=2, hidden=32, heads=2, head_dim=16, inter=48)
    flat = flat_llama.initial(shape, 1) * 2
    gradient = torch.zeros_like(flat)
    row = torch.from_numpy(next(pack(chats(tokenizer, 20), 300, 0, seed=1)).astype(np.int64))
    loss = TrainingLlama(shape, flat, gradient, compiled=False).step(row[None], 1.0)
    model = flat_llama.to_transformers(shape, flat, tokenizer)
    edges = [*sorted(set(row[2].tolist())), 300]
    labels, weights = row[3 : 3 + LABELS].T, row[3 + LABELS :].T / WHOLE
    total = torch.zeros(())
    for low, high in pairwise(edges):
        wanted = low + 1 + torch.nonzero(row[1, low + 1 : high])[:, 0]
        log = model(row[None, 0, low:high]).logits[0].log_softmax(-1)[wanted - low - 1]
        total = total - (weights[wanted] * log.gather(1, labels[wanted])).sum()
    total.backward()
    assert len(edges) > 3 and (weights[:, 1] > 0).any()
    assert loss == pytest.approx(total.item(), rel=1e-4)
    for name, view in shape.views(gradient).items():
        assert torch.allclose(view, dict(model.named_parameters())[name].grad, atol=1e-3, rtol=1e-2), name
    assert torch.equal(flat_llama.from_transformers(shape, model), flat)


def test_schedule_and_plan() -> None:
    rates, plan = Rates(warmup=10, decay=0.3), Plan(8192 * 100, 512)
    factors = [rates.factor(step, plan.progress(step, 0.0)) for step in range(plan.steps)]
    assert factors[0] == pytest.approx(0.1) and factors[10:70] == [1.0] * 60 and 0 < factors[-1] < 0.05
    assert plan.rows(1) == range(16, 32) and plan.rows(plan.steps - 1).stop * 512 == plan.tokens
    short = replace(plan, tokens=8192 * 10, minutes=2)
    assert short.progress(5, 90.0) == 0.75 and short.progress(9, 60.0) == 0.9


@pytest.fixture
def job(tokenizer: PreTrainedTokenizerFast, tmp_path: Path) -> Job:
    """Eight steps of four rows."""
    shape = Shape(len(tokenizer), layers=1, hidden=16, heads=1, head_dim=16, inter=24)
    plan, data = Plan(8 * 128, 32, batch=128), tmp_path / "data"
    data.mkdir()
    rows = list(pack(chats(tokenizer, 90), 32, 0, seed=1))[:32]
    np.save(shard_path(data, 32, 0), np.stack(rows))
    return Job(shape, plan, Rates(warmup=2), data, tmp_path / "checkpoint.pt", compiled=False)


def test_resume_equals_uninterrupted(job: Job) -> None:
    flat = flat_llama.initial(job.shape, 2)
    whole, clock = train(job, flat, workers=1, inline=True)
    job.checkpoint.unlink()
    for job.stop_at in (4, 7):
        _, part = train(job, flat, workers=1, inline=True)
        assert part.step == len(part.losses) == job.stop_at
    job.stop_at = None
    again, resumed = train(job, flat, workers=1, inline=True)
    assert len(clock.losses) == 8 and clock.losses == resumed.losses
    assert torch.equal(whole, again) and not torch.equal(whole, flat)


def test_more_tokens_go_on_from_the_constant_phase(job: Job) -> None:
    train(job, flat_llama.initial(job.shape, 2), workers=1, inline=True)
    decayed = latest(job)
    job.plan = replace(job.plan, tokens=16 * 128)
    extended = latest(job)
    assert decayed is not None and extended is not None
    assert (decayed["step"], extended["step"]) == (8, 6)


def test_two_workers_compute_what_one_does(job: Job) -> None:
    flat = flat_llama.initial(job.shape, 2)
    one = train(job, flat, workers=1, inline=True)[1].losses
    job.checkpoint.unlink()
    two = train(job, flat, workers=2)[1].losses
    assert one == pytest.approx(two, rel=2e-3)


def test_a_run_ends_when_its_minutes_are_over(job: Job) -> None:
    job.plan = replace(job.plan, minutes=1e-6)
    flat = flat_llama.initial(job.shape, 2)
    assert [train(job, flat, workers=1, inline=True)[1].step for _ in range(2)] == [1, 1]


def test_save_can_be_loaded(tokenizer: PreTrainedTokenizerFast, tmp_path: Path) -> None:
    shape, folder = Shape(len(tokenizer), 1, 32, 2, 16, 48), tmp_path / "model"
    for seed in (1, 2):
        flat_llama.save(shape, flat_llama.initial(shape, seed), tokenizer, folder)
    assert list(tmp_path.iterdir()) == [folder]
    model = AutoModelForCausalLM.from_pretrained(folder)
    assert model.dtype == torch.bfloat16 and model.generation_config.eos_token_id == tokenizer.eos_token_id
    assert model.lm_head.weight is model.model.embed_tokens.weight
    saved = flat_llama.from_transformers(shape, model)
    assert torch.equal(saved, flat_llama.initial(shape, 2).bfloat16().float())


def test_a_drafter_is_trained_on_rows_and_further_from_a_model(
    tokenizer: PreTrainedTokenizerFast, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (rows_module, row_files):
        monkeypatch.setattr(module, "SHARD_TOKENS", 2048)
    monkeypatch.setattr(drafter_training, "train", partial(train, inline=True))
    tokenizer.save_pretrained(tmp_path / "tokenizer")
    assert write_rows(chats(tokenizer, 90), tmp_path / "rows", 64, 0, epochs=2) % 32 == 0

    def trained(out: str, start: Path | None) -> dict[str, object]:
        return train_drafter(
            tmp_path / "rows", tmp_path / "tokenizer", "tiny", tmp_path / out, start, 1024, None, 256,
            workers=1, compiled=False,
        )  # fmt: skip

    facts = trained("first", None)
    assert (facts["steps"], facts["tokens"], facts["start"]) == (4, 1024, "random weights")
    assert json.loads((tmp_path / "first" / "facts.json").read_text()) == facts
    drafter = AutoModelForCausalLM.from_pretrained(tmp_path / "first" / "model")
    assert drafter.config.hidden_size == 160 and drafter.config.vocab_size == len(tokenizer)
    further = trained("further", tmp_path / "first" / "model")
    assert float(str(further["loss"])) < float(str(facts["loss"]))
