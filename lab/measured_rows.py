"""Rows of the laboratory's measurements: their files, and their percentiles in cells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from omnidemo.serving.measuring.prompt_files import check_writable
from omnidemo.serving.measuring.report_tables import Percentiles

Columns = Mapping[str, tuple[str, str]]  # heading → (a column of the rows, format)
PARTS: Columns = {  # of a round
    "round ms": ("round_ms", ".2f"),
    "draft": ("draft_ms", ".2f"),
    "verify": ("verify_ms", ".2f"),
    "translate, accept": ("settle_ms", ".2f"),
    "host": ("other_ms", ".2f"),
    "bare passes": ("bare_ms", ".2f"),
}


def percentile_cells(rows: Sequence[Any], columns: Columns) -> list[str]:
    """A line of a table: the `Percentiles` of each column."""
    known = [row if isinstance(row, Mapping) else asdict(row) for row in rows]
    return [Percentiles.of(row[name] for row in known).text(form) for name, form in columns.values()]


def make_writable(path: Path) -> None:
    """Make the folder of an output file; ValueError where the file cannot be written."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValueError(
            f"the folder of {path} cannot be made ({error.strerror}); name another file"
        ) from None
    check_writable(path)
