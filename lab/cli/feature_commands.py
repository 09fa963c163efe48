"""The commands of the feature drafter: recorded states, training, scores."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lab.cli.model_commands import Pause, Shards, costs_of
from omnidemo.core.config import REAL_DRAFTER

States = Annotated[Path, typer.Option(help="The folder of recorded states.")]


def feature_rows(
    target: Annotated[str, typer.Option(help="The model that wrote the answers, by any of its names.")],
    name: Annotated[str, typer.Option(help="Its name in the shards.")],
    shards: Shards,
    out: States,
    tokens: Annotated[
        int, typer.Option(help="Stop where there are states of so many tokens.")
    ] = 1_000_000_000,
    pause: Pause = None,
) -> None:
    """Record what a target's output layer reads along its answers, from where the last run stopped."""
    from lab.drafters.features.recorder import record
    from omnidemo.backends import compile_kernels
    from omnidemo.models.load import load_model

    model = load_model(target, device="cpu", packed=True)
    compile_kernels.wait()
    record(model, shards, name, out, tokens, typer.echo, pause)


def feature_train(
    name: Annotated[str, typer.Option(help="The name of the target in the shards.")],
    shards: Shards,
    states: States,
    out: Annotated[Path, typer.Option(help="The drafter's file, .safetensors.")],
    kept: Annotated[int, typer.Option(help="Tokens that it can guess, the most frequent ones.")] = 4096,
    width: Annotated[
        int, typer.Option(help="Width of its own state; its layer is four times as wide.")
    ] = 256,
    minutes: Annotated[float, typer.Option(help="Most minutes.")] = 25.0,
    pause: Pause = None,
) -> None:
    """Train a feature drafter along recorded answers."""
    from lab.drafters.features.feature_training import train
    from lab.drafters.features.layer import save
    from lab.drafters.training.optimiser import Rates
    from lab.drafters.training.plan import Plan

    plan, rates = Plan(1_000_000, 1, minutes, batch=512), Rates(0.01, 2e-3, warmup=20, decay=0.6)
    save(train(shards, name, states, kept, width, 4 * width, plan, rates, typer.echo, pause), out)


def feature_scores(
    feature: Annotated[Path, typer.Argument(help="The drafter's file.", exists=True, dir_okay=False)],
    target: Annotated[str, typer.Option(help="The model that wrote the answers, by any of its names.")],
    name: Annotated[str, typer.Option(help="Its name in the shards.")],
    shards: Shards,
    states: States,
    drafter: Annotated[str, typer.Option(help="Another drafter, by any of its names.")] = REAL_DRAFTER,
    rows: Annotated[
        str, typer.Option(help="ROWS=MS,…: what a pass of the target costs.")
    ] = "1=3.9,2=3.8,4=4.3,6=5.1,8=6.2,12=8.9",
    step: Annotated[float, typer.Option(help="Milliseconds of a step of the feature drafter.")] = 0.2,
    other_step: Annotated[float, typer.Option(help="Milliseconds of a step of the other one.")] = 0.2,
) -> None:
    """How well a feature drafter guesses one to four tokens ahead, beside another drafter, along answers."""
    from lab.drafters.ceilings import Prices
    from lab.drafters.corpus import vocabulary_of
    from lab.drafters.features.feature_scores import score
    from lab.drafters.scoring import guesses_of

    prices = Prices(costs_of(rows), other_step)
    found = guesses_of(drafter, name, vocabulary_of(target), shards, 1_000_000)
    other = {one.answer.order: one for one in found}
    score(feature, shards, states, name, other, Path(drafter).name, prices, step, typer.echo)
