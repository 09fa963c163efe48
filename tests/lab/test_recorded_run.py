"""The recorded run of the Adaptation tab, from the rows of a run."""

from __future__ import annotations

from pathlib import Path

import pandas
import pytest
from typer.testing import CliRunner

from lab.__main__ import app
from omnidemo.pair.repeated_task import COLUMNS
from omnidemo.ui import live_answers

COUNTS = ("memory", "chat", "guessed", "own")


def test_the_recorded_run_is_made_of_the_rows_of_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    figures = {"tokens_per_round": 2.5, "tokens": 40, "copied_tokens": 18, "copied_earlier_tokens": 12}
    figures |= {"guessed_tokens": 12, "own_tokens": 10, "nothing_learned_tokens_per_round": 1.25}
    rows = [
        dict.fromkeys(COLUMNS, "") | figures | {"number": number, "alpha": alpha, "adapter_version": 1}
        for number, alpha in ((1, ""), (2, 0.123456))
    ]
    pandas.DataFrame(rows).to_csv(tmp_path / "run.csv", index=False)
    out = tmp_path / "recorded.json"
    given = ["recorded-run", str(tmp_path / "run.csv"), "--task", "sql", "--target", "smollm2"]
    done = CliRunner().invoke(app, [*given, "--out", str(out)])
    assert done.exit_code == 0, done.output
    monkeypatch.setattr(live_answers, "RECORDED", out)
    shown = live_answers.recorded.__wrapped__()
    assert shown["recorded"]["title"] == "SmolLM2 135M Instruct" and shown["line"] == "sql"
    assert [[one[name] for name in COUNTS] for one in shown["answers"]] == [[12, 6, 12, 10]] * 2
    assert [one["alpha"] for one in shown["answers"]] == [None, 0.1235]
