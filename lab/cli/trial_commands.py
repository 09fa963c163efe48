"""The commands that look for faults: `equality` compares ids, `layers` tensors, `torture` breaks a running
app, `bench-memory` weighs one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from omnidemo.cli.common import collected, read_settings, show
from omnidemo.cli.options import Drafter, Out, Target
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
    from lab.measured_rows import counted
    from omnidemo.serving.measuring.prompt_files import check_writable
    from omnidemo.serving.measuring.report_tables import csv_table

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


def layers(
    target: Target = None,
    text: Annotated[str, typer.Option(help="What the passes read.")] = "Tell me a short story about a fox.",
) -> None:
    """Compare the target's passes with transformers tensor by tensor, and name the first that differs.

    Products of packed weights are compared with numpy. Exits with 1 if any differs.
    """
    settings = read_settings(target=target, training="off")
    from lab.equality.layer_by_layer import check

    with collected(check(settings, text)) as compared:
        for form in compared:
            typer.echo("\n".join(form.lines()))
    if any(form.different for form in compared):
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


def bench_memory(
    csv: Out,
    target: Target = None,
    drafter: Drafter = None,
    domain: Annotated[str, typer.Option(help="The prompts' topic.")] = "maths",
    prompts: Annotated[Path | None, typer.Option(help="JSON Lines instead.")] = None,
    requests: Annotated[int, typer.Option(min=1)] = 1000,
    every: Annotated[int, typer.Option(min=1, help="Requests between two samples.")] = 100,
    max_new_tokens: Annotated[int, typer.Option(min=2, help="Longest answer.")] = 64,
    steps: Annotated[int | None, typer.Option(min=1, help="Optimiser steps of an update.")] = None,
    public: Annotated[bool, typer.Option(help="Each is a visitor of a public app.")] = False,
) -> None:
    """Start the app and come as a new browser for each request, with training on; watch the app's memory.
    Ends with 1 if it grows."""
    settings = read_settings(
        target=target, drafter=drafter, max_new_tokens=max_new_tokens, steps_per_update=steps
    )
    from lab import app_memory as memory
    from omnidemo.learning.lines.sample_prompts import sample
    from omnidemo.serving.measuring.prompt_files import read_prompts

    texts = read_prompts(prompts) if prompts else sample(domain, requests, 0, "train")
    with collected(memory.over_browsers(settings, texts, requests, every, csv, public)) as found:
        show(memory.HEADINGS, [one.cells() for one in found], f"Rows: {csv}")
    grown, since = memory.flat(found), f"request {memory.SETTLED} on"
    if grown is None:
        typer.echo(f"Memory is compared from {since}; give --requests more than that.", err=True)
        return
    typer.echo(
        f"From {since} memory went at most {grown:+.1%} above what it was then; {memory.FLAT:.0%} is"
        " allowed.",
        err=True,
    )
    if grown > memory.FLAT:
        raise typer.Exit(1)


def examples(
    target: Target = None,
    drafter: Drafter = None,
    answers: Annotated[int, typer.Option(min=1, help="Mixed answers before the examples come again.")] = 40,
    orders: Annotated[int, typer.Option(min=1, help="Orders of these answers.")] = 2,
    max_new_tokens: Annotated[int, typer.Option(min=2, help="Longest answer.")] = 128,
    limit: Annotated[int | None, typer.Option(min=1, help="Examples; default: all twelve.")] = None,
) -> None:
    """Guess the page's examples ahead, fresh and after mixed answers in the same process, and once more when
    they were answered. Nothing is timed but the prices that `cost` goes by."""
    settings = read_settings(target=target, drafter=drafter)
    from lab.examples_again import measure, table
    from omnidemo.serving.pair_loading import build_pair, wait_for_kernels

    pair = build_pair(settings.target, settings.drafter, settings)
    wait_for_kernels(pair, settings)
    pair.measure_prices()
    with collected(
        measure(pair, settings, answers=answers, orders=orders, length=max_new_tokens, examples=limit)
    ) as found:
        typer.echo(table(found))
