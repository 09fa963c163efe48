"""Long runs that make room for whoever measures."""

from __future__ import annotations

import time
from pathlib import Path

LOOK_S = 2.0  # between two looks


def hold(file: Path | None, look: float = LOOK_S) -> float:
    """Wait as long as there is such a file; for how many seconds."""
    if file is None or not file.exists():
        return 0.0
    began = time.monotonic()
    while file.exists():
        time.sleep(look)
    return time.monotonic() - began
