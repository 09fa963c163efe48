"""Common parts of the commands: settings, one-sentence errors, tables and progress bars."""

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
from rich.text import Text
from typer.core import TyperGroup

from omnidemo.core.config import Settings, of_kubernetes, shortened

if TYPE_CHECKING:
    from omnidemo.core.records import Generation, Reading, Round
    from omnidemo.pair.pair import Pair
    from omnidemo.serving.measuring.report_tables import Stage

log = logging.getLogger(__name__)
T = TypeVar("T")
SPREAD = (
    "Mean ± standard deviation over prompts; speedup: tokens/s against autoregressive on the same prompt."
)
LOG_SECONDS = 10.0  # between two lines of progress in a file
SHORT_SECONDS = 10.0  # a shorter rest is not told
LOOK_SECONDS = 1.0  # between two checks whether a line is due
PREPARING = "getting ready: models are loaded, and passes compiled"
FAULTS = (RecursionError, NotImplementedError)  # errors without a sentence for people


class Commands(TyperGroup):
    """Commands whose errors are one sentence on stderr; `python -X dev -m …` shows tracebacks instead."""

    program = "omnidemo"  # the name behind `python -m`

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
    """The environment's settings, replaced by given ones (None: not given). ValueError, one sentence, for a
    wrong one."""
    check_environment()
    return Settings(**{name: value for name, value in given.items() if value is not None})


def form_in(schema: Path | None) -> dict[str, str]:
    """The option of an answer that a file with a JSON schema stands for. ValueError, one sentence, where it
    cannot be read."""
    if schema is None:
        return {}
    try:
        return {"schema": schema.read_text(encoding="utf-8-sig")}
    except (OSError, UnicodeDecodeError) as error:
        why = "it is not UTF-8 text" if isinstance(error, UnicodeDecodeError) else error.strerror
        raise ValueError(f"{schema} cannot be read ({why}); give a file with a JSON schema") from None


def check_folder(path: Path) -> None:
    """ValueError where a file is in the place of a storage folder."""
    there = next((part for part in (path, *path.parents) if part.exists()), None)
    if there is not None and not there.is_dir():
        raise ValueError(f"the storage {path} cannot be a folder, for {there} is a file; name another one")


def check_environment() -> None:
    """ValueError for an `OMNIDEMO_*` variable that is no setting, such as a misspelled one. An empty one
    counts as not given; those that Kubernetes makes are passed over, with a line in the log."""
    ours = {
        name: value
        for name, value in sorted(os.environ.items())
        if name.upper().startswith("OMNIDEMO_") and value.strip()
    }
    known = [f"OMNIDEMO_{name.upper()}" for name in Settings.model_fields]
    foreign = [name for name, value in ours.items() if of_kubernetes(name, value)]
    if foreign:
        log.warning("passed over, because Kubernetes makes them for a Service: %s", ", ".join(foreign))
    for name in ours:
        if name.upper() not in known and name not in foreign:
            close = difflib.get_close_matches(name.upper(), known, 1)
            raise ValueError(
                f"there is no setting {name}; "
                + (f"did you mean {close[0]}?" if close else "docs/settings.md has all")
            )


def sentence(error: Exception) -> str:
    """The message of an error on one line."""
    if isinstance(error, ValidationError):
        first = error.errors()[0]
        name = ".".join(map(str, first["loc"]))
        said, value = first["msg"].removeprefix("Value error, "), shortened(repr(first["input"]))
        return f"the setting {name} (OMNIDEMO_{name.upper()}) is {value}: {said}"
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror}: {shortened(str(error.filename))}" if error.filename else error.strerror
    return " ".join(str(error).split()) or type(error).__name__


def fault(error: Exception, program: str = "omnidemo") -> str:
    """An unexpected error on one line."""
    what = f"{type(error).__name__}: {sentence(error)[:200]}"
    return f"this is a fault of OmniDemo, not yours ({what}); `python -X dev -m {program} …` shows where"


def names_in(text: str) -> list[str]:
    """The names of a comma-separated list."""
    return [name.strip() for name in text.split(",") if name.strip()]


def command_line(program: str = "omnidemo") -> str:
    """The running command, for a report."""
    return shlex.join(["python", "-m", program, *sys.argv[1:]])


def show(
    headings: Sequence[str], lines: Sequence[Sequence[str]], note: str = "", title: str | None = None
) -> None:
    """Print a table on stdout, wide enough for every column in a file or a pipe, and a note on stderr."""
    if lines:
        # Text, because names and categories of others may look like markup.
        first, *others = (Column(Text(heading), overflow="fold") for heading in headings)
        first.no_wrap = not sys.stdout.isatty()  # names must stay whole for copying
        table = Table(first, *others, box=None, title=title and Text(title, style="table.title"))
        for line in lines:
            table.add_row(*map(Text, line))
        Console(width=None if sys.stdout.isatty() else 160).print(table)
        typer.echo(note, err=True, nl=bool(note))


@contextmanager
def collected(events: Iterable[T | Stage]) -> Iterator[list[T]]:
    """As `collect`. Where the measurement fails or is stopped, the block gets the rows so far, and the error
    is raised after it."""
    rows: list[T] = []
    try:
        collect(events, rows=rows)
    finally:
        yield rows


def collect(events: Iterable[T | Stage], title: str = "", rows: list[T] | None = None) -> list[T]:
    """Show the stages of a measurement as bars, or in a file as lines, with the remaining time. Returns its
    rows, which are put into `rows` one by one."""
    from omnidemo.serving.measuring.report_tables import Stage

    rows = [] if rows is None else rows
    coming = iter(events)
    with telling(PREPARING, on=not sys.stderr.isatty()) as tell:
        first = list(islice(coming, 1))  # a refusal comes without a bar above it
        with progress(bars=sys.stderr.isatty()) as bar:
            tasks: dict[str, Any] = {}
            since: dict[str, tuple[float, int]] = {}  # stage → time and progress of its first event
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
    """The remaining time of a stage in words, from its progress `before` at the time `began`; "" where it is
    unknown or short."""
    if stage.total is None or stage.done <= before:
        return ""
    seconds = (now - began) / (stage.done - before) * (stage.total - stage.done)
    return "" if seconds < SHORT_SECONDS else f", about {duration(seconds)} left"


def duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"


@contextmanager
def telling(doing: str, on: bool = True) -> Iterator[Callable[..., None]]:
    """Within the block, print on stderr every LOG_SECONDS the last text that the yielded function got, and at
    once a text with `now`."""
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
    settings: Settings, storage: Path | None = None, target: str | None = None, drafter: str | None = None,
    compiled: bool = False,
) -> Pair:  # fmt: skip
    """`load_pair`, with lines of progress on stderr. compiled: wait until the kernels are compiled."""
    from omnidemo.api import load_pair
    from omnidemo.serving.pair_loading import wait_for_kernels

    with telling("loading the models") as tell:
        pair = load_pair(
            target, drafter, storage=storage, settings=settings,
            progress=lambda stage, fraction, detail: tell(f"loading, {fraction:.0%}: {detail}"),
        )  # fmt: skip
        if compiled:
            wait_for_kernels(pair, settings)
        return pair


def log_to_stderr() -> None:
    """Print the app's log, such as the progress of loading, on stderr."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(message)s"))
    log = logging.getLogger("omnidemo")
    log.addHandler(handler)
    log.setLevel(logging.INFO)


def progress(bars: bool = True, stays: bool = True) -> Progress:
    named = TextColumn("{task.description}", markup=False)
    columns = (named, BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    return Progress(*columns, console=Console(stderr=True), disable=not bars, transient=not stays)


def standard_input() -> str:
    """The text on stdin. ValueError, one sentence, where there is none."""
    try:
        text = sys.stdin.read()
        text.encode()  # some locales let other bytes through as half characters
    except UnicodeError:
        raise ValueError("the standard input is not UTF-8 text; give it a text") from None
    except OSError as error:
        raise ValueError(f"the standard input cannot be read ({error.strerror}); give it a text") from None
    if not text.strip():
        raise ValueError("the standard input is empty or closed; give it a text, or a prompt in place of -")
    return text


def whole(parts: Generator[Reading | Round, None, Generation]) -> Generation:
    """The finished answer of `parts`, with a bar on a terminal's stderr while a long prompt is read."""
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
                bar.stop()  # before the first text
    except StopIteration as end:
        return cast("Generation", end.value)
    finally:
        if task is not None:
            bar.stop()  # shows the terminal's cursor again


def run(app: typer.Typer, program: str) -> None:
    """Run a command line to its end."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:  # closed by the shell, as by `>&-`
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # for terminals that lack a character
    if not sys.warnoptions:
        warnings.simplefilter("ignore", FutureWarning)  # of libraries
    app(prog_name=program)
