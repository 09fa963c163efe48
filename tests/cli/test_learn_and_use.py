"""`learn` makes a file and `use` takes it, on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.cli import Cli, refused
from tests.support.trained_pair import DRAFTER, TARGET
from tests.support.trained_pair.patterns import UNREAD, questions

NAMES = ("--target", TARGET, "--drafter", DRAFTER)


def prompts(folder: Path, count: int) -> Path:
    path = folder / "prompts.jsonl"
    path.write_text("".join(json.dumps({"prompt": one}) + "\n" for one in questions(UNREAD, count)), "utf-8")
    return path


@pytest.mark.long
def test_a_file_is_made_and_used(cli: Cli, tmp_path: Path) -> None:
    out, storage = tmp_path / "mine.zip", tmp_path / "storage"
    asked = ("--prompts", prompts(tmp_path, 60), "--hours", "0.012")
    made = cli("learn", *NAMES, *asked, "--storage", tmp_path / "work", "--out", out)
    assert made.code == 0 and "Agreement on kept prompts" in made.out and "× (" in made.out, made.err
    used = cli("use", out, *NAMES, "--storage", storage)
    assert used.code == 0 and "Version 1 of the line default" in used.out, used.err
    answered = cli("generate", questions(UNREAD, 1)[0], *NAMES, "--storage", storage, "--json")
    assert json.loads(answered.out)["adapter_version"] == 1


def test_what_cannot_teach_is_refused(cli: Cli, tmp_path: Path) -> None:
    given = (*NAMES, "--storage", tmp_path / "work")
    refused(cli("learn", *given, "--out", tmp_path / "no" / "mine.zip"), "no folder")
    few = prompts(tmp_path, 5)
    told = cli("learn", *given, "--prompts", few, "--out", tmp_path / "mine.zip")
    assert told.code == 2 and "5 prompts are too few" in told.err.splitlines()[-1]
    refused(cli("learn", *given, "--texts", few, "--out", tmp_path / "mine.zip"), "is no folder")
    told = cli("use", few, *given)
    assert told.code == 2 and "cannot be read as a zip" in told.err.splitlines()[-1]
