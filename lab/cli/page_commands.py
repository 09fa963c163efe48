"""The command that makes what the page shows before anything was asked."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from omnidemo.pair.repeated_task import Repeated

# column of a row → field of an answer on the page (ui/live_answers.py)
FIELDS = {
    "number": "number", "tokens": "tokens", "tokens_per_round": "steps", "alpha": "alpha",
    "adapter_version": "version", "copied_earlier_tokens": "memory", "guessed_tokens": "guessed",
    "forced_tokens": "forced", "own_tokens": "own", "nothing_learned_tokens_per_round": "nothing_learned",
    "input": "input",
}  # fmt: skip


def recorded_run(
    machine: Annotated[str, typer.Option(help="What it runs on, in a few words: “2 cores of an AMD EPYC”.")],
    task: Annotated[str, typer.Option(help="The task's name.")] = "json",
    target: Annotated[str, typer.Option(help="The target that writes the answers.")] = "qwen2.5-coder-1.5b",
    answers: Annotated[int, typer.Option(min=1, help="How many inputs are answered.")] = 10,
    out: Annotated[Path | None, typer.Option(help="The file; default: where the page looks for it.")] = None,
) -> None:
    """Answer inputs of a task, beginning with nothing learned, and make of it the recorded run that the page
    shows before anything was asked: its figures, and each round with its time and tokens."""
    import json
    from datetime import UTC, datetime
    from typing import get_args

    from omnidemo.core.config import Settings
    from omnidemo.core.records import Source
    from omnidemo.core.tasks import task as named
    from omnidemo.models.catalogue import title_of
    from omnidemo.models.names import drafter_of
    from omnidemo.serving.measuring import repeat_task
    from omnidemo.ui.live_answers import RECORDED
    from omnidemo.ui.task_rows import form_of_task

    settings, chosen = Settings(target=target), named(task)
    form: dict[str, Any] = {**form_of_task(chosen, settings.method)}
    lines = []
    for made in repeat_task.run(settings, chosen, answers, None, False, **form):
        lines.append(json.dumps(answer_of(made), ensure_ascii=False))
        typer.echo(f"{made.number}: {made.tokens_per_round:.2f} tokens a step")
    about = {"task": task, "title": title_of(target), "target": target, "machine": machine}
    about |= {"drafter": drafter_of(target, settings), "date": datetime.now(UTC).date().isoformat()}
    head, rows = (
        json.dumps(about | {"sources": get_args(Source)}, ensure_ascii=False)[1:-1],
        ",\n  ".join(lines),
    )
    (out or RECORDED).write_text(f'{{{head}, "answers": [\n  {rows}\n]}}\n', encoding="utf-8")


def answer_of(made: Repeated) -> dict[str, Any]:
    """An answer of the recorded run. rounds: microseconds, then text and source (its place among the file's
    sources) of each token."""
    from typing import get_args

    from omnidemo.core.records import Source

    places = {source: place for place, source in enumerate(get_args(Source))}
    row = {field: made.row[column] for column, field in FIELDS.items()}
    row = {name: round(value, 4) if isinstance(value, float) else value for name, value in row.items()}
    rounds = [
        [
            round(1e6 * done.seconds["total"]),
            *(x for one in done.tokens for x in (one.text, places[one.source])),
        ]
        for done in made.generation.rounds
    ]
    return row | {"chat": made.copied - made.copied_earlier, "rounds": rounds}
