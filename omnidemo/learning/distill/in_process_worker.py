"""Training in the calling process: in the mode `inline`, in the training process, and on a GPU, where steps
run on a separate CUDA stream."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path

import numpy as np
import torch

from omnidemo.core.records import Agreement, Trace
from omnidemo.learning.distill.learner import Learner, learner_for
from omnidemo.learning.distill.train_step import Batches, Trained, agree, evaluate, train
from omnidemo.learning.distill.worker import TrainingPlan, Worker
from omnidemo.models.adapters.adapter_state import AdapterState, OptimiserState


class InProcessWorker(Worker):
    """A `Worker` without a process of its own, so it cannot be paused within a step."""

    can_pause = False

    def __init__(self, device: str = "cpu") -> None:
        super().__init__()
        self.device = torch.device(device)
        self._learners: dict[tuple[str, int, int], Learner] = {}
        self._lock = threading.Lock()  # a learner's parameters are scratch space
        self._stream = torch.cuda.Stream(self.device) if self.device.type == "cuda" else None

    def train(
        self, folder: Path, adapter: AdapterState | None, optimiser: OptimiserState | None, batches: Batches,
        plan: TrainingPlan,
        head_batches: Batches = (),
    ) -> Trained:  # fmt: skip
        with self._learner(folder, adapter, plan) as learner:
            return train(learner, adapter, optimiser, batches, plan, head_batches)

    def evaluate(
        self, folder: Path, states: Sequence[AdapterState | None], traces: Sequence[Trace], plan: TrainingPlan
    ) -> list[np.ndarray]:
        with self._learner(
            folder, next((state for state in states if state is not None), None), plan
        ) as learner:
            return evaluate(learner, states, traces, plan.window)

    def agree(
        self, folder: Path, state: AdapterState | None, traces: Sequence[Trace], plan: TrainingPlan
    ) -> list[Agreement]:
        with self._learner(folder, state, plan) as learner:
            return agree(learner, state, traces, plan.window)

    def close(self) -> None:
        with self._lock:
            self._learners.clear()

    @contextmanager
    def _learner(self, folder: Path, adapter: AdapterState | None, plan: TrainingPlan) -> Iterator[Learner]:
        """The learner, locked for the block, on the worker's CUDA stream."""
        with self._lock, torch.cuda.stream(self._stream) if self._stream is not None else nullcontext():
            yield learner_for(self._learners, folder, adapter, plan, str(self.device))
        if self._stream is not None:
            self._stream.synchronize()
