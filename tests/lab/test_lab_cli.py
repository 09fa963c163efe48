"""The laboratory's command line: one sentence for bad input."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from omnidemo.models.model_files import GONE
from tests.support.cli import Cli, refused


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
