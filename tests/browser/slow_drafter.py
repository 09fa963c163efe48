"""The app with a drafter that takes 100 ms longer for every draft, so that guessing loses on any machine, a busy one too."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))
    from omnidemo.__main__ import app
    from omnidemo.decoding import engine

    class Slow(engine.Hand):  # made between the two clocks of a draft
        def __init__(self, *values: Any, **named: Any) -> None:
            time.sleep(0.1)
            super().__init__(*values, **named)

    engine.Hand = Slow  # type: ignore[misc]
    app(["serve"], prog_name="slow_drafter.py")
