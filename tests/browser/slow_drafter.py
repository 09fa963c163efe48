"""The app with a drafter that takes 50 ms longer for every draft, so that guessing loses on any machine, a busy one too."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))
    from omnidemo.__main__ import app
    from omnidemo.decoding import engine
    from omnidemo.decoding.backend import RoundPlan

    plan = engine._plan

    def slow(*given: Any) -> RoundPlan:  # whose time counts as the draft's
        made = plan(*given)
        time.sleep(0.05 if made.draft_length else 0.0)
        return made

    engine._plan = slow
    app(["serve"], prog_name="slow_drafter.py")
