"""The commands check-backend, space-check and advise."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from omnidemo.cli.common import collect, collected, loaded, read_settings, show
from omnidemo.cli.options import Drafter, DraftLength, Storage, Target

if TYPE_CHECKING:
    from omnidemo.core.config import Settings
    from omnidemo.serving.advisor.advice import Advice
    from omnidemo.serving.advisor.trial import Trial


def check_backend(
    backend: Annotated[
        str | None, typer.Option(help="auto, cpu or cuda; default OMNIDEMO_BACKEND, else auto.")
    ] = None,
    method: Annotated[
        list[str] | None, typer.Option(help="May be given several times; default: all that serve the pair.")
    ] = None,
    temperature: Annotated[
        list[float] | None, typer.Option(help="May be given several times; default 0 and 1.")
    ] = None,
    tokens: Annotated[int, typer.Option(min=1, help="Longest answer, in target tokens.")] = 48,
    prompts: Annotated[
        Path | None, typer.Option(help='JSON Lines: {"prompt": "…"} on each line; default: built-in ones.')
    ] = None,
    layers: Annotated[
        bool,
        typer.Option(
            "--layers",
            help="Compare the target's passes with transformers layer by layer, and name the first tensor"
            " that differs.",
        ),
    ] = False,
    draft_length: DraftLength = None,
    target: Target = None,
    drafter: Drafter = None,
) -> None:
    """Answer the same prompts with the same seeds on the reference and on a fast backend, and name the first
    token that differs.

    The reference is plain torch, one pass at a time, and both multiply in float32. For a packed target, rows
    of logits alone and among others are compared bit by bit in each arithmetic too. Exits with 1 if any
    answer or bit differs.
    """
    settings = read_settings(
        target=target, drafter=drafter, backend=backend, draft_length=draft_length, training="off",
        arithmetic="float32",
    )  # fmt: skip
    from omnidemo.core.config import GenerationConfig
    from omnidemo.decoding.methods import check_method
    from omnidemo.serving.measuring import mismatch
    from omnidemo.serving.measuring.layer_by_layer import check as check_layers
    from omnidemo.serving.measuring.prompt_files import read_prompts

    temperatures = temperature or [0.0, 1.0]
    for one in temperatures:
        GenerationConfig.of(temperature=one, max_new_tokens=tokens)
    names = [check_method(name) for name in method or []]
    texts = read_prompts(prompts) if prompts else mismatch.PROMPTS
    if layers:
        with collected(check_layers(settings, texts[0])) as compared:
            for form in compared:
                typer.echo("\n".join(form.lines()))
        if any(form.different for form in compared):
            raise typer.Exit(1)
        return
    with collected(mismatch.check(settings, names, temperatures, tokens, texts)) as reports:
        for report in reports[-1:]:
            typer.echo("\n".join(report.lines()))
    if not reports[-1].passed:
        raise typer.Exit(1)


def space_check(
    folder: Annotated[Path, typer.Argument(help="The checkout; default: this folder.")] = Path("."),
    storage: Storage = None,
) -> None:
    """List the faults that would stop this checkout from starting on a Space of the Hugging Face Hub.

    Checks files, requirements and variables (set them as on the Space) offline. Exits with 1 if there is a
    fault.
    """
    settings = read_settings(storage=storage)
    from omnidemo.serving.hosting.space_check import check

    report = check(folder.resolve(), settings, os.environ)
    for sentence in report.stops:
        typer.echo(f"stops: {sentence}.")
    for sentence in report.notes:
        typer.echo(f"note: {sentence}.")
    if report.stops:
        raise typer.Exit(1)
    typer.echo("Nothing here would stop it from starting on a Space.")


def advise(
    target: Annotated[
        str,
        typer.Argument(
            help="The target: bundled name, Hub id, GGUF file, or folder with or without weights."
        ),
    ],
    drafters: Annotated[
        list[str] | None, typer.Argument(help="Drafters to judge; default: the catalogue's smaller ones.")
    ] = None,
    draft_length: DraftLength = None,
    try_it: Annotated[
        bool, typer.Option("--try", help="Load the best of them (this may download it) and measure.")
    ] = False,
    topic: Annotated[
        str, typer.Option(help="With --try: maths, code, sql, summaries, letters, explain, howto or mixed.")
    ] = "mixed",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Rank drafters for a target before any weights are downloaded: modelled speedups, overlap of the
    vocabularies, warnings."""
    settings = read_settings(draft_length=draft_length, training="off")
    from omnidemo.serving.advisor import advice
    from omnidemo.serving.advisor.overlap import prompts_of

    prompts_of(topic, 1)  # refuses a wrong topic before any file is read
    found = advice.advise(target, drafters or (), settings)
    if not as_json:
        _print(found)
    tried = _try(found, settings, topic) if try_it else None
    if as_json:
        print(
            json.dumps(
                {"advice": asdict(found), "trial": asdict(tried) if tried else None},
                ensure_ascii=False,
                indent=2,
                default=str,
            )
        )
    elif tried:
        _print_trial(found.candidates[0].model.name, tried)


def _print(found: Advice) -> None:
    from omnidemo.serving.advisor.advice import ACCEPTANCES

    target = found.target
    typer.echo(
        f"{target.name}: {target.parameters / 1e6:,.0f} M parameters ({target.source}),"
        f" {found.bytes / 1e6:,.0f} MB here."
    )
    for warning in found.warnings:
        typer.echo(f"  ! {warning}")
    modelled = [f"α {acceptance}" for acceptance in ACCEPTANCES]
    lines = [
        [str(rank), one.model.name, f"{one.bytes / 1e6:,.0f} MB", f"{one.cost:.3f}",
            *(f"{times:.2f}×" for times in one.modelled),
         "never" if one.pays_from is None else f"α {one.pays_from:.2f}",
         one.overlap.words if one.overlap else "not known"]
        for rank, one in enumerate(found.candidates, 1)
    ]  # fmt: skip
    show(("", "drafter", "weights", "c", *modelled, "pays from", "tokens that fit"), lines)
    for rank, one in enumerate(found.candidates, 1):
        notes = [f"! {warning}" for warning in one.warnings] + [
            f"reported: {report}" for report in one.reported
        ]
        typer.echo(
            "\n".join([f"{rank} {one.model.name}", *(f"  {note}" for note in notes)] if notes else []),
            nl=bool(notes),
        )
    typer.echo("\n".join(found.assumptions))
    if shown := {one.overlap.source for one in found.candidates if one.overlap}:
        typer.echo(f"Tokens that fit: {'; '.join(sorted(shown))}.")


def _try(found: Advice, settings: Settings, topic: str) -> Trial:
    from omnidemo.core.config import GREEDY
    from omnidemo.serving.advisor import trial
    from omnidemo.serving.advisor.overlap import prompts_of
    from omnidemo.serving.comparison import compare
    from omnidemo.serving.measuring.report_tables import counted

    best = found.candidates[0]
    typer.echo(f"\nTrying {best.model.name} …", err=True)
    pair = loaded(settings, target=found.target.name, drafter=best.model.name, compiled=True)
    options = GREEDY.options | {"max_new_tokens": trial.TOKENS, "draft_length": settings.draft_length}
    options |= {"seconds": trial.SECONDS}
    prompts = prompts_of(topic, trial.PROMPTS)
    measured = compare(pair, prompts, trial.METHODS, **options)  # type: ignore[arg-type]
    results = collect(counted(measured, "answers", len(prompts) * len(trial.METHODS)))
    return trial.summed_up(results, settings.draft_length, best.cost, topic)


def _print_trial(drafter: str, tried: Trial) -> None:
    def number(value: float | None, form: str = ".2f") -> str:
        return "–" if value is None else format(value, form)

    typer.echo(
        f"{drafter}: {number(tried.acceptance, '.0%')} of judged guesses right, {number(tried.per_round)}"
        f" tokens a round, {number(tried.plain, '.0f')} tokens/s plain and {number(tried.speculative, '.0f')}"
        f" with it: {number(tried.speedup)}×, where {number(tried.modelled)}× is modelled at this share"
        f" ({tried.source})."
    )
