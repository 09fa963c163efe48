"""The arena: a folder of cells that a run goes on with, and tables of what is there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lab.races.lane_tables import tables
from lab.races.lanes import ABOUT, Cell, Lane, read
from omnidemo.core.tasks import own_task
from tests.support.cli import Cli, refused


def cell(number: int, gains: dict[str, float], manner: str = "greedy", name: str = "json") -> Cell:
    """Plain decoding writes ten tokens in ten seconds."""
    lanes = {"autoregressive": Lane(10, 10, 10.0, 0, 0, True, None, [1])}
    lanes |= {method: Lane(10, 5, 10.0 / gain, 10, 5, True, None, [1]) for method, gain in gains.items()}
    return Cell(name, manner, number, [3], lanes)


def test_tables_have_a_line_for_each_method_and_each_set() -> None:
    cells = [cell(1, {"copy": 2.0, "union": 0.5}), cell(2, {"copy": 1.0}), cell(1, {"copy": 4.0}, name="sql")]
    (_, _, methods), (_, headings, sets) = tables(cells)
    assert [line[:3] for line in methods] == [
        ["autoregressive", "3", "1.00"], ["copy", "3", "2.00"], ["union", "1", "2.00"],
    ]  # fmt: skip
    # 30 tokens in 5 + 10 + 2.5 seconds, and in 30
    assert methods[1][4:8] == ["2.00 (1.20–3.60)", "1.71", "0/3", "3/3"]
    assert methods[2][4:7] == ["0.50", "0.50", "1/1"]
    assert headings == ["set", "prompts", "copy", "union"]
    assert sets[0] == ["json", "2", "1.50 (2.00)", "0.50 (2.00)"]
    assert sets[1] == ["sql", "1", "4.00 (2.00)", "–"]
    assert sets[2][:2] == ["all", "3"]


def test_manners_are_held_apart_and_short_answers_left_out() -> None:
    short = cell(3, {"copy": 2.0})
    lanes = {**short.lanes, "copy": Lane(3, 1, 1.0, 2, 2, True, None, [1])}
    cells = [cell(1, {"copy": 2.0}), cell(1, {"copy": 1.0}, "own"), Cell("json", "greedy", 3, [3], lanes)]
    found = list(tables(cells))
    assert [title for title, _, _ in found] == [
        "Methods, greedy", "Sets, greedy", "Methods, own", "Sets, own",
    ]  # fmt: skip
    assert found[0][2][1][1] == found[2][2][1][1] == "1"


def test_a_run_goes_on_with_the_cells_that_are_not_there(
    lab_cli: Cli, names: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    short = own_task("the duck swims and the duck swims\nthe duck sings and the duck swims")
    for place in ("lab.races.lanes.task", "omnidemo.core.tasks.task"):
        monkeypatch.setattr(place, lambda name: short)
    asked = (
        "arena", *names, "--tasks", "json,commits", "--limit", 2, "--methods", "copy,token-intersection",
        "--max-new-tokens", 16, "--out", tmp_path,
    )  # fmt: skip
    said = lab_cli(*asked)
    assert said.code == 0, said.err
    cells = read(tmp_path)
    assert [(one.number, one.set, one.manner) for one in cells] == [
        (number, name, manner)
        for number in (1, 2) for name in ("commits", "json") for manner in ("greedy", "own")
    ]  # fmt: skip
    for one in cells:
        assert set(one.lanes) == {"autoregressive", "copy", "token-intersection"}
        assert all(lane.same and lane.seconds > 0 for lane in one.lanes.values())
    kept = {path: path.stat().st_mtime_ns for path in tmp_path.glob("*/*.json")}
    gone = next(iter(kept))
    gone.unlink()
    again = lab_cli(*asked)
    assert again.code == 0
    changed = {path for path in kept if path.stat().st_mtime_ns != kept[path]}
    assert changed == {gone} and len(read(tmp_path)) == 8
    # the tables alone; a subset of the cells says how many prompts it has
    for path in tmp_path.glob("*/002.json"):
        path.unlink()
    told = lab_cli(*asked, "--minutes", 0)
    assert told.code == 0 and len(read(tmp_path)) == 4
    assert "Methods, greedy" in told.out and "Sets, own" in told.out


def test_a_folder_has_cells_of_one_kind(lab_cli: Cli, names: list[str], tmp_path: Path) -> None:
    (tmp_path / ABOUT).write_text(json.dumps({"target": "another"}))
    asked = ("arena", *names, "--tasks", "json", "--limit", 1, "--out", tmp_path)
    refused(lab_cli(*asked), "was measured with another target (another)", "--out")
    refused(lab_cli(*asked, "--manner", "loud"), "--manner is greedy, own or both")
    refused(lab_cli(*asked, "--tasks", "poems"), "there is no task")
