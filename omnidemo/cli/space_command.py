"""The command that says what would stop this checkout on a Space."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from omnidemo.cli.common import Storage, read_settings


def space_check(
    folder: Annotated[Path, typer.Argument(help="The checkout; default: this folder.")] = Path("."),
    storage: Storage = None,
) -> None:
    """Say what would stop this checkout from starting on a Space of the Hugging Face Hub.

    Looks at files, requirements and variables (set them as the Space has them); asks the Hub nothing. Exits with 1 if something would.
    """
    settings = read_settings(storage=storage)
    from omnidemo.hosting.space_check import check

    report = check(folder.resolve(), settings, os.environ)
    for sentence in report.stops:
        typer.echo(f"stops: {sentence}.")
    for sentence in report.notes:
        typer.echo(f"note: {sentence}.")
    if report.stops:
        raise typer.Exit(1)
    typer.echo("Nothing here would stop it from starting on a Space.")
