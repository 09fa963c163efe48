"""The command check-backend."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from omnidemo.cli.common import collected, read_settings
from omnidemo.cli.options import Drafter, DraftLength, Target


def check_backend(
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
    draft_length: DraftLength = None,
    target: Target = None,
    drafter: Drafter = None,
) -> None:
    """Answer the same prompts with the same seeds on the reference and in compiled code, or over recorded
    passes, and name the first token that differs.

    The reference is plain torch, one pass at a time; both multiply in float32, with the same weights. After
    that rows of a packed target's logits, alone and among others, are compared bit by bit in int8. Exits with
    1 if any answer or bit differs.
    """
    settings = read_settings(target=target, drafter=drafter, draft_length=draft_length, training="off")
    from omnidemo.core.config import GenerationConfig
    from omnidemo.decoding.methods import check_method
    from omnidemo.serving.measuring import mismatch
    from omnidemo.serving.measuring.prompt_files import read_prompts

    temperatures = temperature or [0.0, 1.0]
    for one in temperatures:
        GenerationConfig.of(temperature=one, max_new_tokens=tokens)
    names = [check_method(name) for name in method or []]
    texts = read_prompts(prompts) if prompts else mismatch.PROMPTS
    with collected(mismatch.check(settings, names, temperatures, tokens, texts)) as reports:
        for report in reports[-1:]:
            typer.echo("\n".join(report.lines()))
    if not reports[-1].passed:
        raise typer.Exit(1)
