"""The commands compare and adapt; `adapt --task` is in `task_command.py`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from omnidemo.cli import task_command
from omnidemo.cli.common import SPREAD, collected, form_in, loaded, names_in, read_settings, show
from omnidemo.cli.options import (
    Drafter,
    DraftLength,
    KeptIn,
    MaxNewTokens,
    Method,
    Out,
    Schema,
    Target,
    Temperature,
)
from omnidemo.core.config import Settings
from omnidemo.core.config.answer_options import POLICIES


def compare(
    csv: Out,
    prompts: Annotated[Path, typer.Option(help='JSON Lines: {"prompt": "…"} on each line.')],
    methods: Annotated[
        str, typer.Option(help="Names with commas between; autoregressive, the baseline, always runs.")
    ] = "ngram-exact",
    limit: Annotated[int | None, typer.Option(min=1, help="Use so many: the first prompts.")] = None,
    temperature: Temperature = 0.0,
    own_manner: Annotated[
        bool, typer.Option("--own-manner", help="Sample as the target's card says, whatever the temperature.")
    ] = False,
    max_new_tokens: MaxNewTokens = None,
    draft_length: DraftLength = None,
    draft_policy: Annotated[str, typer.Option(help=", ".join(POLICIES) + ".")] = "fixed",
    copying: Annotated[
        bool, typer.Option("--copying/--no-copying", help="Whether drafts may be copied from the text, too.")
    ] = True,
    seed: int = 0,
    fill_cache: Annotated[
        bool, typer.Option(help="First fill the n-gram cache with all that the drafter can spell.")
    ] = False,
    target: Target = None,
    drafter: Drafter = None,
    storage: KeptIn = None,
) -> None:
    """Measure methods on the same prompts, interleaved: a row for each answer, and a line for each method.

    Nothing is learned meanwhile. Without --storage the n-gram cache starts empty, unless --fill-cache is
    given.
    """
    settings = read_settings(
        target=target, drafter=drafter, max_new_tokens=max_new_tokens, draft_length=draft_length,
        training="off",
    )  # fmt: skip
    from omnidemo.core.config import GREEDY, GenerationConfig
    from omnidemo.serving.measuring import compare_methods
    from omnidemo.serving.measuring.prompt_files import check_writable, read_prompts

    asked = read_prompts(prompts, limit)
    options: dict[str, Any] = {} if own_manner else GREEDY.options
    options |= {"max_new_tokens": settings.max_new_tokens, "draft_length": settings.draft_length}
    options |= {"draft_policy": draft_policy, "copying": copying}
    heat = None if own_manner else temperature
    GenerationConfig.of(**options | {"temperature": heat})
    options.pop("temperature", None)
    names = compare_methods.check_methods(names_in(methods))
    check_writable(csv)
    pair = loaded(settings, storage, compiled=True)
    if fill_cache or settings.warm_start:
        pair.fill_cache()
    measured = compare_methods.run(pair, asked, names, csv, [heat], seed=seed, **options)
    with collected(measured) as results:
        found = compare_methods.summarise(results)
        note = f"{SPREAD} Rows: {csv}"
        show(("method", *compare_methods.HEADINGS), [[one.method, *one.cells()] for one in found], note)


def adapt(
    prompts: Annotated[Path | None, typer.Option(help='JSON Lines: {"prompt": "…"} on each line.')] = None,
    csv: Annotated[
        Path | None, typer.Option(help="Where the figures go, row by row; needed with --prompts.")
    ] = None,
    task: task_command.Named = None,
    system: task_command.System = None,
    answers: task_command.Answers = 10,
    first: task_command.First = 1,
    order: task_command.Order = 0,
    requests: Annotated[
        int, typer.Option(min=1, help="Prompts to answer; the file starts again at its end.")
    ] = 200,
    update_interval: Annotated[int | None, typer.Option(help="Requests between two updates.")] = None,
    steps: Annotated[int | None, typer.Option(help="Optimiser steps of an update.")] = None,
    pause: Annotated[float, typer.Option(min=0.0, help="Seconds between two requests.")] = 0.0,
    held_out: Annotated[
        Path | None,
        typer.Option(help="Prompts to evaluate on; default: the file's last, which are kept back."),
    ] = None,
    eval_at: Annotated[
        str, typer.Option(help="Evaluate after so many requests, and at the end.")
    ] = "0,25,50,100,200",
    eval_limit: Annotated[int, typer.Option(min=1, help="Held-out prompts.")] = 20,
    draft_policy: Annotated[
        str | None,
        typer.Option(help=", ".join(POLICIES) + "; default fixed, with --task chance."),
    ] = None,
    schema: Schema = None,
    method: Method = None,
    temperature: Temperature = 0.0,
    max_new_tokens: MaxNewTokens = None,
    draft_length: DraftLength = None,
    seed: Annotated[int, typer.Option(help="Of what the answers draw above temperature 0.")] = 0,
    training_seed: Annotated[
        int | None, typer.Option(help="Of the trainer: which answers it draws, how an adapter starts.")
    ] = None,
    target: Target = None,
    drafter: Drafter = None,
    storage: KeptIn = None,
) -> None:
    """Answer prompts with training on, and measure on held-out prompts what that changes. With --task: answer
    one task again and again, and print what each answer would have taken with less learned.

    Without --storage everything learned is dropped at the end. With it, learning goes on from what is there.
    """
    settings = read_settings(
        target=target, drafter=drafter, method=method, max_new_tokens=max_new_tokens,
        draft_length=draft_length, update_interval=update_interval, steps_per_update=steps,
        storage=storage, draft_policy=draft_policy or ("chance" if task else "fixed"),
        training_seed=training_seed,
    )  # fmt: skip
    if (prompts is None) == (task is None):
        raise ValueError("give either --prompts, a JSON Lines file, or --task")
    if task is not None:
        asked: dict[str, Any] = {"temperature": temperature, "seed": seed} if temperature else {}
        asked |= form_in(schema)
        return task_command.run(settings, task, system, csv, answers, first, order, pause, storage, asked)
    if schema is not None:
        raise ValueError("--schema goes with --task")
    if csv is None or prompts is None:
        raise ValueError("give --csv, a file for the figures")
    held = (held_out, eval_limit, eval_at)
    _experiment(settings, prompts, csv, held, requests, temperature, seed, pause, storage)


def _experiment(
    settings: Settings, prompts: Path, csv: Path, held_out: tuple[Path | None, int, str], requests: int,
    temperature: float, seed: int, pause: float, storage: Path | None,
) -> None:  # fmt: skip
    """`adapt --prompts`. `held_out`: the file, the number of its prompts, and the checkpoints."""
    from omnidemo.serving.measuring import adapt
    from omnidemo.serving.measuring.compare_methods import HEADINGS, check_methods
    from omnidemo.serving.measuring.prompt_files import check_writable, hold_out, read_prompts

    check_methods([settings.method])
    path, limit, eval_at = held_out
    traffic, held = hold_out(read_prompts(prompts), read_prompts(path) if path else None, limit)
    checkpoints = adapt.plan_checkpoints(eval_at, requests)
    what = adapt.Experiment(traffic, held, requests, checkpoints, temperature, seed, pause)
    check_writable(csv)
    with collected(adapt.run(settings, what, csv, keep=storage is not None)) as points:
        note = (
            "Held-out prompts. Agreement: mean of Σ min(p, q) over all positions, same first choice."
            f" {SPREAD} Rows: {csv}"
        )
        show(("requests", "adapter", "steps", "agreement", *HEADINGS), [at.cells() for at in points], note)
