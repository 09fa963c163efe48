"""What the view of a repeated task sends and gets: the task that was asked for, and its answers as JSON
lines.

Beside the lines of `ui/answer_lines.py` there are:

    input   before an answer: text, what is asked
    row     behind an answer: what is known of it, under `repeated_task.COLUMNS`, and `SameAnswer.learned`
    end     of one that was stopped
    none    there are no more inputs

and, of a schema that is being typed,

    schema  alone: number, that of its text; said, what is wrong with it
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from omnidemo.core.config.answer_form import form_of
from omnidemo.core.records import Generation, Part, Reading, Round
from omnidemo.core.tasks import TASKS, Task, own_task, task
from omnidemo.decoding.methods import METHODS
from omnidemo.learning.lines import sample_prompts
from omnidemo.learning.lines.router import DEFAULT
from omnidemo.pair.repeated_task import Repeated
from omnidemo.serving.quotas import Refused
from omnidemo.storage.recorded_rounds import json_line, round_lines
from omnidemo.ui import answer_lines
from omnidemo.ui.answer_lines import UPDATE_SECONDS
from omnidemo.ui.chat_request import MOST_SYSTEM
from omnidemo.ui.errors import sentence

OWN, TOPIC = "own", "topic"
HARD = "commits"  # which targets of these sizes do badly, and which hardly repeats: for benchmarks alone
MOST_TEXT, MOST_LINES = 100_000, 500  # characters and inputs of a task of one's own


def cards() -> list[dict[str, Any]]:
    """The tasks as the page shows them."""
    known = [task(name) for name in TASKS if name != HARD]
    shown = [{"name": one.name, "title": one.title, "sentence": one.sentence} for one in known]
    sentence = "Your own instruction, and one input on each line: typed, pasted, or from a JSON Lines file."
    kinds = "Prompts of one topic. What is learned from them helps the chat, too."
    return [
        *shown,
        {"name": TOPIC, "title": "Teach it a topic", "sentence": kinds, "topics": sample_prompts.TOPICS},
        {"name": OWN, "title": "Your own", "sentence": sentence},
    ]


def asked_task(asked: Mapping[str, Any]) -> Task:
    """The task that the page asks for. `Refused`, one sentence, where there is none or it cannot serve."""
    name, system, lines, schema = (asked.get(key, "") for key in ("task", "system", "lines", "schema"))
    if name == TOPIC:
        return _topic(str(asked.get("topic", "")))
    if name != OWN:
        try:
            return task(str(name))
        except ValueError as error:
            raise Refused(sentence(str(error))) from None
    if not (isinstance(system, str) and isinstance(lines, str) and isinstance(schema, str)):
        raise Refused("The instruction, the inputs or the schema are no text; type them again.")
    most_of = {"instruction": (system, MOST_SYSTEM), "inputs": (lines, MOST_TEXT)}
    for what, (text, most) in most_of.items():
        if len(text) > most:
            raise Refused(
                f"The {what} may have {most:,} characters here, and this has {len(text):,}; shorten it."
            )
    try:
        made = replace(own_task(lines, system, OWN), schema=schema.strip())
    except ValueError as error:
        raise Refused(sentence(str(error))) from None
    if made.schema and (wrong := _wrong_json(made.schema)):
        raise Refused(wrong)
    if len(made.written) > MOST_LINES:
        raise Refused(
            f"A task may have {MOST_LINES} inputs here, and this has {len(made.written):,}; take some out."
        )
    return made


def _wrong_json(schema: str) -> str:
    try:
        form_of("schema", schema)
    except ValueError as error:
        return f"The schema should be {error}."
    return ""


def wrong_with(schema: str, check: Callable[..., None]) -> str:
    """What is wrong with a schema, one sentence; empty where nothing is, and while there is no pair to ask.
    `check`: as `Services.check_form` of a pair."""
    wrong = _wrong_json(schema) if schema else ""
    if not schema or wrong:
        return wrong
    try:
        check(schema=schema)
    except ValueError as error:
        return sentence(str(error))
    except RuntimeError:  # the pair is not loaded
        pass
    return ""


def form_of_task(task: Task, method: str) -> dict[str, str]:
    """The option that holds the answers of a task to its schema. A task that ships goes without it where the
    method of the settings is lossy."""
    lossy = method in METHODS and not METHODS[method].lossless
    return {"schema": task.schema} if task.schema and not (lossy and task.name != OWN) else {}


def _topic(name: str) -> Task:
    """Prompts of one kind, which teach the line that the chat uses. `Refused` for an unknown kind."""
    try:
        prompts = sample_prompts.prompts(name, "train")
    except ValueError as error:
        raise Refused(sentence(str(error))) from None
    return Task(DEFAULT, name, "", "", tuple(dict.fromkeys(prompts)))


def first_of(asked: Mapping[str, Any]) -> int:
    """How many inputs were answered before. `Refused` for what is no such number."""
    first = asked.get("first", 0)
    if not isinstance(first, int) or isinstance(first, bool) or not 0 <= first <= 1_000_000:
        raise Refused("The number of the next input is none; reload the page.")
    return first


def stream(answer: Iterator[Part | Repeated]) -> Iterator[str]:
    """One answer of a task as a growing string of JSON lines, at most twelve updates a second. Its last line
    says how it ended."""
    value, rounds, shown_at, ended = "", 0, 0.0, False
    for item in answer:
        now = time.perf_counter()
        if isinstance(item, Reading):
            value += answer_lines.reading_line(item)
        elif isinstance(item, Round):
            rounds += 1
            value += "".join(round_lines(item))
            if rounds > 1 and now - shown_at < UPDATE_SECONDS:
                continue
        elif isinstance(item, Generation):
            if item.finish_reason != "cancelled":
                continue  # what is known of it comes next
            ended, value = True, value + json_line("end", finish=item.finish_reason)
        else:
            ended, value = (
                True,
                value + json_line("row", **item.row, learned=item.same.learned if item.same else []),
            )
        shown_at = now
        yield value
    if not ended:
        yield value + json_line("none")
