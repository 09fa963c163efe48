"""`python -m lab …`: see `--help`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import torch
import typer

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)


@app.callback()
def main() -> None:
    """Data and training of drafters for real targets."""


@app.command()
def answers(
    target: Annotated[str, typer.Option(help="the model that answers, by any of its names")],
    name: Annotated[str, typer.Option(help="what it is called in the shards")],
    prompts: Annotated[Path, typer.Option(help="the folder of prompt files", exists=True, file_okay=False)],
    out: Annotated[Path, typer.Option(help="the folder of the shards")],
    sets: Annotated[str, typer.Option(help="which sets, separated by commas; all where nothing is said")] = "",
    tokens: Annotated[int, typer.Option(help="stop after so many, to the end of a shard")] = 2_000_000,
    rows: Annotated[int, typer.Option(help="answers at once")] = 48,
    rounds: Annotated[int, typer.Option(help="drawn answers to each prompt, beside the greedy one")] = 1,
    free: Annotated[int, typer.Option(help="texts without a prompt for each prompt of every set")] = 1,
    threads: Annotated[int, typer.Option(help="threads of products; 0: torch decides")] = 0,
) -> None:
    """Write a target's answers to the training prompts, from where the last run stopped."""
    from lab import prompt_sets
    from lab.answers import write_answers
    from omnidemo.models.load import load_model

    if threads:
        torch.set_num_threads(threads)
    found = prompt_sets.training(prompts)
    chosen = [one for one in sets.split(",") if one] or list(found)
    if unknown := sorted(set(chosen) - set(found)):
        raise typer.BadParameter(f"{unknown[0]!r} is no set; there are {', '.join(found)}", param_hint="--sets")
    typer.echo(", ".join(f"{one}: {len(found[one])} prompts" for one in chosen))
    model = load_model(target, device="cpu", fast=False)
    write_answers(model, name, {one: found[one] for one in chosen}, out, rows, tokens, rounds, free, lambda text: typer.echo(text))


if __name__ == "__main__":
    app()
