"""The commands that hold a checkout to a commit: the same ids, and as fast."""

from __future__ import annotations

from typing import Annotated

import typer

from omnidemo.cli.common import collect, show

Targets = Annotated[list[str] | None, typer.Option(help="Targets, in order; default: all three.")]
Tokens = Annotated[int, typer.Option(min=1, help="Tokens of an answer.")]


def ids(
    against: Annotated[
        str | None, typer.Option(help="The commit, or a checkout; default: the hashes that are kept.")
    ] = None,
    target: Targets = None,
    limit: Annotated[int, typer.Option(min=1, max=96, help="Prompts.")] = 24,
    max_new_tokens: Tokens = 64,
    keep: Annotated[bool, typer.Option("--keep", help="Keep the hashes of the commit's ids.")] = False,
) -> None:
    """Compare the ids of this checkout's answers with a commit's: greedy, and with a seed by every method
    whose text it fixes. Exits with 1 if any differ."""
    from lab.guards import against as guard

    found = collect(guard.ids(against, target or guard.TARGETS, limit, max_new_tokens, keep))
    wrong = [one for one in found if not one.equal]
    for one in wrong:
        typer.echo(f"different: {one.target}, {one.manner}, {one.method}", err=True)
    typer.echo(f"{len(found) - len(wrong)} of {len(found)} answers have equal ids")
    if wrong:
        raise typer.Exit(1)


def turns(
    against: Annotated[str, typer.Option(help="The commit, or a checkout.")],
    target: Targets = None,
    limit: Annotated[int, typer.Option(min=1, max=95, help="Timed prompts.")] = 12,
    max_new_tokens: Tokens = 64,
    draft_policy: Annotated[str, typer.Option(help="How far to draft.")] = "chance",
) -> None:
    """Time this checkout beside a commit in turns, plain and drafted. Exits with 1 where a bound is
    broken."""
    from lab.guards import against as guard

    found = collect(guard.speeds(against, target or guard.TARGETS, limit, max_new_tokens, draft_policy))
    show(
        ("target", "answers", "tokens/s before", "after", "ratio", "bound"),
        [
            (one.target, one.lane, *map("{:.4g}".format, (one.before, one.after, one.ratio, one.bound)))
            for one in found
        ],
        "Ratio: the median of answers, each timed before and after in turns.",
    )  # fmt: skip
    if not all(one.held for one in found):
        raise typer.Exit(1)
