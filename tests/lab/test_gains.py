"""What guessing gains: what a list charges for known rounds, and a report with the ids of plain decoding."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lab.races.gains import Gain, charged, table
from omnidemo.core.records import Round, Token
from omnidemo.decoding.price_list import PriceList
from tests.support.cli import Cli, refused


def round_of(written: int, proposed: int, drafted: int) -> Round:
    tokens = tuple(Token(7, "a", "direct", 0.5) for _ in range(written))
    return Round(
        index=0, tokens=tokens, discarded=(), draft_length=drafted, drafted=drafted, proposed=proposed,
        accepted=written - 1, judged=min(proposed, written), ngram_hits=0, seconds={"total": 1.0},
    )  # fmt: skip


def test_an_oracle_cuts_drafts_and_leaves_those_that_do_not_pay() -> None:
    prices = PriceList.linear(1.0, 0.25, 0.0)
    right, wrong = round_of(4, 3, 3), round_of(1, 3, 3)
    assert charged([right], prices) == pytest.approx((4 / 1.75, 4 / 1.75))
    assert charged([wrong], prices) == pytest.approx((1 / 1.75, 1.0))
    assert charged([right, wrong], prices) == pytest.approx((5 / 3.5, 5 / 2.75))
    copied = round_of(3, 2, 0)
    assert charged([copied], PriceList.linear(1.0, 0.25, 9.0)) == pytest.approx((2.0, 2.0))
    assert charged([round_of(2, 1, 1)], PriceList.linear(1.0, 1.5, 0.0))[1] == 1.0


def test_the_table_leaves_out_a_tasks_first_answers_and_no_others() -> None:
    def gain(name: str, order: int, number: int, seconds: float, same: bool = True) -> Gain:
        return Gain(name, order, number, 10, 5, seconds, 2.0, 1.0, 1.2, 1.5, same)

    found = [gain("json", 1, 1, 4.0, False), gain("json", 1, 2, 1.0), gain("set", 0, 1, 2.0)]
    (_, answers, middle, *_, share, ids), (_, others, *_) = table(found, behind=1)
    assert (answers, middle, share, ids, others) == ("1", "2.00", "0.80", "equal", "1")
    assert table(found)[0][-1] == "differ"


def test_the_command_writes_a_table(lab_cli: Cli, names: list[str], tmp_path: Path) -> None:
    prompts, out = tmp_path / "ducks.jsonl", tmp_path / "out"
    prompts.write_text(json.dumps({"prompt": "the duck swims and the duck swims"}) + "\n")
    asked = ("gains", *names, "--prompts", prompts, "--max-new-tokens", 12)
    said = lab_cli(*asked, "--out", out)
    kept = json.loads((out / "gains.json").read_text())
    assert said.code == 0 and all(one["same_ids"] for one in kept["answers"])
    assert {one["name"] for one in kept["answers"]} == {"ducks"}
    assert (out / "gains.md").read_text().count("|") > 20


def test_what_cannot_be_timed_is_one_sentence(lab_cli: Cli, names: list[str]) -> None:
    refused(lab_cli("gains", *names), "name files with --prompts")
    refused(lab_cli("gains", *names, "--tasks", "poems"), "there is no task")
