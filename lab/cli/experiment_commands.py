"""The commands that hold a claim against figures: experiment, and compare-peer, against transformers' own
assisted generation."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from omnidemo.cli.common import collect, names_in, read_settings, show
from omnidemo.cli.options import Drafter, DraftLength, MaxNewTokens, Out, Prompts, Quick, Target

NAMES = (
    "methods, losses, rank, draft-length, cache, topic-shift, target-shift, routing, one-for-all,"
    " training-cost; "
)
NAMES += "all: all of these but training-cost."


def compare_peer(
    prompts: Prompts,
    csv: Out,
    methods: Annotated[
        str, typer.Option(help="Ours, with commas between; autoregressive always runs.")
    ] = "auto",
    limit: Annotated[int | None, typer.Option(min=1, help="Use so many prompts of the file.")] = None,
    samples: Annotated[
        int,
        typer.Option(min=0, help="Test what is sampled by χ², with so many draws (2000, say); takes long."),
    ] = 0,
    max_new_tokens: MaxNewTokens = None,
    draft_length: DraftLength = None,
    seed: int = 0,
    target: Target = None,
    drafter: Drafter = None,
) -> None:
    """Measure our methods beside transformers' assisted generation: same ids, same law, and how fast."""
    settings = read_settings(
        target=target,
        drafter=drafter,
        max_new_tokens=max_new_tokens,
        draft_length=draft_length,
        training="off",
    )
    from lab.races import peer
    from omnidemo.serving.measuring.prompt_files import check_writable, read_prompts

    texts = read_prompts(prompts, limit)
    check_writable(csv)
    ours = names_in(methods)
    if samples:
        typer.echo(
            peer.price(samples, len(texts), len([name for name in ours if name != "autoregressive"])),
            err=True,
        )
    events = peer.compare_with_peer(settings, texts, ours, csv, samples, seed)
    note = "exact: greedy ids equal to transformers' generate, or χ²/degrees of freedom of sampled tokens."
    show(("method", *peer.HEADINGS), peer.summary(collect(events)), f"{note} Rows: {csv}")


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
    time: Annotated[bool, typer.Option(help="Time the final drafters; wants a quiet machine.")] = True,
    timed_prompts: Annotated[int, typer.Option(min=1, help="Held-out prompts that they are timed on.")] = 10,
    pause: Annotated[float, typer.Option(min=0.0, help="training-cost: seconds between two requests.")] = 2.0,
    quick: Quick = False,
    max_new_tokens: MaxNewTokens = None,
) -> None:
    """Repeat a claim of the papers: CSV, table and plot, from recorded answers of the target. Started again,
    it goes on where it was."""
    settings = read_settings(drafter=drafter, max_new_tokens=24 if quick else max_new_tokens, device="cpu")
    from lab.experiments import cost
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
        requests, limit, seeds, timed_prompts, pause = min(requests, 8), min(limit, 2), "0", 1, 0.0
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
            timed_prompts if time else 0,
        )  # fmt: skip
        collect(cost.run(world, order, pause) if each == "training-cost" else run(world, order), f"{each}: ")
        typer.echo((folder / f"{each}.md").read_text(encoding="utf-8"))
        typer.echo(f"Rows, plots and facts: {folder}", err=True)
