"""Training in the process that serves: inline, and on a GPU, where the steps run on a stream of their own beside the decoding."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch

from omnidemo.adapters.version_folders import AdapterState, OptimiserState
from omnidemo.distill.train_step import Batches, Learner, Plan, Update, agree, judge, learner_for, train
from omnidemo.records import Agreement, Replayed, Trace

if TYPE_CHECKING:
    from omnidemo.probes.probe import Prober, ProbeRequest


class InProcessWorker:
    """What `ProcessWorker` does, without a process. It cannot be paused: on a GPU there is nothing to hold up but kernels in flight."""

    def __init__(self, device: str = "cpu") -> None:
        self.device = torch.device(device)
        self._learners: dict[tuple[str, int], Learner] = {}
        self._stage: Prober | None = None
        self._lock = threading.Lock()  # a learner's parameters are scratch space
        self._side = torch.cuda.Stream(self.device) if self.device.type == "cuda" else None

    def train(
        self,
        folder: Path,
        adapter: AdapterState | None,
        optimiser: OptimiserState | None,
        batches: Batches,
        plan: Plan,
        head_batches: Batches = (),
    ) -> Update:
        """`training.train` on the drafter in `folder`."""
        with self._lock, self._beside():
            return train(self._learner(folder, adapter, plan), adapter, optimiser, batches, plan, head_batches)

    def judge(self, folder: Path, states: Sequence[AdapterState | None], traces: Sequence[Trace], plan: Plan) -> list[np.ndarray]:
        """`training.judge` on the drafter in `folder`."""
        with self._lock, self._beside():
            adapter = next((state for state in states if state is not None), None)
            return judge(self._learner(folder, adapter, plan), states, traces, plan.window)

    def agree(self, folder: Path, state: AdapterState | None, traces: Sequence[Trace], plan: Plan) -> list[Agreement]:
        """`training.agree` on the drafter in `folder`."""
        with self._lock, self._beside():
            return agree(self._learner(folder, state, plan), state, traces, plan.window)

    def replay(self, scene: ProbeRequest, adapter: AdapterState | None, prompts: Sequence[str]) -> list[Replayed]:
        """`Prober.replay` of `probing.py`, on the CPU."""
        from omnidemo.probes.probe import Prober

        with self._lock:
            self._stage = self._stage or Prober()
            return self._stage.replay(scene, adapter, prompts)

    def pause(self) -> None: ...

    def go_on(self) -> None: ...

    def close(self) -> None:
        """Free the model."""
        with self._lock:
            self._learners.clear()
            self._stage = None

    def _learner(self, folder: Path, adapter: AdapterState | None, plan: Plan) -> Learner:
        return learner_for(self._learners, folder, adapter, plan, str(self.device))

    @contextmanager
    def _beside(self) -> Iterator[None]:
        if self._side is None:
            yield
            return
        with torch.cuda.stream(self._side):
            yield
        self._side.synchronize()
