"""Early exit, where one can count, and on tiny models."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from transformers import AutoModelForCausalLM

from lab.drafters.ceilings import Prices
from lab.drafters.shards import Recorded
from lab.sources.early_exit import early_exit, usual_exits
from lab.sources.pass_bytes import Parts, parts_of, sizes_in_file, sizes_in_memory
from lab.sources.read_answers import Reading, read, write
from omnidemo.models.gguf_model import GgufModel
from tests.support.cli import Cli, refused

PRICES = Prices({1: 4.0, 2: 5.0, 3: 6.0}, step=0.5)


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


def test_the_command_prints_a_table_and_writes_it(lab_cli: Cli, names: list[str], tmp_path: Path) -> None:
    files = []
    for topic, texts in (
        ("ducks", ["the other ducks swim", "the small duck"]),
        ("cats", ["the cat sat on the mat", "a café"]),
    ):
        files += ["--prompts", tmp_path / f"{topic}.jsonl"]
        files[-1].write_text("".join(json.dumps({"prompt": text}) + "\n" for text in texts), encoding="utf-8")
    options = [*names[:2], *files, "--length", 24, "--csv", tmp_path / "out"]
    result = lab_cli("sources", *options)
    assert result.code == 0, result.err
    assert "### Early exit" in result.out and "4 greedy answers" in result.out and "ducks, cats" in result.out
    assert pd.read_csv(tmp_path / "out" / "early-exit.csv")["layers"].tolist() == [1]
    alone = lab_cli("sources", *options, "--sets", "cats")
    assert alone.code == 0 and "2 greedy answers" in alone.out, alone.err
    (tmp_path / "ducks.jsonl").write_text("")
    refused(lab_cli("sources", *options, "--sets", "ducks"), "no prompts")
    refused(lab_cli("sources", *options, "--exits", "2"), "2 of 2 layers")
    refused(lab_cli("sources", *options, "--sets", "cheese"), "cheese", "ducks, cats")
    refused(lab_cli("sources", *options, "--rows", "1=few"), "few")
