"""An adapter line without clock, thread or files: the distiller's updates, for experiments that must not
depend on speed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from torch import Tensor

from omnidemo.core.config import Settings
from omnidemo.core.records import Trace
from omnidemo.learning.distill.learner import Learner, learner_for
from omnidemo.learning.distill.trace_buffer import TraceBuffer, usable
from omnidemo.learning.distill.train_step import Batches, train
from omnidemo.learning.distill.worker import plan_of
from omnidemo.models.adapters.adapter_state import AdapterState, BaseWeights, OptimiserState, merged_weights

Learners = dict[tuple[str, int, int], Learner]


class Line:
    """Traces in, weights out: one update every `update_interval` answers, with the distiller's buffer, plan
    and step."""

    def __init__(
        self, folder: Path, settings: Settings, learners: Learners, only_ngrams: bool = False
    ) -> None:
        """All lines of a process may share `learners`, because training is a pure function."""
        self.folder, self.settings, self.only_ngrams = folder, settings, only_ngrams
        self.plan = plan_of(settings)
        self.buffer = TraceBuffer(settings.buffer_mb << 20, self.plan.seed, settings.buffer_order)
        self.adapter: AdapterState | None = None
        self.optimiser: OptimiserState | None = None
        self.version, self.seconds, self.loss = 0, 0.0, math.nan
        self._learners = learners
        self._base = BaseWeights(folder)

    @property
    def steps(self) -> int:
        return self.optimiser.step if self.optimiser else 0

    def observe(self, trace: Trace) -> None:
        """Take the trace of an answer, and run a due update."""
        trace = without_direct(trace) if self.only_ngrams else trace
        if usable(trace):
            self.buffer.add(trace)
        if self.buffer.fresh >= self.settings.update_interval:
            self.update(self.buffer.take(self.settings.steps_per_update, self.settings.batch_size))

    def update(self, batches: Batches) -> None:
        """One optimiser step per batch. RuntimeError where no step had a finite loss."""
        heads: Batches = ()
        if self.plan.head == "interleaved":
            heads = self.buffer.draw(self.plan.head_steps, self.settings.batch_size)
        self.adapter, self.optimiser, steps = train(
            self.learner(), self.adapter, self.optimiser, batches, self.plan, heads
        )
        losses = [step.loss for step in steps if math.isfinite(step.loss)]
        if not losses:
            raise RuntimeError("no training step had a finite loss; lower the learning rate")
        self.version, self.loss = self.version + 1, sum(losses) / len(losses)
        self.seconds += sum(step.seconds for step in steps)

    def epochs(self, traces: Sequence[Trace], count: int) -> Iterator[int]:
        """Train `count` epochs over all traces, each in a new order; yields the number of each finished
        epoch."""
        order, size = np.random.default_rng(self.plan.seed), self.settings.batch_size
        for trace in traces:  # from which an interleaved head draws
            self.buffer.add(trace)
        for epoch in range(1, count + 1):
            shuffled = [traces[index] for index in order.permutation(len(traces))]
            self.update([shuffled[start : start + size] for start in range(0, len(shuffled), size)])
            yield epoch

    def learner(self) -> Learner:
        """The model that trains; its weights are those of its last use."""
        return learner_for(self._learners, self.folder, self.adapter, self.plan)

    def weights(self) -> dict[str, Tensor]:
        """The changed matrices under the base model's names; {} before the first update."""
        return dict(merged_weights(self._base, self.adapter)) if self.adapter else {}

    def head(self) -> Mapping[str, Tensor]:
        return self.adapter.head if self.adapter else {}


def without_direct(trace: Trace) -> Trace:
    """The trace with its n-gram positions alone."""
    return replace(trace, lengths=trace.lengths * (trace.lengths > 1))
