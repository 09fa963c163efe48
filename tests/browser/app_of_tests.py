"""`python app.py` for tests: drafts take 50 ms longer while the storage folder has a file `slow`, so that
guessing loses on any machine, a busy one too, and prompts are read by 16 tokens, 0.3 s each, while it has a
file `slow reading`; training is not niced, because beside workers that use all cores it would hardly run; and
topics that nobody asked about are not measured, which takes as long as all that tests look at."""

from __future__ import annotations

import os
import runpy
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]

if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    from omnidemo.decoding import engine
    from omnidemo.decoding.backend import RoundPlan
    from omnidemo.decoding.state import CHUNK, TargetContext
    from omnidemo.learning.distill import process_worker
    from omnidemo.learning.lines import measurer

    storage = Path(os.environ["OMNIDEMO_STORAGE"])
    plan, slow = engine._plan, storage / "slow"
    begin, read, slow_reading = TargetContext.begin, TargetContext.read_chunk, storage / "slow reading"

    def planned(*given: Any) -> RoundPlan:  # whose time counts as the draft's
        made = plan(*given)
        time.sleep(0.05 if (made.draft_length or made.copied) and slow.exists() else 0.0)
        return made

    def begun(self: TargetContext, prompt: Sequence[int]) -> int:
        self.chunk = 16 if slow_reading.exists() else CHUNK
        return begin(self, prompt)

    def reading(self: TargetContext) -> bool:
        time.sleep(0.3 if self.chunk < CHUNK else 0.0)
        return read(self)

    engine._plan = planned
    TargetContext.begin, TargetContext.read_chunk = begun, reading
    process_worker.NICE = 0
    measurer.QUIET_SECONDS = 1e9
    runpy.run_path(str(ROOT / "app.py"), run_name="__main__")
