"""What is kept to score with never teaches."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lab.drafters import prompt_sets
from lab.drafters.prompt_sets import KEPT_KINDS, KINDS, Prompt, everything
from tests.support.cli import Cli, refused

SCHEMA = (
    "SQLite schema of database shop:\n" + "orders(id, customer, product, amount, price, day, place)\n" * 3
)
OTHER = "SQLite schema of database school:\n" + "pupils(id, name, class, age, teacher, grade, birthday)\n" * 3


def write(folder: Path, name: str, prompts: list[str]) -> None:
    lines = (
        json.dumps({"id": f"{name}-{number}", "prompt": prompt, "answer": ""})
        for number, prompt in enumerate(prompts)
    )
    (folder / name).write_text("\n".join(lines) + "\n")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path, "gsm8k_train_3000.jsonl", ["How many apples?", "How many pears?", "how MANY  plums?"])
    write(tmp_path, "gsm8k_test.jsonl", ["How many plums?"])
    write(tmp_path, "humaneval.jsonl", ["def f(x):"])
    write(tmp_path, "mbpp.jsonl", ["Write f.", "def f(x):"])
    write(tmp_path, "dolly_prompts.jsonl", [f"Question {number}" for number in range(150)])
    write(
        tmp_path,
        "dolly_summarization.jsonl",
        [f"Sum up {number}.\n\n{'An article. ' * 10}{number}" for number in range(60)],
    )
    write(tmp_path, "self_instruct.jsonl", [f"Task {number}" for number in range(50)])
    sql = [f"{OTHER}\n\nQuestion: {number}" for number in range(590)] + [
        f"{SCHEMA}\n\nQuestion: {number}" for number in range(590, 640)
    ]
    write(tmp_path, "spider_dev.jsonl", sql)
    for name, id, text in ((KINDS, "sql-1", "One."), (KEPT_KINDS, "sql-2", "A kept one.")):
        (tmp_path / name).write_text(json.dumps({"kind": "sql", "id": id, "prompt": text}) + "\n")
    return tmp_path


def test_kept_parts_do_not_teach(folder: Path) -> None:
    training, kept = prompt_sets.training(folder), prompt_sets.kept(folder)
    assert {name: len(kept[name]) for name in ("dolly", "summaries", "tasks", "sql")} == {
        "dolly": 100,
        "summaries": 40,
        "tasks": 40,
        "sql": 40,
    }
    assert [prompt.text for prompt in training["dolly"]] == [f"Question {number}" for number in range(50)]
    assert len(training["summaries"]) == 20 and len(training["tasks"]) == 10
    scored = {prompt.text for prompts in kept.values() for prompt in prompts}
    assert not scored & {prompt.text for prompts in training.values() for prompt in prompts}
    assert [one.id for one in training["more-sql"]] == ["sql-1"] and [one.id for one in kept["more-sql"]] == [
        "sql-2"
    ]
    assert everything(folder)["more-sql", "sql-2"] == "A kept one."


def test_a_prompt_in_both_parts_does_not_teach(folder: Path) -> None:
    training = prompt_sets.training(folder)
    assert [prompt.text for prompt in training["gsm8k"]] == ["How many apples?", "How many pears?"]
    assert [prompt.text for prompt in training["mbpp"]] == ["Write f."]


def test_a_schema_of_a_kept_prompt_does_not_teach(folder: Path) -> None:
    assert {prompt.text.splitlines()[0] for prompt in prompt_sets.training(folder)["sql"]} == {
        OTHER.splitlines()[0]
    }
    assert len(prompt_sets.training(folder)["sql"]) == 590


def test_sets_take_turns_in_an_order_that_stays() -> None:
    sets = {"a": [Prompt(f"a{number}", "") for number in range(3)], "b": [Prompt("b0", "")]}
    found = list(prompt_sets.in_turns(sets))
    assert [name for name, _ in found] == ["a", "b", "a", "a"]
    assert sorted(prompt.id for _, prompt in found) == ["a0", "a1", "a2", "b0"]
    assert found == list(prompt_sets.in_turns(sets))


def test_what_comes_last_is_a_set_that_teaches(folder: Path, lab_cli: Cli) -> None:
    for wrong in ("sql", "sql:", "sql:x", "dolly:60"):
        options = ["--prompts", folder, "--sets", "sql,gsm8k", "--then", wrong]
        refused(lab_cli("learning", "--target", "bundled/large", *options), "is not SET:N")
