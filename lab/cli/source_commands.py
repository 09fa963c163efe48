"""The command that measures what else could draft."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

ROWS = "1=4.5,2=5.2,4=7.7,6=10.6,8=14.0"  # SmolLM2's Q4_1 file behind 64 tokens


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
