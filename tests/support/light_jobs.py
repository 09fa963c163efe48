"""Jobs for processes of their own that need nothing but Python, so that such a process starts in a tenth of a
second."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def prepare(made: Any) -> None:
    """Nothing to prepare."""


def sleep(pid: Path) -> Iterator[None]:
    """Note which process this is, and go on for a minute."""
    partial = pid.with_suffix(".part")
    partial.write_text(str(os.getpid()))
    partial.replace(pid)
    time.sleep(60)
    yield


def fail(pid: Path) -> Iterator[None]:
    """Fail as soon as the other one sleeps."""
    until = time.monotonic() + 60
    while not pid.exists() and time.monotonic() < until:
        time.sleep(0.02)
    yield from ()
    raise ValueError("the cheese\nof moon is off")
