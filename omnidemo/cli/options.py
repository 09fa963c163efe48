"""Options that several commands have."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

import typer

from omnidemo.core.config import ARITHMETIC, DEFAULT, option_named, otherwise, shown_by

Command = TypeVar("Command", bound=Callable[..., Any])


def _option(name: str) -> Any:
    """The command line's form of an option of an answer."""
    said = otherwise(name)
    return typer.Option(help=f"{option_named(name).help}{f'; default {said}' if said else ''}.")


def _plain_type(kind: Any) -> Any:
    """The type of an option for Typer, without limits, which `GenerationConfig` checks."""
    if get_origin(kind) is Annotated:
        return _plain_type(get_args(kind)[0])
    if get_origin(kind) in (types.UnionType, Union):
        return _plain_type(next(part for part in get_args(kind) if part is not type(None)))
    if get_origin(kind) is Literal:
        return str
    return list[str] if get_origin(kind) is tuple else kind


def answer_options(command: Command) -> Command:
    """Replace a command's `**options` by every option of an answer that the command line shows, by default
    None."""
    signature = inspect.signature(command)
    hints = inspect.get_annotations(command, eval_str=True)
    kept = [
        part.replace(annotation=hints[name])
        for name, part in signature.parameters.items()
        if part.kind is not part.VAR_KEYWORD
    ]
    for name, field in shown_by("command").items():
        hints[name] = Annotated[_plain_type(field.annotation) | None, _option(name)]
        kept.append(
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=hints[name])
        )
    hints.pop("options")
    command.__signature__ = signature.replace(parameters=kept)  # type: ignore[attr-defined]
    command.__annotations__ = hints
    return command


def given(options: dict[str, Any]) -> dict[str, Any]:
    """The given options."""
    return {name: value for name, value in options.items() if value not in (None, [])}


Target = Annotated[
    str | None,
    typer.Option(
        help=f"Target: bundled name, Hub id, folder or GGUF file; default OMNIDEMO_TARGET, else {DEFAULT}."
    ),
]
Drafter = Annotated[
    str | None, typer.Option(help=f"Drafter, likewise; default OMNIDEMO_DRAFTER, else {DEFAULT}.")
]
ApiKey = Annotated[
    str | None,
    typer.Option(help="Key of a target http://… that `serve` has there; default OMNIDEMO_API_KEYS."),
]
Number = Annotated[
    str | None,
    typer.Option(
        "--arithmetic",
        help=f"Of packed weights on a CPU: int8 or float32; default OMNIDEMO_ARITHMETIC, else {ARITHMETIC}.",
    ),
]
Temperature = Annotated[float, typer.Option(help="0 is greedy.")]
Method = Annotated[str | None, _option("method")]
MaxNewTokens = Annotated[int | None, _option("max_new_tokens")]
DraftLength = Annotated[int | None, _option("draft_length")]
HELD = "Folder of n-gram cache, adapters and history"
Storage = Annotated[Path | None, typer.Option(help=f"{HELD}; default OMNIDEMO_STORAGE, else storage.")]
KeptIn = Annotated[Path | None, typer.Option("--storage", help=f"{HELD}; without it none is kept.")]
Schema = Annotated[
    Path | None, typer.Option(help="A file with a JSON schema, which each answer obeys on one line.")
]
Out = Annotated[Path, typer.Option("--csv", help="Where the figures go, row by row.")]
