"""The bundled family: tokenizers, rows, the lean model, resuming and transplanting, all at toy size."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice, pairwise
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedTokenizerFast

from lab.bundled import card, data, evaluate
from lab.bundled import train as train_module
from lab.bundled.corpus import mixer
from lab.bundled.corpus.base import Example
from lab.bundled.transplant import grown, transplanted, widened
from lab.drafters.training import family, tokenizers
from lab.drafters.training.family import Shape
from lab.drafters.training.optimiser import Rates
from lab.drafters.training.plan import Clock
from lab.drafters.training.row_files import shard_path
from lab.drafters.training.training_llama import TrainingLlama
from lab.drafters.training.training_loop import Job, Plan, latest, train
from omnidemo.config import DRAFTER, Settings
from omnidemo.models.catalogue import reading
from omnidemo.serving.pair_loading import build_pair
from omnidemo.vocab.vocabulary import read_vocabulary

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
def family_tokenizers() -> dict[str, PreTrainedTokenizerFast]:
    texts = [
        text for example in islice(mixer.stream(3, "train"), 400) for turn in example.turns for text in turn
    ]
    return {
        "a": tokenizers.train_byte_level(texts, 900),
        "b": tokenizers.train_spaces(texts, 900),
        "drafter": tokenizers.train_byte_level(texts[:100], 400),
    }


@pytest.mark.parametrize("name", ["a", "b", "drafter"])
def test_round_trip(name: str, family_tokenizers: dict[str, PreTrainedTokenizerFast], tmp_path: Path) -> None:
    family_tokenizers[name].save_pretrained(tmp_path)
    tokenizer = AutoTokenizer.from_pretrained(tmp_path)
    pieces = read_vocabulary(tokenizer).tokens
    for text in TEXTS:
        tokens = tokenizer.encode(text, add_special_tokens=False)
        assert tokenizer.decode(tokens) == text
        assert b"".join(pieces[token] or b"" for token in tokens) == text.encode()
    digits = tokenizer.tokenize("1234")
    assert len(digits) == 4


@pytest.mark.parametrize("name", ["a", "b", "drafter"])
def test_template_and_speller_agree(name: str, family_tokenizers: dict[str, PreTrainedTokenizerFast]) -> None:
    tokenizer = family_tokenizers[name]
    example = Example("stories", "stories/x/0", (("Hi  there,", " Hello.\n"), ("2 + 2?", "4")))
    tokens, mask = data.Speller(tokenizer).chats([example])[0]
    messages = [
        {"role": role, "content": text}
        for turn in example.turns
        for role, text in zip(("user", "assistant"), turn, strict=True)
    ]
    text = tokenizer.apply_chat_template(messages, tokenize=False)
    assert (
        text == "<|begin|><|user|>Hi  there,<|end|><|assistant|> Hello.\n<|end|><|user|>2 +"
        " 2?<|end|><|assistant|>4<|end|>"
    )
    assert tokens == tokenizer.encode(text, add_special_tokens=False)
    assert tokenizer.apply_chat_template(messages[:1], tokenize=False, add_generation_prompt=True).endswith(
        "<|end|><|assistant|>"
    )
    learned = tokenizer.decode([token for token, counts in zip(tokens, mask, strict=True) if counts])
    assert learned == " Hello.\n<|end|>4<|end|>"


def test_other_spelling_keeps_the_text(family_tokenizers: dict[str, PreTrainedTokenizerFast]) -> None:
    drafter = family_tokenizers["drafter"]
    examples = [*islice(mixer.stream(4, "train"), 40), Example("chat", "chat/x", ((TEXTS[1], TEXTS[0]),))]
    plain = data.Speller(drafter).chats(examples)
    changed = 0
    for name in ("a", "b"):
        for (own, _), (other, mask) in zip(
            plain, data.Speller(drafter, family_tokenizers[name]).chats(examples), strict=True
        ):
            assert drafter.decode(own) == drafter.decode(other)
            assert len(other) == len(mask)
            changed += own != other
    assert changed


def test_rows_begin_with_a_chat() -> None:
    chats: Iterator[tuple[list[int], list[int]]] = iter(
        [(list(range(1, size)), [size % 2] * (size - 1)) for size in (6, 9, 5, 20, 7, 30)]
    )
    rows = list(data.pack(chats, 12, pad=0))
    assert [row.shape for row in rows] == [(3, 12)] * len(rows)
    assert rows[0][0].tolist() == [1, 2, 3, 4, 5, 1, 2, 3, 4, 5, 6, 7]
    assert rows[0][2].tolist() == [0] * 5 + [5] * 7
    assert all(row[0, 0] == 1 and row[2, 0] == 0 for row in rows)
    assert rows[0][1].tolist() == [0] * 5 + [1] * 7


def test_lean_equals_transformers_chat_by_chat(family_tokenizers: dict[str, PreTrainedTokenizerFast]) -> None:
    tokenizer = family_tokenizers["a"]
    shape = Shape(len(tokenizer), layers=2, hidden=32, heads=2, head_dim=16, inter=48)
    flat = family.initial(shape, 1) * 2
    gradient = torch.zeros_like(flat)
    row = next(
        data.pack(iter(data.Speller(tokenizer).chats(list(islice(mixer.stream(5, "train"), 20)))), 300, 0)
    ).astype(np.int64)
    tokens, mask, start = torch.from_numpy(row)[:, None]
    loss = TrainingLlama(shape, flat, gradient, compiled=False).step(
        torch.stack([tokens, mask, start], 1), 1.0
    )
    model = family.to_transformers(shape, flat, tokenizer)
    edges = [*sorted(set(row[2].tolist())), 300]
    total = torch.zeros(())
    for low, high in pairwise(edges):
        wanted = torch.where(mask[0, low:high] > 0, tokens[0, low:high], -100)
        logits = model(tokens[:, low:high]).logits[0]
        total = total + torch.nn.functional.cross_entropy(
            logits[:-1], wanted[1:], ignore_index=-100, reduction="sum"
        )
    total.backward()
    assert len(edges) > 2
    assert loss == pytest.approx(total.item(), rel=1e-4)
    for name, view in shape.views(gradient).items():
        assert torch.allclose(view, dict(model.named_parameters())[name].grad, atol=1e-3, rtol=1e-2), name
    assert torch.equal(family.from_transformers(shape, model), flat)


def test_frozen_layers_stay_and_the_others_learn_as_ever(
    family_tokenizers: dict[str, PreTrainedTokenizerFast], tmp_path: Path
) -> None:
    job = _toy(tmp_path, family_tokenizers["drafter"])
    job.shape, job.stop_at = replace(job.shape, layers=3), 5
    flat = family.initial(job.shape, 2)
    job.frozen = 2
    after, clock = train(job, flat, workers=1, inline=True)
    views, before = job.shape.views(after), job.shape.views(flat)
    kept = {name for name in views if torch.equal(views[name], before[name])}
    assert kept == {family.EMBEDDING, *family.parts_of(0), *family.parts_of(1)}
    job.checkpoint.unlink()
    job.frozen = 0
    _, whole = train(job, flat, workers=1, inline=True)
    assert clock.losses[0] == whole.losses[0] and clock.losses != whole.losses


def test_frozen_layers_change_no_gradient_above_them(
    family_tokenizers: dict[str, PreTrainedTokenizerFast],
) -> None:
    tokenizer = family_tokenizers["a"]
    shape = Shape(len(tokenizer), layers=3, hidden=32, heads=2, head_dim=16, inter=48)
    flat = family.initial(shape, 1) * 2
    row = next(
        data.pack(iter(data.Speller(tokenizer).chats(list(islice(mixer.stream(5, "train"), 20)))), 300, 0)
    ).astype(np.int64)
    tokens, mask, start = torch.from_numpy(row)[:, None]
    whole, upper = torch.zeros_like(flat), torch.zeros_like(flat)
    TrainingLlama(shape, flat, whole, compiled=False).step(torch.stack([tokens, mask, start], 1), 1.0)
    TrainingLlama(shape, flat, upper, compiled=False, frozen=2).step(
        torch.stack([tokens, mask, start], 1), 1.0
    )
    wanted, found = shape.views(whole), shape.views(upper)
    upper_names = [*family.parts_of(2), family.LAST_NORM]
    assert all(torch.equal(found[name], wanted[name]) and found[name].any() for name in upper_names)
    assert not any(view.any() for name, view in found.items() if name not in upper_names)


def test_a_card_keeps_what_people_wrote_in_it(tmp_path: Path) -> None:
    card_file = tmp_path / "README.md"
    assert card.read_by_a_person(card_file) == ""
    card_file.write_text(f"scores of last time\n\n{card.READ}\n40 answers, 38 of them good.\n")
    assert card.read_by_a_person(card_file) == f"\n{card.READ}\n40 answers, 38 of them good.\n"


def test_schedule_and_plan(tmp_path: Path) -> None:
    rates, plan = Rates(warmup=10, decay=0.3), Plan(8192 * 100)
    factors = [rates.factor(step, plan.progress(step, 0.0)) for step in range(plan.steps)]
    assert factors[0] == pytest.approx(0.1) and factors[10:70] == [1.0] * 60 and 0 < factors[-1] < 0.05
    assert plan.at(1, None) == (512, range(16, 32)) and plan.at(86, 85) == (1024, range(8, 16))
    assert plan.rows() == [(512, 85 * 16), (1024, 16 * 8)]
    budget = tmp_path / "budget.json"
    budget.write_text('{"a": {"tokens": 81920, "minutes": 2}, "b": 40960}')
    assert (
        plan.amended(budget, "a").progress(5, 90.0) == 0.75
        and plan.amended(budget, "a").progress(9, 60.0) == 0.9
    )
    assert plan.amended(budget, "b").steps == 5 and plan.amended(budget, "c") == plan == plan.amended(
        tmp_path / "none", "a"
    )


def _toy(tmp_path: Path, tokenizer: PreTrainedTokenizerFast) -> Job:
    shape = Shape(len(tokenizer), layers=1, hidden=16, heads=1, head_dim=16, inter=24)
    plan = Plan(8 * 128, batch=128, short=32, long=64, micro=64)
    job = Job(shape, plan, Rates(warmup=2), tmp_path / "data", tmp_path / "checkpoint.pt", compiled=False)
    job.data.mkdir()
    source = data.Speller(tokenizer).chats(list(islice(mixer.stream(6, "train"), 90)))
    for length in (32, 64):
        rows = np.stack(list(islice(data.pack(iter(source), length, 0), 32)))
        np.save(shard_path(job.data, length, 0), rows)
    return job


def test_resume_equals_uninterrupted(
    family_tokenizers: dict[str, PreTrainedTokenizerFast], tmp_path: Path
) -> None:
    job = _toy(tmp_path, family_tokenizers["drafter"])
    flat = family.initial(job.shape, 2)
    whole, clock = train(job, flat, workers=1, inline=True)
    job.checkpoint.unlink()
    for job.stop_at in (4, 7):
        _, part = train(job, flat, workers=1, inline=True)
        assert part.step == len(part.losses) == job.stop_at
    job.stop_at = None
    again, resumed = train(job, flat, workers=1, inline=True)
    assert (
        len(clock.losses) == 8
        and clock.losses == resumed.losses
        and clock.long_start == resumed.long_start == 7
    )
    assert torch.equal(whole, again) and not torch.equal(whole, flat)


def test_more_tokens_go_on_from_the_constant_phase(
    family_tokenizers: dict[str, PreTrainedTokenizerFast], tmp_path: Path
) -> None:
    job = _toy(tmp_path, family_tokenizers["drafter"])
    train(job, family.initial(job.shape, 2), workers=1, inline=True)
    decayed = latest(job)
    job.plan = replace(job.plan, tokens=16 * 128)
    extended = latest(job)
    assert decayed is not None and extended is not None
    assert (decayed["step"], extended["step"], extended["long_start"]) == (8, 6, None)


def test_two_workers_compute_what_one_does(
    family_tokenizers: dict[str, PreTrainedTokenizerFast], tmp_path: Path
) -> None:
    job = _toy(tmp_path, family_tokenizers["drafter"])
    flat = family.initial(job.shape, 2)
    one = train(job, flat, workers=1, inline=True)[1].losses
    job.checkpoint.unlink()
    two = train(job, flat, workers=2)[1].losses
    assert one == pytest.approx(two, rel=2e-3)


def test_a_run_ends_when_its_minutes_are_over(
    family_tokenizers: dict[str, PreTrainedTokenizerFast], tmp_path: Path
) -> None:
    job = _toy(tmp_path, family_tokenizers["drafter"])
    job.plan = replace(job.plan, minutes=1e-6)
    _, clock = train(job, family.initial(job.shape, 2), workers=1, inline=True)
    assert clock.step == 1 and train(job, family.initial(job.shape, 2), workers=1, inline=True)[1].step == 1


def test_transplant_copies_rows(family_tokenizers: dict[str, PreTrainedTokenizerFast]) -> None:
    old_tokens, new_tokens = family_tokenizers["a"], family_tokenizers["b"]
    old = Shape(len(old_tokens), layers=1, hidden=8, heads=1, head_dim=8, inter=8)
    new = Shape(len(new_tokens), layers=1, hidden=8, heads=1, head_dim=8, inter=8)
    flat = torch.randn(old.numel(), generator=torch.Generator().manual_seed(3))
    before, after = old.views(flat), new.views(transplanted(flat, old, old_tokens, new, new_tokens))
    assert all(torch.equal(before[name], after[name]) for name in before if name != family.EMBEDDING)
    place = new_tokens.convert_tokens_to_ids
    for text, one in (("e", "e"), (" the", "▁the"), ("\n", "\n")):
        (index,) = old_tokens.encode(text, add_special_tokens=False)
        assert torch.equal(after[family.EMBEDDING][place(one)], before[family.EMBEDDING][index])
    assert torch.equal(
        after[family.EMBEDDING][place("<|end|>")],
        before[family.EMBEDDING][old_tokens.convert_tokens_to_ids("<|end|>")],
    )
    known, raws = read_vocabulary(old_tokens), read_vocabulary(new_tokens).tokens
    pieces = {index: tokenizers.encode_bytes(known, raw) for index, raw in enumerate(raws) if raw}
    index = next(index for index, tokens in pieces.items() if len(tokens) == 2)
    assert torch.allclose(after[family.EMBEDDING][index], before[family.EMBEDDING][pieces[index]].mean(0))


def test_save_can_be_loaded(family_tokenizers: dict[str, PreTrainedTokenizerFast], tmp_path: Path) -> None:
    tokenizer = family_tokenizers["b"]
    shape = Shape(len(tokenizer), layers=1, hidden=32, heads=2, head_dim=16, inter=48)
    for seed in (1, 2):
        folder = family.save("toy", shape, family.initial(shape, seed), tokenizer, tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["toy"]
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(folder)
    assert model.dtype == torch.bfloat16 and model.generation_config.eos_token_id == tokenizer.eos_token_id
    assert model.lm_head.weight is model.model.embed_tokens.weight
    assert torch.equal(family.from_transformers(shape, model), family.initial(shape, 2).bfloat16().float())


def test_a_grown_model_computes_the_same() -> None:
    tokenizer = AutoTokenizer.from_pretrained(family.ASSETS / "a")
    small = AutoModelForCausalLM.from_pretrained(family.ASSETS / "a", dtype=torch.float32)
    shape = family.shape_of("a", len(tokenizer))
    wide = widened(shape)
    assert wide == family.shape_of("large", len(tokenizer)) and wide.numel() == 29_893_120
    flat = grown(family.from_transformers(shape, small), shape, seed=7)
    model = family.to_transformers(wide, flat, tokenizer)
    text = (
        "<|begin|><|user|>What is 37 + 25?<|end|><|assistant|>Here we need to add. We add 25 to 37, and 37 +"
        " 25 = 62.<|end|>"
    )
    tokens = tokenizer(text, add_special_tokens=False, return_tensors="pt")["input_ids"]
    with torch.inference_mode():
        assert (model(tokens).logits - small(tokens).logits).abs().max() < 1e-4
    # No two copies are read alike, so that their gradients differ.
    down = wide.views(flat)["model.layers.0.mlp.down_proj.weight"]
    assert not torch.isclose(down[:, : shape.inter], down[:, shape.inter :]).all(0).any()


class Echo(evaluate.Model):
    """Answers what it is told to, by the last question, and keeps what it read."""

    def __init__(self, said: dict[str, str]) -> None:
        self.said, self.read = said, list[list[dict[str, str]]]()

    def answer(self, example: Example, chat: evaluate.Messages | None = None) -> evaluate.Answer:
        self.read.append(list(chat or evaluate.asked(example)))
        text = self.said.get(self.read[-1][-1]["content"], "no")
        return evaluate.Answer(example, text, 1, True, mixer.check(example, text))


def test_scores_of_a_model_that_knows_half() -> None:
    examples = [
        Example("maths", "maths/x/0", ((f"{n} + 1?", str(n + 1)),), number=str(n + 1)) for n in range(4)
    ]
    model = Echo({"0 + 1?": "1", "2 + 1?": "So that is 3."})
    given = [model.answer(example) for example in examples]
    row = evaluate.score("toy", "maths", "test", given)
    assert (row.prompts, row.right, row.ended, row.parses) == (4, 0.5, 1.0, None)
    assert "| maths | 50% of 4 | – | – | 100% | 1 |" in evaluate.table(
        [
            row,
            *(evaluate.score("toy", domain, "test", given) for domain in mixer.DOMAINS if domain != "maths"),
        ]
    )


def test_a_long_chat_holds_the_models_own_answers() -> None:
    model = Echo({f"question {turn}": f"answer {turn}" for turn in range(evaluate.TURNS)})
    chat = [
        Example("chat", "chat/x/0", ((f"question {turn}", "gold"),), facts=(f"answer {turn}",))
        for turn in range(evaluate.TURNS)
    ]
    (answers,) = evaluate.converse(model, [chat])
    assert len(answers) == evaluate.TURNS and all(answer.right for answer in answers)
    assert [message["content"] for message in model.read[2]] == [
        "question 0",
        "answer 0",
        "question 1",
        "answer 1",
        "question 2",
    ]


def test_a_scored_model_says_in_a_chat_what_transformers_says() -> None:
    chat = [
        Example("maths", "maths/x/0", ((question, ""),), number="5")
        for question in ("What is 2 + 3?", "And 4 + 1?")
    ]
    folder, messages = family.ASSETS / "a", list[dict[str, str]]()
    tokenizer, model = (
        AutoTokenizer.from_pretrained(folder),
        AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32),
    )
    scored = evaluate.Model(
        build_pair(str(folder), DRAFTER, Settings(device="cpu")), reading("bundled/large")
    )
    for example, answer in zip(chat, evaluate.converse(scored, [chat])[0], strict=True):
        messages.append({"role": "user", "content": example.turns[0][0]})
        asked = tokenizer.apply_chat_template(
            messages, add_generation_prompt=True, return_tensors="pt", return_dict=True
        )
        ids = model.generate(**asked, max_new_tokens=100, do_sample=False)[
            0, asked["input_ids"].shape[1] :
        ].tolist()
        messages.append({"role": "assistant", "content": tokenizer.decode(ids, skip_special_tokens=True)})
        assert answer.text == messages[-1]["content"] and answer.ended and answer.tokens == len(ids)


def test_prompts_to_score_are_the_same_each_time_and_not_trained_on() -> None:
    for domain in ("maths", "chat"):
        for held_out in (False, True):
            examples = evaluate.singles(domain, held_out, 12)
            assert (
                examples == evaluate.singles(domain, held_out, 12)
                and len({example.turns[0][0] for example in examples}) == 12
            )
            assert {example.pattern in mixer.patterns(domain, held_out) for example in examples} == {True}
            assert all(mixer.split_of(example) == "test" for example in examples)
    assert all(
        len(example.turns) > 1 and "/follow_" in example.pattern for example in evaluate.follow_ups(20)
    )
    assert [len(chat) for chat in evaluate.long_chats(2)] == [evaluate.TURNS] * 2


def test_large_begins_as_half_keeps_some_of_a_and_ends_with_its_upper_layers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trained: dict[str, tuple[int, int]] = {}
    began: list[torch.Tensor] = []
    saved: list[torch.Tensor] = []

    class Producer:
        """Writes no rows, for nothing is trained."""

        def __init__(self, args: tuple[str, Path, object], **_: object) -> None:
            folder = args[1] / args[0] / "data"
            (folder / "stats.json").write_text("{}")

        def start(self) -> None: ...
        def kill(self) -> None: ...

    def untrained(job: Job, flat: torch.Tensor, workers: int) -> tuple[torch.Tensor, Clock]:
        trained[job.title] = job.plan.tokens, len(flat)
        began.append(flat)
        return flat + 1.0, Clock(step=2, losses=[1.0])

    monkeypatch.setattr(train_module, "train", untrained)
    monkeypatch.setattr(
        train_module.multiprocessing, "get_context", lambda _: SimpleNamespace(Process=Producer)
    )
    monkeypatch.setattr(family, "save", lambda name, shape, flat, tokenizer: saved.append(flat))
    facts = train_module.train_one(
        "large", replace(train_module.PLANS["large"], tokens=16_384), 1, runs=tmp_path
    )
    wide = 29_893_120
    assert trained == {
        "half": (16_384, 8_524_032),
        **dict.fromkeys(("large", "further", "upper"), (16_384, wide)),
    }
    assert "weights of `a`" in str(facts["origin"]) and "twice the width" in str(facts["origin"])
    kept = grown(began[0], family.shape_of("half", 8192), train_module.SEED)
    assert torch.allclose(began[2], 0.85 * (began[1] + 1.0) + 0.15 * kept, atol=1e-5)
    assert torch.allclose(began[3], began[2] + 0.7, atol=1e-5) and torch.allclose(
        saved[0], began[3] + 0.7, atol=1e-5
    )

    trained.clear()
    train_module.train_one(
        "large", replace(train_module.PLANS["large"], tokens=16_384), 1, from_assets=True, runs=tmp_path
    )
    assert trained == {"upper": (16_384, wide)} and not torch.equal(began[4], began[3])
