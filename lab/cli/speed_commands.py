"""The commands that time: bench, gains, arena."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from omnidemo.cli.common import collect, collected, command_line, names_in, read_settings, show
from omnidemo.cli.options import Drafter, Target
from omnidemo.core.config import DEFAULT

Folder = Annotated[Path | None, typer.Option("--out", help="Folder of the results; default storage/bench.")]


def bench(
    target: Annotated[
        list[str] | None, typer.Option(help=f"Targets, in order; default OMNIDEMO_TARGET, else {DEFAULT}.")
    ] = None,
    drafter: Drafter = None,
    max_new_tokens: Annotated[int, typer.Option(min=2, help="Longest answer.")] = 128,
    threads: Annotated[int | None, typer.Option(min=1, help="CPU threads; default: one a core.")] = None,
    out: Folder = None,
    peers: Annotated[
        str, typer.Option(help="Whom the rows race, with commas between, or none.")
    ] = "llama.cpp,transformers",
    peer_file: Annotated[
        list[str] | None,
        typer.Option(help="GGUF files of the same model that llama.cpp reads too, by any name."),
    ] = None,
    passes: Annotated[int, typer.Option(min=1, help="Timed passes of each number of rows.")] = 25,
    seconds: Annotated[
        float, typer.Option(min=0, help="Of the rows of a target; a large one has fewer passes.")
    ] = 300.0,
) -> None:
    """Time passes of several rows beside llama.cpp and transformers. Writes rows.json and rows.md."""
    settings = read_settings(drafter=drafter, threads=threads, training="off")
    from lab.races import rows_race
    from omnidemo.models.names import known_targets

    folder = out or settings.storage / "bench"
    targets, settings = known_targets(target or [settings.target], settings)
    named = [] if peers == "none" else names_in(peers)
    for one in targets:
        order = rows_race.RaceRequest(
            one, folder if len(targets) == 1 else folder / Path(one).name, named, peer_file or (), passes,
            max_new_tokens, seconds, command_line("lab"),
        )  # fmt: skip
        for race in collect(rows_race.run(order, settings)):
            note = f"{rows_race.NOTE} Figures: {order.out / 'rows.json'}"
            show(rows_race.HEADINGS, rows_race.table(race.found), note, one)
            typer.echo("".join(f"{said}.\n" for said in race.left_out), err=True, nl=False)


def gains(
    target: Target = None,
    drafter: Drafter = None,
    prompts: Annotated[list[Path] | None, typer.Option(help="Sets of prompts, JSON Lines each.")] = None,
    tasks: Annotated[str, typer.Option(help="Repeated tasks, with commas between.")] = "",
    orders: Annotated[str, typer.Option(help="Orders of a task's inputs, with commas between.")] = "1",
    answers: Annotated[int, typer.Option(min=1, help="Answers of each order.")] = 12,
    behind: Annotated[int, typer.Option(min=0, help="Answers of an order that are not timed.")] = 0,
    limit: Annotated[int, typer.Option(min=1, help="Prompts of a set, taken evenly.")] = 8,
    own_manner: Annotated[
        bool, typer.Option("--own-manner", help="In the target's own manner, not greedy.")
    ] = False,
    fresh: Annotated[
        bool,
        typer.Option(
            "--fresh", help="Draft each with nothing remembered, too; then sets remember as tasks do."
        ),
    ] = False,
    max_new_tokens: Annotated[int, typer.Option(min=10, help="Longest answer.")] = 64,
    draft_policy: Annotated[str, typer.Option(help="How far to draft.")] = "cost",
    out: Folder = None,
) -> None:
    """Time drafted answers, each between two plain ones: sets of prompts, and repeated tasks with memory.

    Writes gains.json and gains.md.
    """
    settings = read_settings(target=target, drafter=drafter, training="off")
    from lab.drafters.prompt_sets import read_lines, some
    from lab.races import gains as race
    from omnidemo.core.tasks import task

    sets = {path.stem: [one.text for one in some(read_lines(path), limit)] for path in prompts or ()}
    named = names_in(tasks)
    for name in named:
        task(name)
    if not sets and not named:
        raise ValueError("name files with --prompts, or tasks with --tasks")
    order = race.GainRequest(
        settings.target, out or settings.storage / "gains", sets, named,
        [int(one) for one in names_in(orders)], answers, behind, own_manner, max_new_tokens, draft_policy,
        fresh, command_line("lab"),
    )  # fmt: skip
    with collected(race.run(order, settings)) as found:
        show(race.HEADINGS, race.table(found), race.NOTE, order.target)
        if fresh:
            show(race.FRESH_HEADINGS, race.against_fresh(found), "", order.target)


def arena(
    target: Target = None,
    drafter: Drafter = None,
    prompts: Annotated[
        Path | None, typer.Option(help="The laboratory's folder of prompt files; without it the tasks alone.")
    ] = None,
    sets: Annotated[
        str, typer.Option(help="Kept sets of it, with commas between.")
    ] = "gsm8k_test,humaneval,dolly,summaries,tasks,sql",
    tasks: Annotated[
        str, typer.Option(help="Repeated tasks, with commas between.")
    ] = "json,sql,commits,handbook",
    limit: Annotated[int, typer.Option(min=1, help="Prompts of each set and task.")] = 12,
    manner: Annotated[str, typer.Option(help="greedy, own, or both with a comma between.")] = "greedy,own",
    methods: Annotated[str, typer.Option(help="With commas between; default: all that fit.")] = "",
    max_new_tokens: Annotated[int, typer.Option(min=10, help="Longest answer.")] = 96,
    draft_policy: Annotated[str, typer.Option(help="How far to draft.")] = "cost",
    minutes: Annotated[
        float, typer.Option(min=0.0, help="No other prompt begins after so many; 0: the tables alone.")
    ] = 1e9,
    out: Annotated[Path | None, typer.Option(help="Folder of the results; default storage/arena.")] = None,
) -> None:
    """Time all methods on the same prompts, in turns: sets of prompts, and repeated tasks with memory.

    Each prompt is a file in the folder. A run goes on with those that are not there; the tables have all that
    are.
    """
    settings = read_settings(target=target, drafter=drafter, training="off")
    from lab.measured_rows import markdown_table
    from lab.races import lane_tables, lanes
    from omnidemo.backends import compile_kernels
    from omnidemo.serving.pair_loading import build_pair

    named = names_in(tasks)
    order = lanes.ArenaRequest(
        settings.target, out or settings.storage / "arena",
        lanes.kept_sets(prompts, names_in(sets), named, limit) if prompts else {}, named, limit,
        names_in(manner), names_in(methods), max_new_tokens, draft_policy, minutes,
    )  # fmt: skip

    def told() -> None:
        found = list(lane_tables.tables(lanes.read(order.out)))
        for title, headings, lines in found:
            typer.echo(f"\n{title}\n\n{markdown_table(headings, lines)}")
        typer.echo(f"\n{lane_tables.NOTE}" if found else "", nl=bool(found))

    if not minutes:
        return told()
    pair = build_pair(settings.target, settings.drafter, settings)
    if pair.target.device.type == "cpu" and settings.backend != "reference":
        compile_kernels.wait()
    with collected(lanes.run(order, pair)):
        told()
