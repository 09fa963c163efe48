"""The commands that look for faults: `equality` compares ids, `torture` breaks a running app."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from omnidemo.cli.common import collected, show
from omnidemo.core.config import EMBEDDED_TARGET


def equality(
    quick: Annotated[bool, typer.Option(help="Every pair of choices once, not the whole matrix.")] = False,
    csv: Annotated[Path | None, typer.Option(help="Where the rows go.")] = None,
) -> None:
    """Check every method's greedy ids against transformers' own, over architectures, tokenizer families and
    edge cases.

    Tiny models are made on the spot. Exits with 1 if any ids differ.
    """
    import torch

    from lab.equality.equality import Row, equality_matrix
    from omnidemo.serving.measuring.prompt_files import check_writable
    from omnidemo.serving.measuring.report_tables import counted, csv_table

    torch.set_num_threads(1)
    if csv:
        check_writable(csv)
    typer.echo("Passes are compiled first, which may take minutes.", err=True)
    with collected(counted(equality_matrix(pairwise=quick), "answers compared")) as rows:
        if csv:
            with csv_table(csv, Row) as append:
                for row in rows:
                    append(row)
        different = [row for row in rows if row.equal is False]
        for row in different:
            typer.echo(
                f"different: {row.architecture}, {row.family}, {row.method}, {row.case}: {row.note}", err=True
            )
        refused = sum(row.equal is None for row in rows)
        typer.echo(
            f"{len(rows) - refused - len(different):,} equal, {len(different):,} different, {refused:,}"
            " refused by a method"
        )
    if different:
        raise typer.Exit(1)


def torture(
    minutes: Annotated[float, typer.Option(min=0.1, help="About how long.")] = 20.0,
    clients: Annotated[int, typer.Option(min=1, max=32, help="Client processes at once.")] = 3,
    seed: Annotated[int, typer.Option(min=0, help="Other moments and other nonsense.")] = 0,
    short: Annotated[bool, typer.Option(help="One kill for each kind of kill.")] = False,
    replicas: Annotated[
        int, typer.Option(min=0, max=8, help="Replicas that answer, run by Ray; 0: the app's own process.")
    ] = 0,
    postgres: Annotated[
        bool, typer.Option("--postgres", help="Keep the history in a PostgreSQL server, started here.")
    ] = False,
    target: Annotated[
        str, typer.Option(help="The target, as for other commands; a GGUF file, too.")
    ] = EMBEDDED_TARGET,
    keep: Annotated[Path | None, typer.Option(help="Folder in which storage, ledgers and logs stay.")] = None,
) -> None:
    """Kill, damage, fill, lock, flood and forge, on this machine alone, and hold the history against what
    clients were told.

    Ends with 0 only if every acknowledged answer was kept, no raw error was seen, and no visitor read or
    changed another's data.
    """
    from lab.torture.run_torture import TortureRequest, run

    report = run(
        TortureRequest(minutes, clients, seed, short, keep, replicas, postgres, target),
        lambda said: typer.echo(said, err=True),
    )
    show(("what", "tried", "survived", "lost"), report.rows(), f"{report.seconds / 60:.1f} minutes.")
    for trouble in report.troubles():
        typer.echo(trouble)
    typer.echo("Everything held." if report.held else "Not everything held.")
    if not report.held:
        raise typer.Exit(1)
