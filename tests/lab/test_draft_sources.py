"""Early exit, vocabulary trimming and the choice of a source, where one can count, and on tiny models."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch
from transformers import AutoModelForCausalLM

from lab.drafters.ceilings import Prices
from lab.drafters.guesses import Guesses
from lab.drafters.shards import Recorded
from lab.sources.early_exit import early_exit, usual_exits
from lab.sources.hedging import NormalHedge, fixed_lengths, hedged, in_turns, speeds
from lab.sources.pass_bytes import Parts, parts_of, sizes_in_file, sizes_in_memory
from lab.sources.read_answers import Reading, read, write
from lab.sources.trimming import always, keep
from omnidemo.models.gguf_model import GgufModel
from tests.support.cli import Cli, refused

PRICES = Prices({1: 4.0, 2: 5.0, 3: 6.0}, step=0.5)


def guesses(ids: list[int], right: list[bool], name: str = "s") -> Guesses:
    hits = np.array(right)
    answer = Recorded(name, f"t/{name}/0", "t", 0.0, "end", [1], ids)
    return Guesses(answer, np.ones(len(ids), np.int32), hits * 1.0, hits * 1.0, hits, hits * 0.9 + 0.05)


def test_an_exit_says_what_a_model_of_its_layers_would(models: tuple[str, str]) -> None:
    whole, short = (
        AutoModelForCausalLM.from_pretrained(models[0], num_hidden_layers=count).eval() for count in (2, 1)
    )
    prompts, end = [[5, 6, 7, 8], [9, 10]], int(whole.config.eos_token_id)
    together, alone = write(whole, prompts, [end], 12), [write(whole, [one], [end], 12)[0] for one in prompts]
    assert together == alone and [len(ids) for ids in alone] == [12, 12]
    reading = read(whole, Recorded("s", "t/s/0", "t", 0.0, "", prompts[0], alone[0]), [1])
    # it reads what it wrote
    assert reading.answer.top is not None and reading.answer.top[:, 0].tolist() == alone[0]
    logits = short(torch.tensor([prompts[0] + alone[0][:-1]])).logits[0, 3:]
    assert reading.choices[0].tolist() == logits.argmax(-1).tolist() != alone[0]
    assert reading.sure[0] == pytest.approx(logits.softmax(-1).amax(-1).tolist(), abs=1e-5)


def test_an_answer_stops_at_its_end(models: tuple[str, str]) -> None:
    model = AutoModelForCausalLM.from_pretrained(models[0]).eval()
    ids = write(model, [[5, 6, 7, 8]], [int(model.config.eos_token_id)], 12)[0]
    assert write(model, [[5, 6, 7, 8]], [ids[3]], 12)[0] == ids[: ids.index(ids[3]) + 1]


def test_what_an_exit_costs_and_brings() -> None:
    ids = list(range(12))
    answer = Recorded("s", "t/s/0", "t", 0.0, "end", [1], ids)
    readings = [Reading(answer, np.array([ids, [-1] * 12]), np.full((2, 12), 0.99))]
    found = early_exit(readings, [1, 2], Parts([10, 10, 10], 20), PRICES.rows, ())
    first, second = (dict(zip(found.heads, row, strict=True)) for row in found.rows)
    assert (first["right"], first["tokens a round, n = 1"], first["tokens a round, n = 3"]) == (
        "1.000",
        "2.00",
        "4.00",
    )
    assert (first["step ÷ pass"], second["step ÷ pass"]) == ("0.60", "0.80")
    # Five guesses: 6 tokens for steps of 2.4 ms each and a pass of 9; with 0.2 of the rows' difference saved,
    # of 8.
    assert (first["best n"], first["× plain"], first["× plain, first layers kept"]) == (
        "5",
        f"{24 / 21:.2f}",
        f"{24 / 20:.2f}",
    )
    assert (second["right"], second["best n"], second["× plain"]) == ("0.000", "1", f"{4 / 8.2:.2f}")
    assert (
        "could bring something" in found.says
        and usual_exits(30) == [3, 6, 10, 15, 20, 25]
        and usual_exits(1) == []
    )


def test_bytes_of_a_pass(models: tuple[str, str]) -> None:
    model = AutoModelForCausalLM.from_pretrained(models[0])
    parts = parts_of(sizes_in_memory(model), 2)
    norms, embedding = 4 * 32, 4 * model.config.vocab_size * 32
    assert parts.head == embedding and parts.whole + embedding + norms == 4 * model.num_parameters()


@pytest.mark.smollm2
def test_bytes_of_a_file_are_its_own(smollm2_file: Path) -> None:
    parts = parts_of(sizes_in_file(smollm2_file), GgufModel(smollm2_file).config.num_hidden_layers)
    assert (sum(parts.layers[:3]) + parts.head) / parts.whole == pytest.approx(0.38, abs=0.01)
    assert parts.whole < smollm2_file.stat().st_size


def test_what_a_trimmed_vocabulary_keeps() -> None:
    vocabulary = SimpleNamespace(tokens=(None, b"a", b"ab", b"abc", b"\xff", b"abcd", None))
    assert always(vocabulary) == {0, 1, 4, 6}  # type: ignore[arg-type]
    assert np.flatnonzero(keep(Counter({5: 3, 2: 1}), 1, 6, {0, 1, 4, 6})).tolist() == [0, 1, 4, 5]
    assert np.flatnonzero(keep(Counter({5: 3}), 3, 6, set())).tolist() == [0, 1, 5]  # of equals the first


def test_weights_go_to_what_loses_least_and_come_back_after_a_shift() -> None:
    learner, fading = NormalHedge(3, 1.0), NormalHedge(3, 0.9)
    assert learner.weights.tolist() == pytest.approx([1 / 3] * 3)
    for losses in [np.array([0.1, 0.6, 0.5])] * 60 + [np.array([0.6, 0.1, 0.5])] * 20:
        before = learner.weights
        assert before.sum() == pytest.approx(1.0) and (before >= 0).all()
        learner.learn(losses)
        fading.learn(losses)
    assert fading.weights[1] > 0.8 > learner.weights[1]  # older regrets fade, so that it has changed its mind


def test_weights_are_those_of_the_paper() -> None:
    learner = NormalHedge(3, 1.0)
    learner.regrets = np.array([1.0, 0.5, -1.0])
    first, second, third = learner.weights
    assert third == 0.0
    scale = (1.0**2 - 0.5**2) / 2 / np.log(first / second * 0.5)  # the c of w ∝ R/c · exp(R² / 2c)
    assert np.exp(np.array([1.0, 0.25, 0.0]) / (2 * scale)).mean() == pytest.approx(np.e)


def test_the_cost_of_a_learner_is_that_of_what_it_draws_and_what_reads_along() -> None:
    blocks, tokens = np.array([[128.0, 128.0], [64.0, 64.0]]), np.array([32, 32])
    even = hedged(blocks[:, :1], tokens[:1], 4.0, np.array([0.0, 0.25]), 1.0)
    assert even == pytest.approx(96 + 32 * 0.25 / 2)
    # then all weight is on the second
    assert hedged(blocks, tokens, 4.0, np.array([0.0, 0.25]), 1.0) == pytest.approx(even + 64)


def test_each_source_by_itself() -> None:
    stream = [guesses([7, 8, 9, 10, 11, 12], [True, False, True, True, True, True])]
    assert fixed_lengths(stream, PRICES, (), "nothing", 2).tolist() == [4.0] * 6
    # Rounds of 2, 3 and 1 tokens: two steps and three rows; in the last one a single guess is left to pay.
    assert fixed_lengths(stream, PRICES, (), "drafter", 2).tolist() == pytest.approx(
        [3.5] * 2 + [7 / 3] * 3 + [6.5]
    )
    repeated = [guesses([5, 6, 7, 8] * 12, [False] * 48)]
    every = speeds(repeated, PRICES, (), 2, 0.5)
    assert every["nothing"] == 1.0 and every["copied text, always"] > 1.5 > 1.0 > every["drafter, always"]
    for manner in ("always", "by the policy"):
        hindsight, learned = (
            every[f"best source in hindsight, {manner}"],
            every[f"NormalHedge, decay 1.0, {manner}"],
        )
        assert hindsight == pytest.approx(every[f"copied text, {manner}"]) and 0.5 < learned < hindsight
        assert every[f"best source of each block, {manner}"] >= hindsight


def test_sets_in_turns() -> None:
    stream = [guesses([1], [True], name) for name in "aabbb"]
    assert [one.answer.set for one in in_turns(stream)] == ["a", "b", "a", "b", "b"]


def test_the_command_prints_three_tables_and_writes_them(
    lab_cli: Cli, names: list[str], tmp_path: Path
) -> None:
    files = []
    for topic, texts in (
        ("ducks", ["the other ducks swim", "the small duck"]),
        ("cats", ["the cat sat on the mat", "a café"]),
    ):
        files += ["--prompts", tmp_path / f"{topic}.jsonl"]
        files[-1].write_text("".join(json.dumps({"prompt": text}) + "\n" for text in texts), encoding="utf-8")
    options = [*names, *files, "--length", 24, "--sizes", "40,100000", "--csv", tmp_path / "out"]
    result = lab_cli("sources", *options)
    assert result.code == 0, result.err
    assert all(
        f"### {title}" in result.out for title in ("Early exit", "Vocabulary trimming", "Which source drafts")
    )
    assert "4 greedy answers" in result.out and "ducks, cats" in result.out
    tables = {
        name: pd.read_csv(tmp_path / "out" / f"{name}.csv") for name in ("early-exit", "trimming", "arms")
    }
    assert tables["early-exit"]["layers"].tolist() == [1] and tables["trimming"][
        "most frequent"
    ].tolist() == ["40", "all"]
    last = tables["trimming"].iloc[-1]
    assert last["coverage, in the domain"] == last["coverage, outside"] == 1.0 == last["step ÷ whole step"]
    assert tables["arms"].set_index("source")["× plain, sets in turns"]["nothing"] == 1.0
    alone = lab_cli("sources", *options, "--sets", "cats")
    assert alone.code == 0 and "× outside" not in alone.out and "| all |" in alone.out, alone.err
    (tmp_path / "ducks.jsonl").write_text("")
    refused(lab_cli("sources", *options, "--sets", "ducks"), "no prompts")
    refused(lab_cli("sources", *options, "--exits", "2"), "2 of 2 layers")
    refused(lab_cli("sources", *options, "--sets", "cheese"), "cheese", "ducks, cats")
    refused(lab_cli("sources", *options, "--rows", "1=few"), "few")
