"""The commands that measure: compare, compare-peer, adapt, experiment."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

import typer

from omnidemo.cli.common import SPREAD, collect, collected, command_line, loading, names_in, read_settings, show
from omnidemo.cli.options import Drafter, DraftLength, KeptIn, MaxNewTokens, Method, Out, Prompts, Quick, Target, Temperature

NAMES = "methods, losses, rank, draft-length, cache, topic-shift, target-shift, routing, one-for-all, training-cost; "
NAMES += "all: all of these but training-cost."


def compare(
    csv: Out,
    prompts: Annotated[Path | None, typer.Option(help='JSON Lines: {"prompt": "…"} on each line.')] = None,
    spec_bench: Annotated[Path | None, typer.Option(help="Or Spec-Bench's file: question_id, category, turns on each line.")] = None,
    methods: Annotated[str, typer.Option(help="Names with commas between; autoregressive, the baseline, always runs.")] = "ngram-exact",
    limit: Annotated[int | None, typer.Option(min=1, help="Use so many: the first prompts, or questions taken evenly.")] = None,
    temperature: Annotated[str, typer.Option(help="0 is greedy; several with commas between.")] = "0",
    runs: Annotated[int, typer.Option(min=1, help="Interleaved runs of each method on each prompt.")] = 1,
    own_manner: Annotated[bool, typer.Option("--own-manner", help="Sample as the target's card says, whatever the temperature.")] = False,
    max_new_tokens: MaxNewTokens = None,
    draft_length: DraftLength = None,
    draft_policy: Annotated[str, typer.Option(help="fixed, confidence, cost or head.")] = "fixed",
    copying: Annotated[bool, typer.Option("--copying/--no-copying", help="Whether drafts may be copied from the text, too.")] = True,
    seed: int = 0,
    no_seed: Annotated[
        bool, typer.Option("--no-seed", help="Above temperature 0 accept with min(1, p/q), as papers do: each method another text.")
    ] = False,
    fill_cache: Annotated[bool, typer.Option(help="First fill the n-gram cache with all that the drafter can spell.")] = False,
    report: Annotated[Path | None, typer.Option(help="Write the tables as Markdown, too.")] = None,
    target: Target = None,
    drafter: Drafter = None,
    storage: KeptIn = None,
) -> None:
    """Measure methods on the same prompts, interleaved, and print the tables that papers print.

    Nothing is learned meanwhile. Without --storage the n-gram cache starts empty, unless --fill-cache is given.
    """
    settings = read_settings(target=target, drafter=drafter, max_new_tokens=max_new_tokens, draft_length=draft_length, training="off")
    from omnidemo.api import load_pair
    from omnidemo.backends import compile_kernels
    from omnidemo.bench import arena, compare_methods
    from omnidemo.bench.prompt_files import check_writable, fitting, numbers, read_prompts, read_questions
    from omnidemo.bench.report_tables import markdown_table
    from omnidemo.bench.report_tables import report as page
    from omnidemo.config import GREEDY, GenerationConfig

    if (prompts is None) == (spec_bench is None):
        raise ValueError("give either --prompts or --spec-bench, a JSON Lines file")
    asked: list[Any] = read_questions(spec_bench, limit) if spec_bench else read_prompts(prompts or Path(), limit)
    temperatures = [None] if own_manner else numbers(temperature, "--temperature", float)
    options: dict[str, Any] = {} if own_manner else GREEDY.options
    options |= {"max_new_tokens": settings.max_new_tokens, "draft_length": settings.draft_length}
    options |= {"draft_policy": draft_policy, "copying": copying}
    for each in temperatures:
        GenerationConfig.of(**options | {"temperature": each})
    options.pop("temperature", None)
    names = compare_methods.check_methods(names_in(methods))
    for file in [csv, *([report] if report else [])]:
        check_writable(file)
    with loading() as progress:
        pair = load_pair(settings.target, settings.drafter, settings.device, settings.dtype, storage, settings, progress=progress)
    if pair.target.device.type == "cpu" and settings.backend != "reference":
        compile_kernels.wait()
    if fill_cache or settings.warm_start:
        pair.fill_cache()
    if spec_bench:
        asked, given = fitting(pair, asked), len(asked)
        if not asked:
            raise ValueError(f"no question of {spec_bench} fits the window of {pair.target.name}; choose another target")
        if len(asked) < given:
            typer.echo(f"{given - len(asked)} of {given} questions are left out, for they do not fit the window of the target.", err=True)
    measured = compare_methods.run(pair, asked, names, csv, temperatures, runs, seed=None if no_seed else seed, **options)
    with collected(measured) as results:
        found = list(arena.tables(results))
        for title, headings, lines in found:
            typer.echo(f"\n{title}")  # a title of the table would be broken at the table's width
            show(headings, lines)
        typer.echo(f"{arena.NOTE} Rows: {csv}", err=True)
        if report and found:
            about = {"command": command_line(), "target": pair.target.name, "drafter": pair.drafter.name, "asked": len(asked), "runs": runs}
            sections = [f"## {title}\n\n{markdown_table(headings, lines)}" for title, headings, lines in found]
            report.write_text(page("Methods side by side", arena.NOTE, about, sections), encoding="utf-8")


def compare_peer(
    prompts: Prompts,
    csv: Out,
    methods: Annotated[str, typer.Option(help="Ours, with commas between; autoregressive always runs.")] = "auto",
    limit: Annotated[int | None, typer.Option(min=1, help="Use so many prompts of the file.")] = None,
    samples: Annotated[int, typer.Option(min=0, help="Test what is sampled by χ², with so many draws (2000, say); takes long.")] = 0,
    max_new_tokens: MaxNewTokens = None,
    draft_length: DraftLength = None,
    seed: int = 0,
    target: Target = None,
    drafter: Drafter = None,
) -> None:
    """Measure our methods beside transformers' assisted generation: same ids, same law, and how fast."""
    settings = read_settings(target=target, drafter=drafter, max_new_tokens=max_new_tokens, draft_length=draft_length, training="off")
    from omnidemo.bench import peer
    from omnidemo.bench.prompt_files import check_writable, read_prompts

    texts = read_prompts(prompts, limit)
    check_writable(csv)
    ours = names_in(methods)
    if samples:
        typer.echo(peer.price(samples, len(texts), len([name for name in ours if name != "autoregressive"])), err=True)
    events = peer.compare_with_peer(settings, texts, ours, csv, samples, seed)
    note = "exact: greedy ids equal to transformers' generate, or χ²/degrees of freedom of sampled tokens."
    show(("method", *peer.HEADINGS), peer.summary(collect(events)), f"{note} Rows: {csv}")


def adapt(
    prompts: Prompts,
    csv: Out,
    requests: Annotated[int, typer.Option(min=1, help="Prompts to answer; the file starts again at its end.")] = 200,
    update_interval: Annotated[int | None, typer.Option(help="Requests between two updates.")] = None,
    steps: Annotated[int | None, typer.Option(help="Optimiser steps of an update.")] = None,
    pause: Annotated[float, typer.Option(min=0.0, help="Seconds between two requests.")] = 0.0,
    held_out: Annotated[Path | None, typer.Option(help="Prompts to evaluate on; default: the file's last, which are kept back.")] = None,
    eval_at: Annotated[str, typer.Option(help="Evaluate after so many requests, and at the end.")] = "0,25,50,100,200",
    eval_limit: Annotated[int, typer.Option(min=1, help="Held-out prompts.")] = 20,
    draft_policy: Annotated[str, typer.Option(help="fixed, confidence, cost or head; figures compare best with fixed.")] = "fixed",
    offline: Annotated[int, typer.Option(min=0, help="At the end train so many epochs on the same answers: the ceiling.")] = 0,
    method: Method = None,
    temperature: Temperature = 0.0,
    max_new_tokens: MaxNewTokens = None,
    draft_length: DraftLength = None,
    seed: int = 0,
    target: Target = None,
    drafter: Drafter = None,
    storage: KeptIn = None,
) -> None:
    """Answer prompts with training on, and measure on held-out prompts what that changes.

    Without --storage everything learned is dropped at the end; with it, learning goes on from what is there.
    """
    settings = read_settings(
        target=target, drafter=drafter, method=method, max_new_tokens=max_new_tokens, draft_length=draft_length,
        update_interval=update_interval, steps_per_update=steps, storage=storage, draft_policy=draft_policy,
    )  # fmt: skip
    from omnidemo.bench import adapt
    from omnidemo.bench.compare_methods import HEADINGS, check_methods
    from omnidemo.bench.prompt_files import check_writable, hold_out, read_prompts

    check_methods([settings.method])
    traffic, held = hold_out(read_prompts(prompts), read_prompts(held_out) if held_out else None, eval_limit)
    what = adapt.Experiment(traffic, held, requests, adapt.plan_checkpoints(eval_at, requests), temperature, seed, pause, offline)
    check_writable(csv)
    with collected(adapt.run(settings, what, csv, keep=storage is not None)) as points:
        note = f"Held-out prompts. Agreement: mean of Σ min(p, q) over all positions, same first choice. {SPREAD} Rows: {csv}"
        show(("requests", "adapter", "steps", "agreement", *HEADINGS), [at.cells() for at in points], note)


def experiment(
    name: Annotated[str, typer.Argument(help=NAMES)],
    target: Annotated[list[str] | None, typer.Option(help="Targets, in order; default bundled/a, b and c.")] = None,
    drafter: Drafter = None,
    domain: Annotated[list[str] | None, typer.Option(help="Bundled topics, in order; default maths, code and howto.")] = None,
    prompts: Annotated[list[Path] | None, typer.Option(help="JSON Lines instead, a topic each; the last ones are held out.")] = None,
    requests: Annotated[int, typer.Option(min=2, help="Requests from which the drafter learns.")] = 200,
    limit: Annotated[int, typer.Option(min=1, help="Held-out prompts of each topic.")] = 30,
    seeds: Annotated[str, typer.Option(help="Each orders the requests anew; with commas between.")] = "0,1,2",
    workers: Annotated[int | None, typer.Option(min=0, help="Processes of one thread each; 0: only this one. Default: one a core.")] = None,
    out: Annotated[Path | None, typer.Option(help="Folder of results; default storage/experiments/NAME.")] = None,
    records: Annotated[Path, typer.Option(help="Folder of the recorded answers, which all experiments share.")] = Path("storage/records"),
    time: Annotated[bool, typer.Option(help="Time the final drafters; wants a quiet machine.")] = True,
    timed_prompts: Annotated[int, typer.Option(min=1, help="Held-out prompts that they are timed on.")] = 10,
    pause: Annotated[float, typer.Option(min=0.0, help="training-cost: seconds between two requests.")] = 2.0,
    quick: Quick = False,
    max_new_tokens: MaxNewTokens = None,
) -> None:
    """Repeat a claim of the papers: CSV, table and plot, from recorded answers of the target. Started again, it goes on where it was."""
    settings = read_settings(drafter=drafter, max_new_tokens=24 if quick else max_new_tokens, device="cpu")
    settings = settings.model_copy(update={"head": "off"})  # the arms that study the head switch it on
    from omnidemo.bench import prompt_files
    from omnidemo.bench.experiments import cost
    from omnidemo.bench.experiments.arm import World
    from omnidemo.bench.experiments.plans import EXPERIMENTS
    from omnidemo.bench.experiments.run_experiment import TARGETS, TOPICS, ExperimentRequest, run
    from omnidemo.config import EMBEDDED_TARGET
    from omnidemo.models.names import drafter_of

    if quick:
        requests, limit, seeds, timed_prompts, pause = min(requests, 8), min(limit, 2), "0", 1, 0.0
    traffic, held = prompt_files.files(prompts, limit) if prompts else prompt_files.bundled(domain or TOPICS, limit)
    numbers, every = prompt_files.numbers(seeds, "--seeds"), list(EXPERIMENTS) if name == "all" else [name]
    for each in every:
        folder = (out / each if out and name == "all" else out) or settings.storage / "experiments" / each
        world = World(drafter_of(EMBEDDED_TARGET, settings), settings, traffic, held, records, folder)
        order = ExperimentRequest(
            each, target or TARGETS, list(traffic), requests, numbers, (os.cpu_count() or 1) if workers is None else workers,
            timed_prompts if time else 0,
        )  # fmt: skip
        collect(cost.run(world, order, pause) if each == "training-cost" else run(world, order), f"{each}: ")
        typer.echo((folder / f"{each}.md").read_text(encoding="utf-8"))
        typer.echo(f"Rows, plots and facts: {folder}", err=True)
