"""A training process with `worker_process`'s own protocol, signs of life, priority and end, whose steps are
played: it loads no torch, so it starts in a tenth of a second."""

from __future__ import annotations

import subprocess
import sys
import time
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pytest

STEP = 0.001  # seconds of processor time
NOTHING: Any = None  # in place of what these steps do not read
ONE: Any = [[b"a trace"]]  # batches: a step
MANY: Any = [[b"0" * 100_000]] * 20_000  # more than a pipe holds, and than any test waits for
OURS = "omnidemo.learning.distill"


class PlayedSteps:
    """In place of `InProcessWorker`. A batch takes a step."""

    def train(self, folder: Any, adapter: Any, optimiser: Any, batches: Any, *_: Any) -> Any:
        for _ in batches:
            until = time.process_time() + STEP
            while time.process_time() < until:
                pass
        return None, SimpleNamespace(step=len(batches)), []


def main(nice: int, parent: int) -> None:
    """`worker_process.main`. What it imports from torch on is played."""
    error = type("WorkerError", (RuntimeError,), {"__module__": f"{OURS}.worker"})
    for name, content in {
        "torch": {"set_num_threads": lambda count: None},
        f"{OURS}.in_process_worker": {"InProcessWorker": PlayedSteps},
        f"{OURS}.worker": {"WorkerError": error},
    }.items():
        sys.modules[name] = ModuleType(name)
        vars(sys.modules[name]).update(content)
    from omnidemo.learning.distill import worker_process

    worker_process.main(nice, parent)


def use(patch: pytest.MonkeyPatch) -> None:
    """Have training processes that start from now on be such ones."""
    start: Any = subprocess.Popen

    def started(command: list[str], **options: Any) -> Any:
        return start([part.replace(f"{OURS}.worker_process", __name__) for part in command], **options)

    patch.setattr(subprocess, "Popen", started)
