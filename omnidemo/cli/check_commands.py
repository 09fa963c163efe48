"""The command that holds a backend against the reference."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from omnidemo.cli.common import Drafter, DraftLength, Target, collect, read_settings


def check_backend(
    backend: Annotated[str | None, typer.Option(help="auto, cpu or cuda; default OMNIDEMO_BACKEND, else auto.")] = None,
    method: Annotated[list[str] | None, typer.Option(help="May be given several times; default: all that serve the pair.")] = None,
    temperature: Annotated[list[float] | None, typer.Option(help="May be given several times; default 0 and 1.")] = None,
    tokens: Annotated[int, typer.Option(min=1, help="Longest answer, in target tokens.")] = 48,
    prompts: Annotated[Path | None, typer.Option(help='JSON Lines: {"prompt": "…"} on each line; default: built-in ones.')] = None,
    draft_length: DraftLength = None,
    target: Target = None,
    drafter: Drafter = None,
) -> None:
    """Answer the same prompts with the same seeds on the reference and on a fast backend, and name the first token that differs.

    The reference is plain torch, one pass at a time. Exits with 1 if any answer differs.
    """
    settings = read_settings(target=target, drafter=drafter, backend=backend, draft_length=draft_length, training="off")
    from omnidemo.bench import mismatch
    from omnidemo.bench.prompt_files import read_prompts
    from omnidemo.config import GenerationConfig
    from omnidemo.methods import check_method

    temperatures = temperature or [0.0, 1.0]
    for one in temperatures:
        GenerationConfig.of(temperature=one, max_new_tokens=tokens)
    names = [check_method(name) for name in method or []]
    texts = read_prompts(prompts) if prompts else mismatch.PROMPTS
    reports: list[mismatch.Report] = []
    collect(mismatch.check(settings, names, temperatures, tokens, texts), reports)
    (report,) = reports
    for line in report.lines():
        typer.echo(line)
    if report.first is not None:
        raise typer.Exit(1)
