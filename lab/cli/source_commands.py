"""The commands that record answers, and measure along them what else could draft."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lab.cli.model_commands import costs_of
from omnidemo.core.config import REAL_DRAFTER

PASSES = "1=26,2=27.8,4=33.5,6=43.9,8=51.6,12=83.7,16=102"  # the 1.5B in int8


def memory_rows(
    target: Annotated[str, typer.Option(help="The model that answers, by any of its names.")],
    out: Annotated[Path, typer.Option(help="The folder of the rows, a folder a set.")],
    drafter: Annotated[str, typer.Option(help="The model that drafts.")] = REAL_DRAFTER,
    prompts: Annotated[
        Path | None,
        typer.Option(
            help="The laboratory's folder of prompt files; without it the tasks alone.", exists=True
        ),
    ] = None,
    sets: Annotated[str, typer.Option(help="Tasks and sets, with commas between; default: all.")] = "",
    inputs: Annotated[int, typer.Option(min=1, help="Inputs of each task.")] = 40,
    most: Annotated[int, typer.Option(min=1, help="Prompts of a set at most, evenly from all of it.")] = 24,
    length: Annotated[int, typer.Option(min=2, help="Tokens of an answer.")] = 96,
) -> None:
    """Record greedy answers with what target and drafter say at each position, for `memory-sources`; goes on
    from where the last run stopped."""
    from lab.sources.rows_recorder import prompts_of, record
    from omnidemo import load_pair
    from omnidemo.cli.common import names_in

    pair = load_pair(target, drafter)
    asked = prompts_of(pair, prompts, inputs, most, names_in(sets))
    record(pair, asked, out, length, typer.echo)


def memory_sources(
    rows: Annotated[
        Path, typer.Argument(help="A folder that `memory-rows` has written.", exists=True, file_okay=False)
    ],
    passes: Annotated[str, typer.Option(help="ROWS=MS,…: what a pass of the target costs.")] = PASSES,
    step: Annotated[float, typer.Option(min=0.0, help="Milliseconds of a drafter token.")] = 0.24,
    sets: Annotated[str, typer.Option(help="Sets, with commas between; default: all.")] = "",
    ways: Annotated[str, typer.Option(help="Ways of drafting, with commas between; default: all.")] = "",
    csv: Annotated[Path | None, typer.Option(help="A folder, for the tables as CSV.")] = None,
) -> None:
    """What memories bring as sources of drafts, simulated along recorded answers at given prices."""
    from lab.drafters.ceilings import Prices
    from lab.sources import memory_tables
    from lab.sources.answer_rows import rows_of
    from omnidemo.cli.common import names_in

    found, known = rows_of(rows), memory_tables.ways()
    chosen, wanted = names_in(ways) or list(known), names_in(sets) or list(found)
    if not found:
        raise ValueError(f"{rows} has no rows; let `memory-rows` write some")
    for names, there in ((chosen, known), (wanted, found)):
        if unknown := sorted(set(names) - set(there)):
            raise ValueError(f"there is no {unknown[0]!r}; there are {', '.join(there)}")
    given = {name: found[name] for name in wanted}
    costs = memory_tables.costs_of(Prices(costs_of(passes), step))
    counts = ", ".join(f"{name}: {len(answers)}" for name, answers in given.items())
    typer.echo(f"{sum(len(one.ids) for answers in given.values() for one in answers):,} tokens; {counts}")
    priced = {
        one: memory_tables.simulate(given, known[one], costs)
        for one in dict.fromkeys((memory_tables.TODAY, *chosen))
    }
    for outcome in (
        memory_tables.by_part(given, [one for one in chosen if one in memory_tables.LEARNING]),
        memory_tables.by_price(priced),
        memory_tables.by_price(priced, 10),
        memory_tables.agreement(given, [one for one in chosen if one in memory_tables.AGREEING]),
    ):
        typer.echo(f"\n{outcome.markdown}")
        if csv is not None:
            outcome.write(csv)
