"""Common parts of the commands: settings, one sentence for every failure, tables and progress bars."""

from __future__ import annotations

import difflib
import logging
import os
import shlex
import sys
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from threading import Event, Thread
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeVar, cast

import typer
from pydantic import ValidationError
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Column, Table
from typer.core import TyperGroup

from omnidemo.core.config import Settings, shortened

if TYPE_CHECKING:
    from omnidemo.core.records import Generation, Reading, Round
    from omnidemo.pair.pair import Pair
    from omnidemo.serving.measuring.report_tables import Stage

T = TypeVar("T")
SPREAD = (
    "Mean ± standard deviation over prompts; speedup: tokens/s against autoregressive on the same prompt."
)
LOG_SECONDS = 10.0  # between two lines of progress where that goes to a file
SHORT_SECONDS = 10.0  # of which no line says that they are left
LOOK_SECONDS = 1.0  # between two looks whether it is time for one
PREPARING = "getting ready: models are loaded, and passes compiled"
FAULTS = (RecursionError, NotImplementedError)  # errors that nobody raises with a sentence for people


class Commands(TyperGroup):
    """Commands whose failures are one sentence on stderr; `python -X dev -m …` shows the traceback
    instead."""

    program = "omnidemo"  # what stands after `python -m`

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            typer.echo("\nStopped.", err=True)
            raise typer.Exit(130) from None
        except (typer.Exit, typer.Abort, BrokenPipeError):
            raise
        except Exception as error:
            if sys.flags.dev_mode:
                raise
            usage = getattr(error, "format_message", None)  # a wrong option or argument
            known = usage or (
                isinstance(error, (ValueError, OSError, RuntimeError)) and not isinstance(error, FAULTS)
            )
            said = usage() if usage else sentence(error) if known else fault(error, self.program)
            typer.echo(f"Error: {said}", err=True)
            raise typer.Exit(2 if known and not isinstance(error, RuntimeError) else 1) from None


def read_settings(**given: Any) -> Settings:
    """The environment's settings, with the given ones over them (None: not given). ValueError, one sentence,
    for a wrong one."""
    check_environment()
    return Settings(**{name: value for name, value in given.items() if value is not None})


def check_folder(path: Path) -> None:
    """ValueError where a storage folder cannot be: a file is in its place."""
    there = next((part for part in (path, *path.parents) if part.exists()), None)
    if there is not None and not there.is_dir():
        raise ValueError(f"the storage {path} cannot be a folder, for {there} is a file; name another one")


def check_environment() -> None:
    """ValueError for an `OMNIDEMO_*` variable that is no setting: a misspelled one would go unnoticed."""
    known = [f"OMNIDEMO_{name.upper()}" for name in Settings.model_fields]
    for name in sorted(os.environ):
        if name.upper().startswith("OMNIDEMO_") and name.upper() not in known:
            close = difflib.get_close_matches(name.upper(), known, 1)
            raise ValueError(
                f"there is no setting {name}; "
                + (f"did you mean {close[0]}?" if close else "docs/settings.md has all")
            )


def sentence(error: Exception) -> str:
    """What an error says, on one line."""
    if isinstance(error, ValidationError):
        first = error.errors()[0]
        name = ".".join(map(str, first["loc"]))
        said, value = first["msg"].removeprefix("Value error, "), shortened(repr(first["input"]))
        return f"the setting {name} (OMNIDEMO_{name.upper()}) is {value}: {said}"
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror}: {shortened(str(error.filename))}" if error.filename else error.strerror
    return " ".join(str(error).split()) or type(error).__name__


def fault(error: Exception, program: str = "omnidemo") -> str:
    """An error that nobody foresaw, on one line."""
    what = f"{type(error).__name__}: {sentence(error)[:200]}"
    return f"this is a fault of OmniDemo, not yours ({what}); `python -X dev -m {program} …` shows where"


def names_in(text: str) -> list[str]:
    """The names of a list with commas between."""
    return [name.strip() for name in text.split(",") if name.strip()]


def command_line(program: str = "omnidemo") -> str:
    """The command that runs, as it stands in a report."""
    return shlex.join(["python", "-m", program, *sys.argv[1:]])


def show(
    headings: Sequence[str], lines: Sequence[Sequence[str]], note: str = "", title: str | None = None
) -> None:
    """A table on stdout, wide enough for every column where that is a file or a pipe; the note about it on
    stderr."""
    if lines:
        first, *others = (Column(heading, overflow="fold") for heading in headings)
        first.no_wrap = not sys.stdout.isatty()  # names are there to be copied
        table = Table(first, *others, box=None, title=title)
        for line in lines:
            table.add_row(*line)
        Console(width=None if sys.stdout.isatty() else 160).print(table)
        typer.echo(note, err=True, nl=bool(note))


@contextmanager
def collected(events: Iterable[T | Stage]) -> Iterator[list[T]]:
    """What `collect` returns. Where the measurement fails or is stopped: what there is by then, and the error
    is raised after the block."""
    rows: list[T] = []
    try:
        collect(events, rows=rows)
    finally:
        yield rows


def collect(events: Iterable[T | Stage], title: str = "", rows: list[T] | None = None) -> list[T]:
    """Show a bar for each stage of a measurement, or in a log a line now and then. Returns everything else
    that it yields, which is also put into `rows` as it comes. Bar and line say how long it will take."""
    from omnidemo.serving.measuring.report_tables import Stage

    rows = [] if rows is None else rows
    coming = iter(events)
    with telling(PREPARING, on=not sys.stderr.isatty()) as tell:
        first = list(islice(coming, 1))  # what is refused is one sentence, without a bar above it
        with progress(bars=sys.stderr.isatty()) as bar:
            tasks: dict[str, Any] = {}
            since: dict[str, tuple[float, int]] = {}  # when a stage was first heard of, and how far it was
            for event in chain(first, coming):
                if not isinstance(event, Stage):
                    rows.append(event)
                    continue
                begins = not tasks
                if event.name not in tasks:
                    tasks[event.name] = bar.add_task(f"{title}{event.name}", total=event.total)
                bar.update(tasks[event.name], completed=event.done, total=event.total)
                far = f"{event.done}" + (f" of {event.total}" if event.total is not None else "")
                far += left(event, monotonic(), *since.setdefault(event.name, (monotonic(), event.done)))
                tell(f"{title}{event.name}: {far}", begins or event.done == event.total)
    return rows


def left(stage: Stage, now: float, began: float, before: int) -> str:
    """How long a stage will still take, that was so far `before`, in words behind how far it is; empty where
    that is not known, or short."""
    if stage.total is None or stage.done <= before:
        return ""
    seconds = (now - began) / (stage.done - before) * (stage.total - stage.done)
    return "" if seconds < SHORT_SECONDS else f", about {duration(seconds)} left"


def duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"


@contextmanager
def telling(doing: str, on: bool = True) -> Iterator[Callable[..., None]]:
    """Within the block, print every `LOG_SECONDS` on stderr the text that the yielded function was given
    last, and at once where it was told `now`. A block shorter than that prints nothing else."""
    said, told, over, since = doing, monotonic(), Event(), monotonic()

    def tell(what: str, now: bool = False) -> None:
        nonlocal said, told, since
        again, said = said == what, what
        since = since if again else monotonic()
        if on and (now or monotonic() - told >= LOG_SECONDS):
            told = monotonic()
            waited = f" ({told - since:.0f} s so far)" if again and told - since >= 1 else ""
            typer.echo(f"{said}{waited}", err=True)

    def look() -> None:
        while not over.wait(LOOK_SECONDS):
            tell(said)

    watch = Thread(target=look, name="progress", daemon=True)
    watch.start()
    try:
        yield tell
    finally:
        over.set()
        watch.join()


def loaded(
    settings: Settings, storage: Path | None = None, target: str | None = None, drafter: str | None = None
) -> Pair:
    """`load_pair` for a command: where that takes long, lines on stderr say how far it is."""
    from omnidemo.api import load_pair

    with telling("loading the models") as tell:
        return load_pair(
            target, drafter, storage=storage, settings=settings,
            progress=lambda stage, fraction, detail: tell(f"loading, {fraction:.0%}: {detail}"),
        )  # fmt: skip


def log_to_stderr() -> None:
    """Show what the app tells its log, that a model is being loaded among it, as lines on stderr."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(message)s"))
    log = logging.getLogger("omnidemo")
    log.addHandler(handler)
    log.setLevel(logging.INFO)


def progress(bars: bool = True, stays: bool = True) -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    return Progress(*columns, console=Console(stderr=True), disable=not bars, transient=not stays)


def whole(parts: Generator[Reading | Round, None, Generation]) -> Generation:
    """The finished answer of `parts`. While a long prompt is read, a bar on stderr, where that is a terminal,
    says how far it is."""
    from omnidemo.core.records import Reading

    bar, began, task = progress(sys.stderr.isatty(), stays=False), monotonic(), None
    try:
        while True:
            part = next(parts)
            if not isinstance(part, Reading):
                continue
            began = monotonic() if not part.read else began
            if task is not None:
                bar.update(task, completed=part.read)
            elif part.read < part.total and part.is_long(monotonic() - began):
                task = bar.add_task("reading the prompt", total=part.total, completed=part.read)
                bar.start()
            if task is not None and part.read == part.total:
                bar.stop()  # before the text comes
    except StopIteration as end:
        return cast("Generation", end.value)
    finally:
        if task is not None:
            bar.stop()  # the terminal's cursor comes back


def run(app: typer.Typer, name: str) -> None:
    """Run a command line to its end."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # a terminal that lacks a character must not end an answer
    if not sys.warnoptions:
        warnings.simplefilter("ignore", FutureWarning)  # what libraries tell each other
    app(prog_name=name)
