"""The race of guessing against plain decoding under a schema: its schemas, its rows, its summary."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lab.races import forms_race
from lab.races.forms_race import FormRow
from omnidemo import load_pair
from omnidemo.decoding.constraint import Constraint
from omnidemo.models.answer_forms import GuidedConstraint
from tests.support.trained_pair import DRAFTER, TARGET


def test_schemas_of_a_folder_are_raced_and_a_refused_one_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for kind, names in ((Constraint, ("masked", "read", "legal")), (GuidedConstraint, ("forced",))):
        for name in names:
            monkeypatch.setattr(kind, name, getattr(kind, name))  # put back behind the race's clock
    (tmp_path / "a.json").write_text(json.dumps({"enum": ["duck", "duckling"]}))
    (tmp_path / "b.json").write_text(json.dumps({"type": "duck"}))
    (tmp_path / "c.json").write_text(json.dumps({"description": "x" * 2_000}))  # too long
    asked = [*forms_race.of_folder(tmp_path, 10)]
    assert [name for name, *_ in asked] == ["a.json", "b.json"]
    good, refused = forms_race.race(load_pair(TARGET, DRAFTER), asked, 30, "forms")
    assert good.equal and good.valid and good.tokens >= good.rounds and good.masks > 0 and good.forced
    assert "Invalid type: duck" in refused.refused and not refused.tokens


def test_the_task_gives_its_schema() -> None:
    name, prompt, schema = next(forms_race.of_task(1))
    assert name == "1" and prompt and json.loads(schema)["type"] == "object"


def test_the_summary_is_of_what_was_answered() -> None:
    rows = [
        FormRow("a", "", True, True, 30, 10, 12, 1, 1.0, 2.0, 0.01),
        FormRow("b", "no"),
        FormRow("c", "", True, None, 10, 10, 0, 0, 1.0, 1.0, 0.01),
    ]
    said = forms_race.summary(rows)
    assert said.startswith("2 answers, 1 schemas refused; ids equal in 2; 1 of 1 that ended are valid; 2.00")
    assert "the first 3.00; 1.50 × plain, the first 2.00; forced 0.30 of the tokens, changed 1 of 40" in said
    assert said.endswith("masks 1.00 ms a round, 0.010 of it")
