"""The commands that time: bench, gains, arena."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from omnidemo.cli.common import collect, collected, command_line, names_in, read_settings, show
from omnidemo.cli.options import Drafter, Quick, Target
from omnidemo.core.config import DEFAULT, Settings

if TYPE_CHECKING:
    from lab.races import rows_race

Folder = Annotated[Path | None, typer.Option("--out", help="Folder of the results; default storage/bench.")]


def bench(
    target: Annotated[
        list[str] | None, typer.Option(help=f"Targets, in order; default OMNIDEMO_TARGET, else {DEFAULT}.")
    ] = None,
    drafter: Drafter = None,
    domain: Annotated[list[str] | None, typer.Option(help="Bundled topics, in order; default: all.")] = None,
    prompts: Annotated[list[Path] | None, typer.Option(help="JSON Lines instead, a topic each.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="Measured prompts of each topic.")] = 20,
    temperature: Annotated[list[float] | None, typer.Option(min=0.0, help="Default 0 and 1.")] = None,
    methods: Annotated[str, typer.Option(help="Ours, with commas between; default: all that fit.")] = "",
    max_new_tokens: Annotated[int, typer.Option(min=2, help="Longest answer.")] = 128,
    draft_length: Annotated[int, typer.Option(min=1, help="Drafter tokens per round where it is fixed.")] = 4,
    threads: Annotated[
        int | None,
        typer.Option(min=1, help="CPU threads of both sides; default: the best of 1, 2 and 4 for each."),
    ] = None,
    seed: int = 0,
    out: Folder = None,
    only: Annotated[str, typer.Option(help="rows: the first table; answers: the second.")] = "",
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
    quick: Quick = False,
) -> None:
    """Time passes of several rows beside llama.cpp and transformers; then our methods, plain transformers and
    its assisted generation on the same prompts, against the machine's own limits.

    Writes rows.json and rows.md; speed.csv (every answer), speed.md and speed.json.
    """
    settings = read_settings(drafter=drafter, threads=threads, training="off")
    if only not in ("", "rows", "answers"):
        raise ValueError(f"--only is rows or answers, not {only!r}")
    from lab.races import rows_race, speed_report
    from lab.races.contest import BenchRequest
    from lab.races.run_bench import run
    from omnidemo.learning.lines.sample_prompts import TOPICS
    from omnidemo.models.names import known_targets
    from omnidemo.serving.measuring import prompt_files
    from omnidemo.serving.measuring.report_tables import group_by

    topics = domain or list(TOPICS)
    if quick:
        topics, limit, max_new_tokens, methods, passes = topics[:1], 1, 16, methods or settings.method, 1
    folder = out or settings.storage / "bench"
    targets, settings = known_targets(target or [settings.target], settings)
    if only != "answers":
        named = [] if peers == "none" else names_in(peers)
        for one in targets:
            own = folder if len(targets) == 1 else folder / Path(one).name
            _race(
                rows_race.RaceRequest(
                    one, own, named, peer_file or (), passes, max_new_tokens, seconds, command_line("lab")
                ),
                settings,
            )
    if only == "rows":
        return
    asked = {path.stem: prompt_files.read_prompts(path, limit) for path in prompts or ()}
    order = BenchRequest(
        targets, asked or prompt_files.bundled(topics, limit)[1], folder, names_in(methods),
        temperature or (0.0, 1.0), max_new_tokens, draft_length, seed, command=command_line("lab"),
    )  # fmt: skip
    with collected(run(order, settings)) as rows:
        for (name, heat), mine in group_by(rows, lambda row: (row["target"], row["temperature"])).items():
            show(speed_report.HEADINGS, speed_report.speeds(mine), title=f"{name}, temperature {heat:g}")
            typer.echo("\n".join(speed_report.verdicts(mine)))
        if rows:
            typer.echo(f"{speed_report.NOTE}\nRows and tables: {order.out}", err=True)


def _race(order: rows_race.RaceRequest, settings: Settings) -> None:
    from lab.races import rows_race

    for race in collect(rows_race.run(order, settings)):
        show(
            rows_race.HEADINGS,
            rows_race.table(race.found),
            f"{rows_race.NOTE} Figures: {order.out / 'rows.json'}",
            order.target,
        )
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
    from lab.races import lane_tables, lanes
    from omnidemo.backends import compile_kernels
    from omnidemo.serving.measuring.report_tables import markdown_table
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
