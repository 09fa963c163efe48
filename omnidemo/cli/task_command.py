"""`adapt --task`: the inputs of one task, with a line on stdout for each answer."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from omnidemo.cli.common import PREPARING, show, telling
from omnidemo.core.config import Settings

if TYPE_CHECKING:
    from omnidemo.pair.repeated_task import Repeated

Named = Annotated[
    str | None,
    typer.Option(
        help='Instead of --prompts: json, sql, cards, handbook, commits, a file of yours, or "list".'
    ),
]
System = Annotated[str | None, typer.Option(help="With --task FILE: the system prompt of every answer.")]
Answers = Annotated[int, typer.Option(min=1, help="With --task: how many inputs are answered.")]
First = Annotated[int, typer.Option(min=1, help="With --task: the input to begin with, from 1.")]
Order = Annotated[int, typer.Option(min=0, help="With --task: a seed of the inputs' order.")]
# heading → (name in a record's row, format); columns are as wide as their headings
SHOWN = {
    "answer": ("number", "d"), "tokens/step": ("tokens_per_round", ".2f"), "copied": ("copied_tokens", "d"),
    "guessed": ("guessed_tokens", "d"), "forced": ("forced_tokens", "d"),
    "own": ("own_tokens", "d"), "accepted": ("alpha", ".2f"), "seconds": ("seconds", ".1f"),
    "version": ("adapter_version", "d"), "memory": ("memory_tokens", "d"),
    "as it was": ("as_it_was_tokens_per_round", ".2f"),
    "empty memory": ("empty_memory_tokens_per_round", ".2f"),
    "fresh drafter": ("fresh_drafter_tokens_per_round", ".2f"),
    "nothing learned": ("nothing_learned_tokens_per_round", ".2f"),
}  # fmt: skip
NOTE = (
    "tokens/step: target tokens per pass of the target. The last columns are of the same answer, drafted"
    " again without a clock: as it was, without earlier answers to copy from, with the base drafter, and with"
    " neither."
)


def run(
    settings: Settings, name: str, system: str | None, csv: Path | None, answers: int, first: int, order: int,
    pause: float, storage: Path | None, asked: dict[str, Any],
) -> None:  # fmt: skip
    """Answer `answers` inputs of the task of this name, or of the file; "list" prints the tasks. `asked`:
    further options of the answers."""
    from omnidemo.core.tasks import TASKS, read_task, task
    from omnidemo.serving.measuring import repeat_task
    from omnidemo.serving.measuring.compare_methods import check_methods
    from omnidemo.serving.measuring.prompt_files import check_writable

    if name == "list":
        known = map(task, TASKS)
        lines = [[one.name, one.title, str(len(one.written)), one.sentence] for one in known]
        return show(("task", "is", "inputs", "in a sentence"), lines)
    if system is not None and name in TASKS:
        raise ValueError(f"the task {name} has a system prompt of its own; give --system with a file")
    chosen = task(name) if name in TASKS or not Path(name).exists() else read_task(Path(name), system or "")
    check_methods([settings.method])
    if csv is not None:
        check_writable(csv)
    rows: list[Repeated] = []
    try:
        with telling(PREPARING) as tell:
            for made in repeat_task.run(
                settings, chosen, answers, csv, storage is not None, first - 1, order, pause, **asked
            ):
                if not rows:
                    typer.echo("  ".join(SHOWN))
                typer.echo(line(made))
                rows.append(made)
                tell(f"{len(rows)} of {answers} answers are written")
    finally:
        if len(rows) > 1:
            typer.echo(headline(rows))
            typer.echo(NOTE + (f" Rows: {csv}" if csv else ""), err=True)
    return None


def line(made: Repeated) -> str:
    """The line of a record under the headings of SHOWN."""
    cells = []
    for heading, (name, form) in SHOWN.items():
        value = made.row[name]
        cells.append(f"{'–' if value is None else format(value, form):>{len(heading)}}")
    return "  ".join(cells)


def headline(rows: list[Repeated]) -> str:
    """A sentence that compares the first answer, the last, and the last with nothing learned; for JSON, how
    many are valid."""
    first, last = rows[0], rows[-1]
    checked = [row.valid for row in rows if row.valid is not None]
    valid = f" {sum(checked)} of {len(checked)} answers are valid JSON." if checked else ""
    if first.same is None or last.same is None:
        return (
            f"Answer {first.number}: {first.tokens_per_round:.2f} tokens a step; answer {last.number}:"
            f" {last.tokens_per_round:.2f}.{valid}"
        )
    return (
        f"Answer {first.number}: {first.same.as_it_was:.2f} tokens a step; answer {last.number}:"
        f" {last.same.as_it_was:.2f}; with nothing learned it would have been"
        f" {last.same.nothing_learned:.2f}.{valid}"
    )
