"""The laboratory's command line: experiments on small random models, and one sentence for bad input."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from omnidemo.models.model_files import GONE
from tests.support.cli import Cli, refused


def test_an_experiment_from_the_command_line(
    lab_cli: Cli, names: list[str], prompts: Path, tmp_path: Path
) -> None:
    options = [
        "--prompts",
        prompts,
        "--quick",
        "--workers",
        0,
        "--out",
        tmp_path / "out",
        "--records",
        tmp_path / "records",
        *names,
    ]
    result = lab_cli("experiment", "cache", *options)
    assert result.code == 0, result.err
    assert "¼ lru" in result.out and "Δ acceptance" in result.out and str(tmp_path / "out") in result.err
    assert {path.name for path in (tmp_path / "out").glob("cache.*")} == {
        "cache.csv",
        "cache.json",
        "cache.md",
    }
    facts = json.loads((tmp_path / "out" / "cache.json").read_text())
    assert facts["seeds"] == [0] and facts["torch"] and facts["arms"][0]["readings"][0]["name"] == "none"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["cheese"], ["no experiment cheese", "topic-shift"]),
        (["rank", "--seeds", "few"], ["seeds", "few"]),
        (["rank", "--domain", "cheese"], ["cheese", "maths"]),
        (["routing", "--domain", "maths"], ["3 topics", "--domain"]),
        (["target-shift", "--target", "bundled/large"], ["2 targets", "--target"]),
        (["rank", "--target", "./nowhere"], ["./nowhere"]),
    ],
)
def test_an_experiment_that_cannot_run_is_one_sentence(
    lab_cli: Cli, tmp_path: Path, arguments: list[str], words: list[str]
) -> None:
    refused(
        lab_cli(
            "experiment",
            *arguments,
            "--workers",
            0,
            "--out",
            tmp_path / "out",
            "--records",
            tmp_path / "records",
        ),
        *words,
    )


def test_commands_say_what_they_do_and_others_are_refused(lab_cli: Cli) -> None:
    told = lab_cli("answers", "--help")
    assert told.code == 0 and "training prompts" in told.out and "lab answers" in told.out
    assert "answers" in lab_cli("--help").out
    refused(lab_cli("frobnicate"), "frobnicate")


def test_prices_that_are_none_are_one_sentence(lab_cli: Cli, tmp_path: Path) -> None:
    folders = ("--shards", tmp_path, "--prompts", tmp_path)
    given = ("--drafter", "d", "--target", "a=b", *folders, "--rows", "many")
    refused(lab_cli("ceilings", *given), "many", "ROWS=MS", "1=4.2")


@pytest.mark.parametrize("program", ["omnidemo", "lab"])
def test_no_option_stands_for_a_model_that_is_gone(program: str) -> None:
    group: Any = get_command(import_module(f"{program}.__main__").app)
    defaults = [option.default for command in group.commands.values() for option in command.params]
    assert len(defaults) > 50 and not [one for one in defaults if isinstance(one, str) and one in GONE]
