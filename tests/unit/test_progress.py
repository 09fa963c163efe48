"""What a command that takes long says in a log: what it does, and how far it is."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

from lab.equality import equality
from lab.measured_rows import counted
from omnidemo.cli import common
from omnidemo.core.records import LONG_READING, Generation, Reading, Round
from omnidemo.serving.measuring import mismatch
from omnidemo.serving.measuring.report_tables import Stage
from tests.support.cli import Cli
from tests.support.fakes import generation, script


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """A line at each look, and a look at every moment."""
    monkeypatch.setattr(common, "LOG_SECONDS", 0.0)
    monkeypatch.setattr(common, "LOOK_SECONDS", 0.001)


def test_a_log_hears_how_far_a_count_is(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(common, "LOG_SECONDS", 0.0)
    assert common.collect(counted(iter("abc"), "answers", 3)) == ["a", "b", "c"]
    assert capsys.readouterr().err.splitlines() == ["answers: 1 of 3", "answers: 2 of 3", "answers: 3 of 3"]


def test_a_log_hears_how_long_a_count_will_take(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0
    monkeypatch.setattr(common, "monotonic", lambda: now)

    def slow() -> Iterator[str | Stage]:
        nonlocal now
        for done in range(4):
            yield Stage("answers", done, 4)
            now += 100.0 if done < 2 else 30.0

    assert common.collect(slow()) == []
    assert capsys.readouterr().err.splitlines() == [
        "answers: 0 of 4", "answers: 1 of 4, about 5 min left", "answers: 2 of 4, about 3 min left",
        "answers: 3 of 4, about 77 s left",
    ]  # fmt: skip


@pytest.mark.usefixtures("often")
def test_a_log_hears_of_what_is_silent_itself(capsys: pytest.CaptureFixture[str]) -> None:
    def slow() -> Iterator[str | Stage]:
        time.sleep(0.1)
        yield Stage("answers", 1, 2)
        time.sleep(0.1)
        yield "whole"

    assert common.collect(slow(), "quick: ") == ["whole"]
    told = capsys.readouterr().err.splitlines()
    assert (
        set(told) == {common.PREPARING, "quick: answers: 1 of 2"}
        and told == sorted(told)
        and told.count(told[-1]) > 1
    )


@pytest.mark.parametrize(("terminal", "each"), [(True, 0.5), (True, 0.1), (False, 0.5)])
def test_a_terminal_sees_how_far_a_long_prompt_is_read(
    terminal: bool, each: float, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0
    monkeypatch.setattr(common, "monotonic", lambda: now)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    monkeypatch.setenv("TERM", "xterm")

    def parts() -> Generator[Reading | Round, None, Generation]:
        """A prompt that is read in five pieces of so many seconds."""
        nonlocal now
        for read in range(0, 5001, 1000):
            yield Reading(read, 5000, 0)
            now += each
        yield (done := script("a b")[0])
        return generation([done], 1.0, "ngram-exact")

    assert common.whole(parts()).rounds
    shown = capsys.readouterr().err
    assert ("reading the prompt" in shown) is (terminal and 5 * each > LONG_READING)
    assert shown == "" or "5000/5000" in shown


def test_what_is_short_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with common.telling("a moment") as tell:
        tell("another")
    assert not capsys.readouterr().err


@pytest.mark.usefixtures("often")
def test_loading_and_reading_tokenizers_say_how_far_they_are(
    cli: Cli, lab_cli: Cli, names: list[str], tmp_path: Path
) -> None:
    made = cli("generate", "the duck", "--max-new-tokens", 2, *names)
    assert (
        made.code == 0
        and f"loading, 0%: weights: {names[1]}" in made.err
        and f"weights: {names[3]}" in made.err
    )
    assert "loading" not in made.out
    file = tmp_path / "prompts.jsonl"
    file.write_text('"the duck"\n"the cat"\n')
    made = lab_cli("vocabularies", names[1], names[3], "--prompts", file)
    assert (
        made.code == 0
        and f"reading the tokenizer of {names[3]}" in made.err
        and f"of {names[1]}: 1 of 2" in made.err
    )


def test_what_was_compared_is_said_when_ctrl_c_comes(
    cli: Cli, lab_cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    def compared(*_: object) -> Iterator[object]:
        yield mismatch.BackendReport("cpu", 1, 24)
        yield mismatch.BackendReport("cpu", 2, 48)
        raise KeyboardInterrupt

    monkeypatch.setattr(mismatch, "check", compared)
    told = cli("check-backend")
    assert (told.code, told.out) == (
        130,
        "No mismatch between cpu and the reference, over 2 answers and 48 tokens.\n",
    )
    assert told.err.endswith("Stopped.\n") and "Traceback" not in told.err

    def matrix(pairwise: bool) -> Iterator[equality.Row]:
        yield equality.Row("llama", "byte-level", "copy", "plain", True, "")
        yield equality.Row("llama", "byte-level", "copy", "odd", False, "the first id")
        raise KeyboardInterrupt

    monkeypatch.setattr(equality, "equality_matrix", matrix)
    told = lab_cli("equality")
    assert (told.code, told.out) == (130, "1 equal, 1 different, 0 refused by a method\n")
    assert "different: llama, byte-level, copy, odd: the first id" in told.err


def test_a_line_that_is_said_again_says_since_when(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 100.0
    monkeypatch.setattr(common, "monotonic", lambda: now)
    monkeypatch.setattr(common, "LOOK_SECONDS", 1000.0)
    with common.telling("loading") as tell:
        for seconds in (0.0, 9.0, 30.0, 41.0):
            now = 100.0 + seconds
            tell("arms: 0 of 1")
        tell("arms: 1 of 1", now=True)
    assert capsys.readouterr().err.splitlines() == [
        "arms: 0 of 1 (30 s so far)", "arms: 0 of 1 (41 s so far)", "arms: 1 of 1",
    ]  # fmt: skip


def test_json_of_an_answer_says_how_it_can_be_repeated(cli: Cli, names: list[str]) -> None:
    asked = ("generate", "the duck", "--json", "--temperature", 1, "--max-new-tokens", 8, *names)
    made = json.loads(cli(*asked).out)
    assert made["seed"] is not None and made["conditions"].startswith("torch.cpu.float32.")
    assert (made["target"], made["drafter"]) == (names[1], names[3])
    assert made["options"]["temperature"] == 1 and made["options"]["seed"] == made["seed"]
    again = json.loads(cli(*asked, "--seed", made["seed"]).out)
    assert again["token_ids"] == made["token_ids"] and again["conditions"] == made["conditions"]
