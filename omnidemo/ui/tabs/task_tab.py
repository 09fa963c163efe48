"""The tab *Same task*. A press asks for ten answers. Each answer is an event of its own, so others wait for
the engine for one answer at most."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import gradio as gr

from omnidemo.serving.public_services import PublicServices
from omnidemo.serving.quotas import Refused
from omnidemo.storage.recorded_rounds import json_line
from omnidemo.ui import downloads, task_rows
from omnidemo.ui.downloads import for_browser
from omnidemo.ui.errors import ENGINE, report
from omnidemo.ui.figures.task_curve import LINES, task_curve
from omnidemo.ui.running_answers import Running
from omnidemo.ui.shell import PRIVATE, Shell, load_ready, script, widget

# The pause between two answers while an update runs, which goes on in the next one: the rows shall not wait.
LEARN_SECONDS = 3.0


def _answerer(services: PublicServices, running: Running) -> Any:
    """The event behind the button."""

    def same_task(
        session: str, run: str, target: str, drafter: str, asked: dict[str, Any] | None
    ) -> Iterator[str]:
        """Answer one input of a task by a stream of JSON lines (`ui/task_rows.py`). `asked`: task (json, sql,
        commits, handbook; topic, with topic; own, with system and lines), first (inputs that were answered
        before), learn, keep."""
        session, run = session or f"api-{secrets.token_hex(8)}", run or secrets.token_hex(8)
        head, last = json_line("run", run=run, target=target, drafter=drafter), ""
        try:
            given = downloads.fields(asked, "task")
            task, first = task_rows.asked_task(given), task_rows.first_of(given)
            load_ready(services, target, drafter, "Press again when it is ready.")
            head += "".join(json_line("input", text=one) for one in task.inputs(1, first=first))
            yield head
            form = task_rows.form_of_task(task, services.settings.method)
            answers = services.repeat(
                session=session, target=target, drafter=drafter, task=task, count=1, first=first,
                cancel=running.start(session, run), keep=given.get("keep") is not False,
                learn=given.get("learn") is not False and services.settings.training != "off",
                **form,
            )  # fmt: skip
            for last in task_rows.stream(answers):
                yield head + last
        except Refused as refused:  # nothing is wrong, so nothing is logged
            yield head + last + json_line("error", text=str(refused))
        except Exception as error:  # any cause: the page says it and lives on
            yield head + last + json_line("error", text=report(error, "an answer of a task"))
        finally:
            running.finish(session, run)

    return same_task


def _line(services: PublicServices, asked: Any) -> str:
    """The line that drafts for a task: of its name; a visitor has one line for everything."""
    return "default" if services.own else task_rows.asked_task(downloads.fields(asked, "task")).name


def _let_learn(services: PublicServices, target: str, drafter: str, asked: Any) -> None:
    """Between two answers, outside of the engine's queue: an update that is due runs, and other requests get
    the engine."""
    with suppress(RuntimeError, ValueError):  # the pair is gone, or it is no task
        services.let_learn(target, drafter, _line(services, asked), longest=LEARN_SECONDS)


def _check(services: PublicServices, target: str, drafter: str, asked: Any) -> str:
    """Say what is wrong with a schema that is being typed. `asked`: schema; number, which comes back."""
    given = downloads.fields(asked, "schema")
    schema, number = given.get("schema"), given.get("number")
    if not isinstance(schema, str) or not isinstance(number, int):
        raise Refused("The schema is no text; reload the page.")
    said = task_rows.wrong_with(schema.strip(), partial(services.check_form, target, drafter))
    return json_line("schema", number=number, said=said)


def _forget(services: PublicServices, target: str, drafter: str, asked: Any) -> None:
    """Delete what a task has taught its line, with the answers that it copies from. The history stays."""
    load_ready(services, target, drafter, "Press again when it is ready.")
    services.reset(target, drafter, _line(services, asked))


def build(services: PublicServices, shell: Shell) -> None:
    """Everything inside the tab."""
    names = {column: name for column, (name, *_) in LINES.items()}
    first: dict[str, Any] = {"cards": task_rows.cards(), "figure": task_curve(), "lines": names}
    first |= {"most": task_rows.MOST_TEXT, "learns": services.settings.training != "off"}
    panel = widget("task", for_browser(first), events=("run", "halt", "reset", "check"))
    running, run = Running(), gr.Textbox(visible=False, label="run")
    asked, rows = gr.JSON(visible=False, label="task"), gr.JSON(visible=False, label="rows")
    inputs = [shell.session, run, shell.target, shell.drafter, asked]
    settled: dict[str, Any] = {
        "fn": None,
        "js": script("() => { page.task.settled(); return []; }"),
        **PRIVATE,
    }
    answered = panel.run(
        _answerer(services, running), inputs, [panel], js=script("(...values) => page.task.request(values)"),
        api_name="same_task", concurrency_id=ENGINE, concurrency_limit=1, show_progress="hidden",
    )  # fmt: skip
    answered.failure(**settled)  # refused before it began: nothing below happens then
    js = script("(target, drafter) => [target, drafter, page.task.asked()]")
    learns: dict[str, Any] = {"concurrency_limit": 8, **PRIVATE}
    learned = answered.then(partial(_let_learn, services), inputs[2:], None, js=js, **learns)
    learned.then(**settled)
    running.stopped_by(panel.halt, inputs[:2], script("() => page.task.current()"), "stop_same_task")

    typed = script("(target, drafter) => [target, drafter, page.task.typed()]")
    check: dict[str, Any] = {"trigger_mode": "always_last", "concurrency_limit": 2, **PRIVATE}
    panel.check(partial(_check, services), inputs[2:], [panel], js=typed, api_name="check_schema", **check)

    forgot = script("() => { page.task.forgotten(); return []; }")
    forget = panel.reset(
        partial(_forget, services), inputs[2:], None, js=js, api_name="forget_task", **PRIVATE
    )
    forget.success(None, None, None, js=forgot, **PRIVATE)

    def make(given: Any) -> Path | None:
        return task_rows.write_rows(downloads.temporary("omnidemo-task.csv", services.own), given)

    with gr.Row(elem_classes="omni-files"):
        press = gr.Button("↓ Rows as CSV", size="sm").click
        none = "There are no rows. They come with the answers."
        downloads.download(press, "task_csv", make, [rows], js=script("() => [page.task.csv()]"), empty=none)
