"""The command that tortures the app."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from omnidemo.cli.common import show


def torture(
    minutes: Annotated[float, typer.Option(min=0.1, help="About how long.")] = 20.0,
    clients: Annotated[int, typer.Option(min=1, max=32, help="Client processes at once.")] = 3,
    seed: Annotated[int, typer.Option(min=0, help="Other moments and other nonsense.")] = 0,
    short: Annotated[bool, typer.Option(help="One kill for each kind of kill, and no public app.")] = False,
    replicas: Annotated[int, typer.Option(min=0, max=8, help="Replicas that answer, run by Ray; 0: the app's own process.")] = 0,
    postgres: Annotated[bool, typer.Option("--postgres", help="Keep the history in a PostgreSQL server, started here.")] = False,
    keep: Annotated[Path | None, typer.Option(help="Folder in which storage, ledgers and logs stay.")] = None,
) -> None:
    """Kill, damage, fill, lock, flood and forge, on this machine alone, and hold the history against what clients were told.

    Ends with 0 only if nothing that was acknowledged was lost, no raw error was seen, and nobody read or changed another's data.
    """
    from omnidemo.bench.torture.run_torture import TortureRequest, run

    report = run(TortureRequest(minutes, clients, seed, short, keep, replicas, postgres), lambda said: typer.echo(said, err=True))
    show(("what", "tried", "survived", "lost"), report.rows(), f"{report.seconds / 60:.1f} minutes.")
    for trouble in report.troubles():
        typer.echo(trouble)
    typer.echo("Everything held." if report.held else "Not everything held.")
    if not report.held:
        raise typer.Exit(1)
