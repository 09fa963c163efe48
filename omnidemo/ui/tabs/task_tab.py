"""The tab *Same task*. A press asks for ten answers. Each answer is an event of its own, so others wait for
the engine for one answer at most."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

import gradio as gr

from omnidemo.pair.repeated_task import COLUMNS
from omnidemo.serving.public_services import PublicServices
from omnidemo.serving.quotas import Refused
from omnidemo.storage.recorded_rounds import json_line
from omnidemo.ui import task_rows
from omnidemo.ui.downloads import for_browser
from omnidemo.ui.errors import asked_of
from omnidemo.ui.figures.task_curve import LINES, task_curve
from omnidemo.ui.job import wire
from omnidemo.ui.shell import PRIVATE, QUIET, Shell, load_ready, script, widget

# The pause between two answers while an update runs, which goes on in the next one: the rows shall not wait.
LEARN_SECONDS = 3.0


def answer(
    services: PublicServices, asked: Mapping[str, Any], cancel: threading.Event, target: str, drafter: str
) -> Iterator[str]:
    """The answer to one input of a task as JSON lines (`ui/task_rows.py`). `asked`: task (json, sql, cards,
    handbook; topic, with topic; own, with system and lines), first (inputs that were answered before), learn,
    keep."""
    task, first = task_rows.asked_task(asked), task_rows.first_of(asked)
    load_ready(services, target, drafter, "Press again when it is ready.")
    head = json_line("run", target=target, drafter=drafter)
    head += "".join(json_line("input", text=one) for one in task.inputs(1, first=first))
    yield head
    answers = services.repeat(
        session=services.session or f"api-{secrets.token_hex(8)}", target=target, drafter=drafter,
        task=task, count=1, first=first, cancel=cancel, keep=asked.get("keep") is not False,
        learn=asked.get("learn") is not False and services.settings.training != "off",
        **task_rows.form_of_task(task, services.settings.method),
    )  # fmt: skip
    for lines in task_rows.stream(answers):
        yield head + lines


def _line(services: PublicServices, asked: Mapping[str, Any]) -> str:
    """The line that drafts for a task: of its name; a visitor has one line for everything."""
    return "default" if services.own else task_rows.asked_task(asked).name


def _let_learn(services: PublicServices, asked: Mapping[str, Any], target: str, drafter: str) -> None:
    """Between two answers, outside of the engine's queue: an update that is due runs, and other requests get
    the engine."""
    with suppress(RuntimeError, ValueError):  # the pair is gone, or it is no task
        services.let_learn(target, drafter, _line(services, asked), longest=LEARN_SECONDS)


def _check(services: PublicServices, asked: Mapping[str, Any], target: str, drafter: str) -> str:
    """Say what is wrong with a schema that is being typed. `asked`: schema; number, which comes back."""
    schema, number = asked.get("schema"), asked.get("number")
    if not isinstance(schema, str) or not isinstance(number, int):
        raise Refused("The schema is no text; reload the page.")
    said = task_rows.wrong_with(schema.strip(), partial(services.check_form, target, drafter))
    return json_line("schema", number=number, said=said)


def _forget(services: PublicServices, asked: Mapping[str, Any], target: str, drafter: str) -> None:
    """Delete what a task has taught its line, with the answers that it copies from. The history stays."""
    load_ready(services, target, drafter, "Press again when it is ready.")
    services.reset(target, drafter, _line(services, asked))


def build(services: PublicServices, shell: Shell) -> None:
    """Everything inside the tab."""
    names = {column: name for column, (name, *_) in LINES.items()}
    first: dict[str, Any] = {"cards": task_rows.cards(), "figure": task_curve(), "lines": names}
    first |= {
        "most": task_rows.MOST_TEXT,
        "columns": [*COLUMNS],
        "learns": services.settings.training != "off",
    }
    panel = widget("task", for_browser(first), events=("run", "halt", "reset", "check"))
    pair = [shell.target, shell.drafter]
    work, learn = partial(answer, services), partial(_let_learn, services)
    wire(services, panel, "run", work, pair, "same_task", after=learn)

    def forget(event: gr.EventData, target: str, drafter: str) -> None:
        _forget(services, asked_of(event), target, drafter)

    def check(event: gr.EventData, target: str, drafter: str) -> str:
        return _check(services, asked_of(event), target, drafter)

    checks: dict[str, Any] = {"trigger_mode": "always_last", "concurrency_limit": 2, **PRIVATE}
    panel.check(check, pair, [panel], api_name="check_schema", **checks)

    forgot = script("() => { page.task.forgotten(); return []; }")
    done = panel.reset(forget, pair, None, api_name="forget_task", **QUIET)
    done.success(None, None, None, js=forgot, **PRIVATE)
