"""The view of a repeated task below its page: what it takes and refuses, its lines, its CSV, its curve."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest

from omnidemo.core.config import GenerationConfig, Settings
from omnidemo.models.answer_forms import AnswerForms
from omnidemo.models.load import open_source
from omnidemo.pair.repeated_task import Repeated
from omnidemo.pair.replay import SameAnswer
from omnidemo.serving.quotas import Refused
from omnidemo.serving.waiting_line import WaitingLine
from omnidemo.ui import task_rows
from omnidemo.ui.tabs import task_tab
from tests.support.fakes import generation, script
from tests.support.jobs import streaming
from tests.support.trained_pair import TARGET

ANSWER = generation(script("a b c d e f"), 0.5, "ngram-exact")
SAME = SameAnswer(2.0, 1.5, 1.9, 1.25, [(0, 2)])


def made(number: int = 1, same: SameAnswer | None = SAME) -> Repeated:
    return Repeated(number, "=an input", ANSWER, 7, same)


def lines(value: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in value.splitlines()]


def test_a_topic_teaches_the_line_of_the_chat_and_an_unknown_one_is_refused() -> None:
    task = task_rows.asked_task({"task": "topic", "topic": "maths"})
    assert task.name == "default" and len(set(task.written)) == len(task.written) > 50
    assert task.messages("a") == [{"role": "user", "content": "a"}], "nothing but the prompt is asked"
    with pytest.raises(Refused, match="Unknown topic 'birds'"):
        task_rows.asked_task({"task": "topic", "topic": "birds"})


def test_a_task_of_ones_own_is_read() -> None:
    asked = {"task": "own", "system": " Say it twice. ", "lines": 'one\n\n{"input": "two"}\none'}
    task = task_rows.asked_task(asked)
    assert task.name == "own" and task.written == ("one", "two") and "Say it twice." in task.system
    assert task_rows.asked_task({"task": "json"}).name == "json"
    assert task_rows.first_of({}) == 0 and task_rows.first_of({"first": 12}) == 12


def test_a_task_has_a_schema_that_its_answers_obey() -> None:
    task = task_rows.asked_task({"task": "json"})
    assert json.loads(task.schema)["required"][0] == "customer"
    assert task_rows.form_of_task(task, "ngram-exact") == {"schema": task.schema}
    assert task_rows.form_of_task(task, "auto") == {"schema": task.schema}
    assert task_rows.form_of_task(task, "ngram-merge") == {}, "a lossy method takes no form"
    assert task_rows.form_of_task(task_rows.asked_task({"task": "sql"}), "auto") == {}
    own = task_rows.asked_task({"task": "own", "lines": "one", "schema": ' {"type": "null"} '})
    assert task_rows.form_of_task(own, "ngram-merge") == {"schema": '{"type": "null"}'}, "which says so"


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ({"task": "jason"}, "There is no task"),
        ({}, "There is no task"),
        ({"task": "own", "lines": "\n \n"}, "has no inputs|no inputs"),
        ({"task": "own", "lines": "one\n{not json"}, "line 2: this is not JSON"),
        ({"task": "own", "lines": ["one"]}, "are no text"),
        ({"task": "own", "lines": "one", "schema": 7}, "are no text"),
        ({"task": "own", "lines": "one", "schema": "{"}, "The schema should be a JSON schema.* no JSON"),
        ({"task": "own", "lines": "one", "schema": "[]"}, "The schema should be a JSON schema"),
        ({"task": "own", "lines": "one", "schema": '{"a": "%s"}' % ("x" * 70_000)}, "at most 64 KB"),
        ({"task": "own", "lines": "x" * 100_001}, "at most|may have 100,000 characters"),
        ({"task": "own", "lines": "x", "system": "x" * 8_001}, "may have 8,000 characters"),
        ({"task": "own", "lines": "\n".join(map(str, range(501)))}, "may have 500 inputs"),
    ],
)
def test_a_task_that_cannot_serve_is_refused_in_a_sentence(asked: dict[str, Any], why: str) -> None:
    with pytest.raises(Refused, match=why) as refused:
        task_rows.asked_task(asked)
    said = str(refused.value)
    assert said[0].isupper() and said.endswith(".") and "\n" not in said


@pytest.mark.parametrize("first", [-1, 1.5, True, "1", 10**9])
def test_a_place_that_is_none_is_refused(first: Any) -> None:
    with pytest.raises(Refused, match="reload"):
        task_rows.first_of({"first": first})


def test_an_answer_is_streamed_and_ends_with_its_row() -> None:
    values = list(task_rows.stream(iter([*ANSWER.rounds, ANSWER, made()])))
    assert all(after.startswith(before) for before, after in pairwise(values))
    found = lines(values[-1])
    assert [one["t"] for one in found if one["k"] == "t"] == [
        token.text for done in ANSWER.rounds for token in done.tokens
    ]
    assert found[-1] == {"k": "row", **made().row, "learned": [[0, 2]]}
    assert lines(next(iter(values)))[-1]["k"] == "r", "the first round is shown at once"


def test_how_an_answer_ends_without_a_row_is_said() -> None:
    stopped = generation(ANSWER.rounds, 0.5, "ngram-exact", "cancelled")
    *_, last = task_rows.stream(iter([*ANSWER.rounds, stopped]))
    assert lines(last)[-1] == {"k": "end", "finish": "cancelled"}
    assert lines(*task_rows.stream(iter(()))) == [{"k": "none"}]


class FakeRepeats:
    """Services that answer one input."""

    own, session, waiting_as, settings = "", "s", "", Settings()
    line = WaitingLine(lambda: 1, 9)

    def __init__(self, stage: str = "ready") -> None:
        self.asked: dict[str, Any] = {}
        self.stage = stage

    def load(self, *_: str) -> Any:
        return SimpleNamespace(stage=self.stage, error=None)

    def repeat(self, **options: Any) -> Iterator[Any]:
        self.asked = options
        yield from (*ANSWER.rounds, ANSWER, made(options["first"] + 1))

    def let_learn(self, *given: str, longest: float) -> None:
        assert longest < 8, "the rows wait for each pause"
        self.asked = {"learn": given}

    def reset(self, *given: str) -> None:
        self.asked = {"reset": given}


def ask(services: Any, asked: Any) -> list[dict[str, Any]]:
    *_, last = streaming(services, partial(task_tab.answer, services), asked | {"run": "r"}, "t", "d")
    return lines(last)


def test_the_event_answers_one_input_with_the_switches_of_the_page() -> None:
    services = FakeRepeats()
    found = ask(services, {"task": "json", "first": 4, "keep": False})
    assert found[:2] == [{"k": "run", "run": "r"}, {"k": "run", "target": "t", "drafter": "d"}]
    assert found[2]["k"] == "input" and found[-1]["number"] == 5
    assert (
        services.asked["count"] == 1
        and services.asked["first"] == 4
        and services.asked["task"].name == "json"
    )
    assert services.asked["keep"] is False and services.asked["learn"] is True
    assert ask(services, {"task": "none"})[-1]["k"] == "error"
    assert "still loading" in ask(FakeRepeats("queued"), {"task": "json"})[-1]["text"]
    task_tab._let_learn(services, {"task": "json"}, "t", "d")  # type: ignore[arg-type]
    assert services.asked == {"learn": ("t", "d", "json")}
    services.own = "~a"
    task_tab._let_learn(services, {"task": "json"}, "t", "d")  # type: ignore[arg-type]
    assert services.asked == {"learn": ("t", "d", "default")}, "a visitor has one line"


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ("", ""),
        (' {"type": "null"}\n', ""),
        ('{"type": "null"', "The schema should be a JSON schema.*no JSON"),
        ("[1]", "The schema should be a JSON schema: an object"),
        ('{"type": "duck"}', "The schema of the answer cannot be used .Invalid type: duck.; change it."),
    ],
)
def test_a_schema_is_checked_while_it_is_typed(schema: str, said: str) -> None:
    forms = AnswerForms(open_source(TARGET).tokenizer()[1], 4096)

    def check_form(target: str, drafter: str, schema: str) -> None:
        if target == "loading":
            raise RuntimeError("it is not ready")
        forms.constraint(str(GenerationConfig.of(schema=schema).form))

    def checked(asked: Any, target: str = "t") -> Any:
        return json.loads(task_tab._check(SimpleNamespace(check_form=check_form), asked, target, "d"))  # type: ignore[arg-type]

    found = checked({"schema": schema, "number": 7})
    assert found["k"] == "schema" and found["number"] == 7 and re.fullmatch(f"{said}.*", found["said"])
    assert bool(found["said"]) == bool(said) and "\n" not in found["said"]
    waiting = checked({"schema": schema, "number": 7}, "loading")["said"]
    assert waiting in ("", found["said"]), "while there is no pair only the JSON is read"
    with pytest.raises(Refused, match="reload"):
        checked({"schema": 7, "number": 7})


def test_what_a_task_has_taught_is_forgotten() -> None:
    services: Any = FakeRepeats()
    task_tab._forget(services, {"task": "sql"}, "t", "d")
    assert services.asked == {"reset": ("t", "d", "sql")}
    services.own = "~a"
    task_tab._forget(services, {"task": "sql"}, "t", "d")
    assert services.asked == {"reset": ("t", "d", "default")}
    with pytest.raises(Refused, match="still loading"):
        task_tab._forget(FakeRepeats("queued"), {"task": "sql"}, "t", "d")  # type: ignore[arg-type]
