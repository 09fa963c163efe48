"""The recorded run of the page, made of a real one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from lab.__main__ import app
from omnidemo.ui import live_answers

COUNTS = ("memory", "chat", "guessed", "forced", "own")


def test_the_recorded_run_has_the_figures_and_every_token_of_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMNIDEMO_STORAGE", str(tmp_path / "storage"))
    out = tmp_path / "recorded.json"
    given = ["recorded-run", "--task", "json", "--target", "bundled/large", "--answers", "2"]
    done = CliRunner().invoke(app, [*given, "--machine", "a test", "--out", str(out)])
    assert done.exit_code == 0, done.output
    run = json.loads(out.read_text())
    assert (run["machine"], run["target"], len(run["answers"])) == ("a test", "bundled/large", 2)
    for one in run["answers"]:
        texts = [text for _, *tokens in one["rounds"] for text in tokens[::2]]
        sources = [run["sources"][place] for _, *tokens in one["rounds"] for place in tokens[1::2]]
        assert len(texts) == one["tokens"] == sum(one[name] for name in COUNTS)
        assert sources.count("forced") == one["forced"]
        assert one["tokens"] / len(one["rounds"]) == pytest.approx(one["steps"], abs=1e-4)
        assert all(time > 0 for time, *_ in one["rounds"])
    monkeypatch.setattr(live_answers, "RECORDED", out)
    shown = live_answers.recorded.__wrapped__()
    assert shown["recorded"]["title"] == run["title"] and shown["line"] == "json"
    assert [one["number"] for one in shown["answers"]] == [1, 2]
    assert not any("rounds" in one or "input" in one for one in shown["answers"])
