"""Rows of the laboratory's measurements: their files, their figures in cells, their tables in Markdown."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from omnidemo.serving.measuring.prompt_files import check_writable
from omnidemo.serving.measuring.report_tables import Spread, Stage

T = TypeVar("T")


def with_error(values: Iterable[float], form: str) -> str:
    """Mean ± standard error."""
    known = list(values)
    spread = Spread.of(known)
    if spread.deviation is None:
        return spread.text(form)
    return Spread(spread.mean, spread.deviation / math.sqrt(len(known))).text(form)


def make_writable(path: Path) -> None:
    """Make the folder of an output file; ValueError where the file cannot be written."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValueError(
            f"the folder of {path} cannot be made ({error.strerror}); name another file"
        ) from None
    check_writable(path)


def counted(rows: Iterable[T], stage: str, total: int | None = None) -> Iterator[T | Stage]:
    """Yield each row, and after it a `Stage`."""
    for done, row in enumerate(rows, 1):
        yield row
        yield Stage(stage, done, total)


@dataclass(frozen=True, slots=True)
class Percentiles:
    """Median, 10th and 90th percentile; None without a value."""

    median: float | None
    low: float | None = None
    high: float | None = None

    @classmethod
    def of(cls, values: Iterable[float | None]) -> Percentiles:
        known = [value for value in values if value is not None and math.isfinite(value)]
        return cls(*(float(value) for value in np.percentile(known, (50, 10, 90)))) if known else cls(None)

    def text(self, form: str = ".2f") -> str:
        if self.median is None:
            return "–"
        return f"{self.median:{form}}" + (
            "" if self.low == self.high else f" ({self.low:{form}}–{self.high:{form}})"
        )


def markdown_table(headings: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    cells = [headings, ["---"] * len(headings), *lines]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in cells)


def markdown_list(lines: Iterable[str]) -> str:
    return "\n".join(f"* {line}" for line in lines)


def report(title: str, note: str, about: Mapping[str, Any], sections: Iterable[str]) -> str:
    """A Markdown page: title, note, the command and the facts of the run (`about`; those that are None are
    left out), sections."""
    known = [
        f"{name}: {_plain(value)}" for name, value in about.items() if name != "command" and value is not None
    ]
    command = f"Command: `{about['command']}`" if about.get("command") else ""
    return (
        "\n\n".join(part for part in (f"# {title}", note, command, markdown_list(known), *sections) if part)
        + "\n"
    )


def _plain(value: Any) -> str:
    if isinstance(value, Mapping):
        return "; ".join(f"{name}: {_plain(one)}" for name, one in value.items())
    return ", ".join(map(_plain, value)) if isinstance(value, (list, tuple)) else str(value)
