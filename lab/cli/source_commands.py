"""The command that measures what else could draft."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

ROWS = "1=4.5,2=5.2,4=7.7,6=10.6,8=14.0"  # SmolLM2's Q4_1 file behind 64 tokens
PASSES = "1=26,2=27.8,4=33.5,6=43.9,8=51.6,12=83.7,16=102"  # the 1.5B in int8


def sources(
    target: Annotated[str, typer.Option(help="a model of a Llama's or Qwen's shape, by any of its names")],
    prompts: Annotated[
        list[Path],
        typer.Option(help="files of prompts, a set each; or the laboratory's folder of them", exists=True),
    ],
    sets: Annotated[
        str, typer.Option(help="which sets, separated by commas; all where nothing is said")
    ] = "",
    most: Annotated[int, typer.Option(min=2, help="prompts of a set at most, evenly from all of it")] = 12,
    length: Annotated[int, typer.Option(min=2, help="tokens of an answer")] = 96,
    exits: Annotated[
        str,
        typer.Option(
            help="numbers of layers, separated by commas; default: six, from a tenth to five sixths"
        ),
    ] = "",
    rows: Annotated[str, typer.Option(help="ROWS=MS,…: what a pass of the target costs")] = ROWS,
    csv: Annotated[Path | None, typer.Option(help="a folder, for the table as CSV")] = None,
) -> None:
    """What a target's own first layers would draft, measured along its greedy answers."""
    import torch

    from lab.sources.early_exit import early_exit, usual_exits
    from lab.sources.pass_bytes import parts_of, sizes_in_file, sizes_in_memory
    from lab.sources.read_answers import prompts_of, record
    from omnidemo.backends.fused_llama import FusedLlama
    from omnidemo.cli.common import names_in
    from omnidemo.models.chat_template import Speller
    from omnidemo.models.load import open_source

    asked = prompts_of(prompts, most, names_in(sets))
    prices = {int(count): float(ms) for count, ms in (one.split("=") for one in names_in(rows))}
    source = open_source(target, hub=False)
    if not FusedLlama.fits(source.config):
        raise ValueError(f"{source.name} has no Llama or Qwen shape; name a target that has")
    layers = int(source.config.num_hidden_layers)
    after = [int(one) for one in names_in(exits)] or usual_exits(layers)
    if wrong := [one for one in after if not 0 < one < layers]:
        raise ValueError(f"no exit is after {wrong[0]} of {layers} layers")
    if not any(asked.values()):
        raise ValueError("there are no prompts in these files; name others")
    tokenizer, vocabulary = source.tokenizer()
    ends, speller = vocabulary.roles["end"], Speller(tokenizer, vocabulary)
    model = source.weights("cpu", None, torch.float32, None).eval()

    def spell(text: str) -> list[int]:
        return speller.messages([{"role": "user", "content": text}])

    readings = []
    for reading in record(model, asked, spell, ends, after, length):
        readings.append(reading)
        typer.echo(f"{reading.answer.order}: {len(reading.answer.ids)} tokens", err=True)
    count = sum(len(one.answer.ids) for one in readings)
    typer.echo(f"{source.name}, {len(readings)} greedy answers with {count:,} tokens: {', '.join(asked)}")
    bytes_of = sizes_in_file(source.files) if source.files.is_file() else sizes_in_memory(model)
    outcome = early_exit(readings, after, parts_of(bytes_of, layers), prices, ends)
    typer.echo(f"\n{outcome.markdown}")
    if csv is not None:
        outcome.write(csv)


def memory_rows(
    target: Annotated[str, typer.Option(help="the model that answers, by any of its names")],
    out: Annotated[Path, typer.Option(help="the folder of the rows, a folder a set")],
    drafter: Annotated[str, typer.Option(help="the model that drafts")] = "bundled/drafter-2",
    prompts: Annotated[
        Path | None,
        typer.Option(help="the laboratory's folder of prompt files; without it the tasks alone", exists=True),
    ] = None,
    sets: Annotated[
        str, typer.Option(help="which tasks and sets, separated by commas; all where nothing is said")
    ] = "",
    inputs: Annotated[int, typer.Option(min=1, help="of each task")] = 40,
    most: Annotated[int, typer.Option(min=1, help="prompts of a set at most, evenly from all of it")] = 24,
    length: Annotated[int, typer.Option(min=2, help="tokens of an answer")] = 96,
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
        Path, typer.Argument(help="a folder that `memory-rows` has written", exists=True, file_okay=False)
    ],
    passes: Annotated[str, typer.Option(help="ROWS=MS,…: what a pass of the target costs")] = PASSES,
    step: Annotated[float, typer.Option(min=0.0, help="ms of a drafter token")] = 0.24,
    sets: Annotated[
        str, typer.Option(help="which sets, separated by commas; all where nothing is said")
    ] = "",
    ways: Annotated[str, typer.Option(help="which ways of drafting; all where nothing is said")] = "",
    csv: Annotated[Path | None, typer.Option(help="a folder, for the tables as CSV")] = None,
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
    prices = {int(count): float(ms) for count, ms in (one.split("=") for one in names_in(passes))}
    costs = memory_tables.costs_of(Prices(prices, step))
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
