"""The progress of a measurement, its rows in a CSV file, its figures in cells."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from statistics import fmean, stdev
from typing import Any, TypeVar

from omnidemo.storage.csv_export import csv_cell

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Stage:
    """`done` of `total` (None: unknown) of a stage. A measurement yields these between its rows."""

    name: str
    done: int
    total: int | None


@contextmanager
def csv_table(path: Path, columns: type | Sequence[str]) -> Iterator[Callable[[Any], None]]:
    """Begin a CSV file (an older one is replaced) and yield the function that appends a row: a mapping, of
    which the columns are written, or a dataclass whose fields are the columns. Every row is on disk at once,
    so that an interrupted run keeps its rows."""
    names = [field.name for field in fields(columns)] if isinstance(columns, type) else list(columns)
    # utf-8-sig: its mark tells spreadsheets the encoding
    with path.open("w", encoding="utf-8-sig", errors="replace", newline="") as file:
        writer = csv.DictWriter(file, names, extrasaction="ignore")

        def append(row: Any) -> None:
            values: Mapping[str, Any] = row if isinstance(row, Mapping) else asdict(row)
            writer.writerow({name: csv_cell(value) for name, value in values.items()})
            file.flush()

        writer.writeheader()
        file.flush()
        yield append


def recorded(
    rows: Iterable[T | Stage],
    path: Path,
    columns: type | Sequence[str],
    stage: str,
    total: int,
    cells: Callable[[T], Any] = lambda row: row,
) -> Iterator[T | Stage]:
    """Yield each row when its `cells` are in a CSV file, and after it a `Stage`; stages of `rows` pass
    through."""
    count = 0
    with csv_table(path, columns) as append:
        for row in rows:
            if isinstance(row, Stage):
                yield row
                continue
            count += 1
            append(cells(row))
            yield row
            yield Stage(stage, count, total)


def group_by(rows: Iterable[T], key: Callable[[T], Any]) -> dict[Any, list[T]]:
    """Rows by key, in the order of the keys' first rows."""
    found: dict[Any, list[T]] = {}
    for row in rows:
        found.setdefault(key(row), []).append(row)
    return found


@dataclass(frozen=True, slots=True)
class Spread:
    """Mean and sample standard deviation; both None without a value, `deviation` also for a single one."""

    mean: float | None
    deviation: float | None

    @classmethod
    def of(cls, values: Iterable[float | None]) -> Spread:
        known = [value for value in values if value is not None and not math.isnan(value)]
        return cls(fmean(known) if known else None, stdev(known) if len(known) > 1 else None)

    def text(self, form: str = ".2f") -> str:
        if self.mean is None:
            return "–"
        return f"{self.mean:{form}}" + (
            "" if self.deviation is None else f" ± {self.deviation:{form.lstrip('+')}}"
        )

    def __str__(self) -> str:
        return self.text()
