"""The tasks that ship, the grammar that makes more of their inputs, and tasks of one's own."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from omnidemo.core.tasks import FOLDER, PLACE, TASKS, Task, own_task, read_task, task


@pytest.mark.parametrize("name", TASKS)
def test_a_task_has_many_inputs_written_by_hand_and_makes_more(name: str) -> None:
    one = task(name)
    assert one.name == name and one.title and one.sentence.endswith(".") and one.system
    assert len(set(one.written)) == len(one.written) >= 40
    found = one.inputs(300, seed=1)
    assert len(set(found)) == 300 and set(found[: len(one.written)]) == set(one.written)
    made = found[len(one.written) :]
    for text in made:
        places = [
            found for found in PLACE.finditer(text) if (found[3] or "").lower() in one.rules or found[1]
        ]
        assert not places and text == text.strip("\n"), "every place of the grammar was filled"
    assert one.inputs(300, seed=1) == found, "the same seed gives the same order"
    assert one.inputs(40, seed=2) != found[:40] and one.inputs(300, seed=2)[60:] != found[60:]
    assert one.inputs(10) == list(one.written[:10])
    assert one.inputs(10, seed=1, first=7) == found[7:17], "a run goes on where it was"
    system, user = one.messages("what is asked")
    assert (system["role"], system["content"]) == ("system", one.system)
    assert user == {"role": "user", "content": one.ask + "what is asked"}
    assert one.ask


def test_every_task_of_the_folder_is_offered() -> None:
    assert {path.stem for path in FOLDER.glob("*.json")} == set(TASKS)
    with pytest.raises(
        ValueError, match="no task 'jsonn'; choose one of json, sql, cards, handbook, commits"
    ):
        task("jsonn")


def test_the_grammar_fills_a_name_alike_and_leaves_other_braces() -> None:
    rules = {
        "input": ["{Noun} {noun} {noun_2} {1-3} ${id} {noun.size} {word}"],
        "noun": ["photo", "room"], "word": [["a", "{noun_2}"]],
    }  # fmt: skip
    one = Task("t", "", "", "", (), rules)
    form = r"(Photo|Room) (photo|room) (photo|room) [1-3] \$\{id\} \{noun\.size\} a\n(photo|room)"
    made = one.inputs(1000)
    assert len(made) == 12, "as many as there are, and then it ends"
    for text in made:
        found = re.fullmatch(form, text)
        assert found and found[1].lower() == found[2] and found[3] == found[4]


def test_a_task_of_ones_own() -> None:
    text = '{"system": "Be brief."}\nfirst line\n\n{"input": "second\\nline"}\n  first line \n"quoted"\n'
    one = own_task(text)
    assert one.system == "Be brief." and one.written == ("first line", "second\nline", '"quoted"')
    assert own_task(text, "Be long.").system == "Be long.", "what is given goes before what the file says"
    assert one.prompt("a") == "Be brief.\n\na\n\n"
    assert own_task("a").messages("a") == [{"role": "user", "content": "a"}]
    assert one.inputs(10) == list(one.written) and len(one.inputs(10, seed=3)) == 3


def test_an_answer_of_the_json_task_is_one_object_or_not_valid() -> None:
    json_task = task("json")
    assert json_task.valid(' {"customer": {}, "items": [], "note": null}\n') is True
    for broken in (
        '{"priority": "normal", "normal" or "high": null}',
        "```json\n{}\n```",
        "[]",
        "",
        "[" * 99_999,
    ):
        assert json_task.valid(broken) is False
    assert [task(name).valid("{}") for name in TASKS if name != "json"] == [None] * (len(TASKS) - 1)
    form = json_task.system.split("\n")[1]
    typed = re.sub(r"\b(string|number)\b", "null", form)
    assert json.loads(re.sub(r" \| (null|\"\w+\")", "", typed)), "the schema is an object of types"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{oops", "this is not JSON"),
        ('{"prompt": "a"}', "there is no input"),
        ('{"input": 7}', "the input is no text"),
        ('{"input": "  "}', "the input is no text"),
        ('{"system": null}', "the system is no text"),
        ('{"input": "\\ud800"}', "character"),
    ],
)
def test_a_line_that_cannot_serve_is_named(tmp_path: Path, line: str, said: str) -> None:
    path = tmp_path / "mine.jsonl"
    path.write_text(f"fine\n\n{line}\n", encoding="utf-8")
    with pytest.raises(ValueError, match=rf"mine\.jsonl, line 3: .*{said}") as error:
        read_task(path)
    assert len(str(error.value).splitlines()) == 1


def test_a_file_that_cannot_serve(tmp_path: Path) -> None:
    (tmp_path / "image").write_bytes(b"\x89PNG\xff")
    with pytest.raises(ValueError, match="not UTF-8"):
        read_task(tmp_path / "image")
    with pytest.raises(ValueError, match="cannot be read"):
        read_task(tmp_path / "none")
    (tmp_path / "empty").write_text('{"system": "a"}\n')
    with pytest.raises(ValueError, match="has no inputs"):
        read_task(tmp_path / "empty")
    with pytest.raises(ValueError, match="give fewer"):
        own_task("a" * 1_000_001)
    (tmp_path / "good.jsonl").write_text("\ufeff" + json.dumps({"input": "ü"}), encoding="utf-8")
    assert (
        read_task(tmp_path / "good.jsonl").written == ("ü",)
        and read_task(tmp_path / "good.jsonl").name == "good"
    )
