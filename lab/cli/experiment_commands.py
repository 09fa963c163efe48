"""The command `experiment`, which measures a claim of the papers."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from omnidemo.cli.common import collect, read_settings
from omnidemo.cli.options import Drafter, MaxNewTokens, Quick

NAMES = "methods, losses, rank, draft-length, cache, topic-shift, target-shift, routing, or all."


def experiment(
    name: Annotated[str, typer.Argument(help=NAMES)],
    target: Annotated[
        list[str] | None, typer.Option(help="Targets, in order; default bundled/large and drafter-3.")
    ] = None,
    drafter: Drafter = None,
    domain: Annotated[
        list[str] | None, typer.Option(help="Bundled topics, in order; default maths, code and howto.")
    ] = None,
    prompts: Annotated[
        list[Path] | None, typer.Option(help="JSON Lines instead, a topic each; the last ones are held out.")
    ] = None,
    requests: Annotated[int, typer.Option(min=2, help="Requests from which the drafter learns.")] = 200,
    limit: Annotated[int, typer.Option(min=1, help="Held-out prompts of each topic.")] = 30,
    seeds: Annotated[str, typer.Option(help="Each orders the requests anew; with commas between.")] = "0,1,2",
    workers: Annotated[
        int | None,
        typer.Option(min=0, help="Processes of one thread each; 0: only this one. Default: one a core."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder of results; default storage/experiments/NAME.")
    ] = None,
    records: Annotated[
        Path, typer.Option(help="Folder of the recorded answers, which all experiments share.")
    ] = Path("storage/records"),
    quick: Quick = False,
    max_new_tokens: MaxNewTokens = None,
) -> None:
    """Repeat a claim of the papers: CSV and table, from recorded answers of the target. Started again, it
    goes on where it was."""
    settings = read_settings(drafter=drafter, max_new_tokens=24 if quick else max_new_tokens, device="cpu")
    from lab.experiments.arm import World
    from lab.experiments.plans import EXPERIMENTS
    from lab.experiments.run_experiment import TARGETS, TOPICS, ExperimentRequest, run
    from omnidemo.core.config import EMBEDDED_TARGET
    from omnidemo.models.names import at_its_pace, drafter_of
    from omnidemo.serving.measuring import prompt_files

    chosen = drafter_of(EMBEDDED_TARGET, settings)
    # The arms that study the head switch it on. The papers' loss is the forward KL, and recorded answers keep
    # their labels.
    settings = at_its_pace(settings, chosen, (target or TARGETS)[0]).model_copy(
        update={"head": "off", "divergence": "forward"}
    )
    if quick:
        requests, limit, seeds = min(requests, 8), min(limit, 2), "0"
    traffic, held = (
        prompt_files.files(prompts, limit) if prompts else prompt_files.bundled(domain or TOPICS, limit)
    )
    numbers, every = prompt_files.numbers(seeds, "--seeds"), list(EXPERIMENTS) if name == "all" else [name]
    for each in every:
        folder = (out / each if out and name == "all" else out) or settings.storage / "experiments" / each
        world = World(chosen, settings, traffic, held, records, folder)
        order = ExperimentRequest(
            each, target or TARGETS, list(traffic), requests, numbers,
            (os.cpu_count() or 1) if workers is None else workers,
        )  # fmt: skip
        collect(run(world, order), f"{each}: ")
        typer.echo((folder / f"{each}.md").read_text(encoding="utf-8"))
        typer.echo(f"Rows and facts: {folder}", err=True)
