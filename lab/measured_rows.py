"""Rows of the laboratory's measurements: their files, and the error of a mean."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path

from omnidemo.serving.measuring.prompt_files import check_writable
from omnidemo.serving.measuring.report_tables import Spread


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
