"""The laboratory's command line: one sentence for bad input."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd

from tests.support.cli import TEXTS, Cli, refused


def test_commands_say_what_they_do_and_others_are_refused(lab_cli: Cli) -> None:
    told = lab_cli("answers", "--help")
    assert told.code == 0 and "training prompts" in told.out and "lab answers" in told.out
    assert "answers" in lab_cli("--help").out
    refused(lab_cli("frobnicate"), "frobnicate")


def test_compare_reads_questions_of_two_turns_at_two_temperatures(
    lab_cli: Cli, names: list[str], tmp_path: Path
) -> None:
    asked, out, report = tmp_path / "question.jsonl", tmp_path / "arena.csv", tmp_path / "arena.md"
    rows = [("writing", TEXTS[0]), ("rag", TEXTS[3]), ("rag", "ducks " * 999)]
    asked.write_text(
        "\n".join(json.dumps({"question_id": 81, "category": one, "turns": [text]}) for one, text in rows)
    )
    options = [
        "--temperature",
        "0,1",
        "--runs",
        2,
        "--max-new-tokens",
        8,
        "--csv",
        out,
        "--report",
        report,
        *names,
    ]
    result = lab_cli("compare", "--spec-bench", asked, *options)
    assert result.code == 0 and "1 of 3 questions are left out" in result.err, result.err
    table = pd.read_csv(out)
    assert (
        table.groupby(["temperature", "category", "method", "run"]).size().tolist() == [1] * 16
        and table["identical"].all()
    )
    assert (
        "Median speedup (τ) by category, temperature 1" in result.out
        and "## Methods, temperature 0" in report.read_text()
    )
    free = (
        pd.read_csv(out)
        if lab_cli("compare", "--spec-bench", asked, "--limit", 1, "--no-seed", *options).code == 0
        else None
    )
    assert free is not None and free[free["temperature"] == 1]["identical"].isna().all()
    refused(lab_cli("compare", "--csv", out, *names), "give either --prompts or --spec-bench")
    refused(lab_cli("compare", "--spec-bench", asked, "--prompts", asked, *options), "give either")


def test_prices_that_are_none_are_one_sentence(lab_cli: Cli, tmp_path: Path) -> None:
    folders = ("--shards", tmp_path, "--prompts", tmp_path)
    given = ("--drafter", "d", "--target", "a=b", *folders, "--rows", "many")
    refused(lab_cli("ceilings", *given), "many", "ROWS=MS", "1=4.2")
