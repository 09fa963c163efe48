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
    drafter: Annotated[str, typer.Option(help="default: the target's own")] = "",
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
    sizes: Annotated[
        str, typer.Option(help="how many of the most frequent tokens a trimmed drafter keeps")
    ] = "250,500,1000,2000,3500",
    rows: Annotated[str, typer.Option(help="ROWS=MS,…: what a pass of the target costs")] = ROWS,
    step: Annotated[float, typer.Option(min=0, help="ms of a step of the drafter")] = 0.12,
    watch: Annotated[
        float | None,
        typer.Option(min=0, help="ms a token of a drafter that only reads along; default: a step"),
    ] = None,
    guesses: Annotated[int, typer.Option(min=1, max=8, help="guesses of a drafter that always drafts")] = 3,
    csv: Annotated[Path | None, typer.Option(help="a folder, for each table as CSV")] = None,
) -> None:
    """Early exit, vocabulary trimming and the choice of a source, measured along a target's greedy
    answers."""
    import torch
    from transformers import AutoModelForCausalLM

    from lab.drafters.ceilings import Prices
    from lab.drafters.corpus import vocabulary_of
    from lab.drafters.guesses import guess
    from lab.drafters.spelling import Spelling
    from lab.sources.early_exit import early_exit, usual_exits
    from lab.sources.hedging import hedging
    from lab.sources.pass_bytes import parts_of, sizes_in_file, sizes_in_memory
    from lab.sources.read_answers import prompts_of, record
    from lab.sources.trimming import trimming
    from omnidemo.backends.fused_llama import FusedLlama
    from omnidemo.cli.common import names_in, read_settings
    from omnidemo.models import model_files
    from omnidemo.models.chat_template import Speller
    from omnidemo.models.load import open_source
    from omnidemo.models.names import drafter_of

    asked = prompts_of(prompts, most, names_in(sets))
    prices = Prices({int(count): float(ms) for count, ms in (one.split("=") for one in names_in(rows))}, step)
    grid = [int(one) for one in names_in(sizes)]
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
    answers = [one.answer for one in readings]
    chosen = drafter or drafter_of(target, read_settings())
    small = AutoModelForCausalLM.from_pretrained(
        model_files.find(chosen, hub=False), dtype=torch.float32
    ).eval()
    own = vocabulary_of(chosen)
    spelling = Spelling(vocabulary, own)
    found = [made for answer in answers if (made := guess(small, answer, spelling)) is not None]
    count = sum(len(one.ids) for one in answers)
    typer.echo(
        f"{source.name}, drafter {chosen}, {len(answers)} greedy answers with {count:,} tokens:"
        f" {', '.join(asked)}"
    )
    bytes_of = sizes_in_file(source.files) if source.files.is_file() else sizes_in_memory(model)
    for outcome in (
        early_exit(readings, after, parts_of(bytes_of, layers), prices.rows, ends),
        trimming(
            small,
            spelling,
            own,
            answers,
            grid,
            parts_of(sizes_in_memory(small), small.config.num_hidden_layers),
            prices,
            ends,
        ),
        hedging(found, prices, ends, guesses, step if watch is None else watch),
    ):
        typer.echo(f"\n{outcome.markdown}")
        if csv is not None:
            outcome.write(csv)
