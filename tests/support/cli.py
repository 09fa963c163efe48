"""Both command lines in this process, and what they say to mistakes."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from lab.__main__ import main as lab_main
from omnidemo.__main__ import main
from tests.support.models import save

TEXTS = ["the other ducks swim", "=1+1 is a formula", "naïve ✓ and <b>bold</b>", "the cat sat on the mat"]


@dataclass
class Result:
    code: int
    out: str
    err: str


Cli = Callable[..., Result]


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    root = tmp_path_factory.mktemp("models")
    target, drafter = (
        save(root / "target", "byte-level", ends=False),
        save(root / "drafter", "sentence-piece", seed=1),
    )
    return ["--target", target, "--drafter", drafter]


@pytest.fixture
def prompts(tmp_path: Path) -> Path:
    path = tmp_path / "prompts.jsonl"
    path.write_text(
        "\n\n".join(json.dumps({"prompt": text, "domain": "test"}) for text in TEXTS), encoding="utf-8"
    )
    return path


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    """`python -m omnidemo` with the given arguments."""
    return _called(main, "omnidemo", monkeypatch, capsys)


@pytest.fixture
def lab_cli(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    """`python -m lab` with the given arguments."""
    return _called(lab_main, "lab", monkeypatch, capsys)


def _called(
    program: Callable[[], None],
    name: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Cli:
    for variable in list(os.environ):
        if variable.startswith("OMNIDEMO_") and variable != "OMNIDEMO_BACKEND":  # that one is the folder's
            monkeypatch.delenv(variable)

    def run(*arguments: object) -> Result:
        monkeypatch.setattr(sys, "argv", [name, *map(str, arguments)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            program()
        out, err = capsys.readouterr()
        return Result(int(ended.value.code or 0), out, err)

    return run


def refused(result: Result, *words: str) -> None:
    """Exit code 2, nothing on stdout, one sentence that has the words."""
    assert result.code == 2 and not result.out
    lines = result.err.strip().splitlines()
    assert len(lines) == 1 and lines[0].startswith("Error: ") and "Traceback" not in result.err, result.err
    for word in words:
        assert word in lines[0]
