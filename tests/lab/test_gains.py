"""What guessing gains: what a list charges for known rounds, and a report with the ids of plain decoding."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lab.races.gains import Gain, against_fresh, charged, table
from omnidemo.core.records import Round, Token
from omnidemo.decoding.cost_table import CostTable
from tests.support.cli import Cli, refused


def round_of(written: int, proposed: int, drafted: int) -> Round:
    tokens = tuple(Token(7, "a", "direct", 0.5) for _ in range(written))
    return Round(
        index=0, tokens=tokens, discarded=(), draft_length=drafted, drafted=drafted, proposed=proposed,
        accepted=written - 1, judged=min(proposed, written), ngram_hits=0, seconds={"total": 1.0},
    )  # fmt: skip


def test_an_oracle_cuts_drafts_and_leaves_those_that_do_not_pay() -> None:
    prices = CostTable.linear(1.0, 0.25, 0.0)
    right, wrong = round_of(4, 3, 3), round_of(1, 3, 3)
    assert charged([right], prices) == pytest.approx((4 / 1.75, 4 / 1.75))
    assert charged([wrong], prices) == pytest.approx((1 / 1.75, 1.0))
    assert charged([right, wrong], prices) == pytest.approx((5 / 3.5, 5 / 2.75))
    copied = round_of(3, 2, 0)
    assert charged([copied], CostTable.linear(1.0, 0.25, 9.0)) == pytest.approx((2.0, 2.0))
    assert charged([round_of(2, 1, 1)], CostTable.linear(1.0, 1.5, 0.0))[1] == 1.0


def gain(name: str, order: int, seconds: float, same: bool = True, **fresh: float) -> Gain:
    return Gain(name, order, 1, 10, 5, seconds, 2.0, 1.0, 1.2, 1.5, same, **fresh)  # type: ignore[arg-type]


def test_the_table_has_a_line_for_each_name() -> None:
    found = [gain("json", 1, 4.0, False), gain("json", 1, 1.0), gain("set", 0, 2.0)]
    (_, answers, middle, *_, share, ids), (_, others, *_, equal) = table(found)
    assert (answers, middle, share, ids, others, equal) == ("2", "1.25", "0.80", "differ", "1", "equal")


def test_what_was_remembered_is_held_against_nothing_with_an_error_over_orders() -> None:
    found = [
        gain("json", 1, 1.0, fresh_rounds=10, fresh_seconds=2.0),
        gain("json", 2, 1.0, fresh_rounds=5, fresh_seconds=1.0),
    ]
    ((_, answers, *figures),) = against_fresh(found)
    assert answers == "2" and figures == ["1.50", "2.00", "+0.50 ± 0.50", "1.50", "2.00", "+0.50 ± 0.50"]


def test_the_command_writes_a_table(lab_cli: Cli, names: list[str], tmp_path: Path) -> None:
    prompts, out = tmp_path / "ducks.jsonl", tmp_path / "out"
    prompts.write_text(json.dumps({"prompt": "the duck swims and the duck swims"}) + "\n")
    asked = ("gains", *names, "--prompts", prompts, "--max-new-tokens", 12)
    said = lab_cli(*asked, "--out", out)
    kept = json.loads((out / "gains.json").read_text())
    assert said.code == 0 and all(one["same_ids"] for one in kept["answers"])
    assert {one["name"] for one in kept["answers"]} == {"ducks"}
    assert (out / "gains.md").read_text().count("|") > 20


def test_a_taught_set_is_drafted_fresh_too(lab_cli: Cli, names: list[str], tmp_path: Path) -> None:
    prompts, out = tmp_path / "ducks.jsonl", tmp_path / "out"
    asked = ["the duck swims and the duck swims", "the duck swims and the duck sings"]
    prompts.write_text("".join(json.dumps({"prompt": one}) + "\n" for one in asked))
    order = ("--prompts", prompts, "--fresh", "--behind", 1, "--max-new-tokens", 12, "--out", out)
    assert lab_cli("gains", *names, *order).code == 0
    (answer,) = json.loads((out / "gains.json").read_text())["answers"]
    assert answer["same_ids"] and answer["fresh_rounds"] > 0 and answer["fresh_seconds"] > 0
    assert "change of ×" in (out / "gains.md").read_text()


def test_what_cannot_be_timed_is_one_sentence(lab_cli: Cli, names: list[str]) -> None:
    refused(lab_cli("gains", *names), "name files with --prompts")
    refused(lab_cli("gains", *names, "--tasks", "poems"), "there is no task")
