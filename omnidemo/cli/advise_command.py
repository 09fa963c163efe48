"""The command that says which drafter suits a target, and measures it if asked."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from omnidemo.cli.common import DraftLength, progress, read_settings, show

if TYPE_CHECKING:
    from omnidemo.advisor.advice import Advice
    from omnidemo.advisor.trial import Trial
    from omnidemo.config import Settings


def advise(
    target: Annotated[str, typer.Argument(help="The target: bundled name, Hub id or folder, with or without weights.")],
    drafters: Annotated[list[str] | None, typer.Argument(help="Drafters to judge; default: the catalogue's smaller ones.")] = None,
    draft_length: DraftLength = None,
    try_it: Annotated[bool, typer.Option("--try", help="Load the best of them (this may download it) and measure.")] = False,
    topic: Annotated[str, typer.Option(help="With --try: maths, code, stories, howto, news, chat; mixed: all in turn.")] = "mixed",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Say which drafter suits a target, before any weights are downloaded: modelled speedups, overlap of the vocabularies, warnings."""
    settings = read_settings(draft_length=draft_length, training="off")
    from omnidemo.advisor import advice
    from omnidemo.advisor.overlap import prompts_of

    prompts_of(topic, 1)  # a wrong topic is told before anything is read
    found = advice.advise(target, drafters or (), settings)
    if not as_json:
        _print(found)
    tried = _try(found, settings, topic) if try_it else None
    if as_json:
        print(json.dumps({"advice": asdict(found), "trial": asdict(tried) if tried else None}, ensure_ascii=False, indent=2, default=str))
    elif tried:
        _print_trial(found.candidates[0].model.name, tried)


def _print(found: Advice) -> None:
    from omnidemo.advisor.advice import ACCEPTANCES

    target = found.target
    typer.echo(f"{target.name}: {target.parameters / 1e6:,.0f} M parameters ({target.source}), {found.bytes / 1e6:,.0f} MB here.")
    for warning in found.warnings:
        typer.echo(f"  ! {warning}")
    modelled = [f"α {acceptance}" for acceptance in ACCEPTANCES]
    lines = [
        [str(rank), one.model.name, f"{one.bytes / 1e6:,.0f} MB", f"{one.cost:.3f}", *(f"{times:.2f}×" for times in one.modelled),
         "never" if one.pays_from is None else f"α {one.pays_from:.2f}", one.overlap.words if one.overlap else "not known"]
        for rank, one in enumerate(found.candidates, 1)
    ]  # fmt: skip
    show(("", "drafter", "weights", "c", *modelled, "pays from", "tokens that fit"), lines)
    for rank, one in enumerate(found.candidates, 1):
        notes = [f"! {warning}" for warning in one.warnings] + [f"reported: {report}" for report in one.reported]
        typer.echo("\n".join([f"{rank} {one.model.name}", *(f"  {note}" for note in notes)] if notes else []), nl=bool(notes))
    typer.echo("\n".join(found.assumptions))
    if shown := {one.overlap.source for one in found.candidates if one.overlap}:
        typer.echo(f"Tokens that fit: {'; '.join(sorted(shown))}.")


def _try(found: Advice, settings: Settings, topic: str) -> Trial:
    from omnidemo.advisor import trial
    from omnidemo.advisor.overlap import prompts_of
    from omnidemo.api import load_pair
    from omnidemo.serving.comparison import Comparison, compare

    best = found.candidates[0]
    typer.echo(f"\nTrying {best.model.name} …", err=True)
    pair = load_pair(found.target.name, best.model.name, settings.device, settings.dtype, None, settings)
    with progress() as bar:
        task = bar.add_task("prompts", total=trial.PROMPTS)
        options = {"max_new_tokens": trial.TOKENS, "draft_length": settings.draft_length}
        measured = compare(pair, prompts_of(topic, trial.PROMPTS), trial.METHODS, **options)  # type: ignore[arg-type]
        results: list[Comparison] = []
        for results in trial.whole_prompts(measured):
            bar.update(task, completed=len(results) // len(trial.METHODS))
    return trial.summed_up(results, settings.draft_length, best.cost, topic)


def _print_trial(drafter: str, tried: Trial) -> None:
    def number(value: float | None, form: str = ".2f") -> str:
        return "–" if value is None else format(value, form)

    typer.echo(
        f"{drafter}: acceptance {number(tried.acceptance)}, {number(tried.per_round)} tokens a round, "
        f"{number(tried.plain, '.0f')} tokens/s plain and {number(tried.speculative, '.0f')} with it: {number(tried.speedup)}×, "
        f"where {number(tried.modelled)}× is modelled at this acceptance ({tried.source})."
    )
