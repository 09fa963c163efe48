"""One update of a line: judge what is published by the newest answers, then learn from them if that pays."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

import numpy as np

from omnidemo.adapters.registry import AdapterRegistry
from omnidemo.adapters.version_folders import AdapterState, OptimiserState
from omnidemo.config import Settings
from omnidemo.distill import train_step
from omnidemo.distill.adaptable import plan_of
from omnidemo.distill.evaluation import Evaluation
from omnidemo.distill.payback import PRICE, ChatCost
from omnidemo.distill.trace_buffer import TraceBuffer
from omnidemo.distill.train_step import Batches, Plan
from omnidemo.records import Trace

log = logging.getLogger(__name__)


class Worker(Protocol):
    """Where the work is done: the child process, or `InProcessWorker`."""

    def train(
        self, folder: Path, adapter: AdapterState | None, optimiser: OptimiserState | None, batches: Batches, plan: Plan, heads: Batches, /
    ) -> train_step.Update: ...

    def judge(self, folder: Path, states: Sequence[AdapterState | None], traces: Sequence[Trace], plan: Plan, /) -> list[np.ndarray]: ...


class Update:
    """Takes what is fresh when it is made, with `versions.lock` and `news` held; `run` works without them. What somebody changes by
    hand meanwhile stands: the line's epoch has grown then, and the rest of the update is dropped."""

    def __init__(
        self,
        versions: AdapterRegistry,
        worth: Evaluation,
        buffer: TraceBuffer,
        settings: Settings,
        news: threading.Condition,
        cost: ChatCost,
        closing: threading.Event,
    ) -> None:
        """`news` guards `worth`."""
        self._versions, self._worth, self._settings = versions, worth, settings
        self._news, self._cost, self._closing = news, cost, closing
        self._epoch = versions.epoch
        self._held, self._requests = worth.take(), worth.requests
        self._batches = buffer.take(settings.steps_per_update, settings.batch_size)
        interleaved = settings.head == "interleaved"
        self._heads = buffer.draw(self._plan().head_steps, settings.batch_size) if interleaved else []

    def run(self, worker: Worker, stood: Callable[[], float]) -> None:
        """Raises whatever goes wrong; then the published version stays. `stood()`: seconds in which the worker had to stand still."""
        if self._judge(worker) and self._wanted():
            self._learn(worker, stood)

    def _plan(self) -> Plan:
        """Made anew for each step: a version that is taken back slows the next one down."""
        return plan_of(self._settings, slower=self._worth.slower)

    def _stands(self) -> bool:
        """Whether nobody changed the line since, with `versions.lock` held."""
        return self._epoch == self._versions.epoch and not self._closing.is_set()

    def _judge(self, worker: Worker) -> bool:
        """Measure the published version on answers that it has not learned from, beside the trusted one; whether the update goes on. A
        judgement that fails changes nothing."""
        versions = self._versions
        with versions.lock:
            current, trusted = versions.current, versions.trusted
            states = self._worth.states(current.adapter, trusted.adapter)
        judged: list[np.ndarray] = []
        if self._held and current.version != trusted.version:
            try:
                judged = worker.judge(versions.folder, states, self._held, self._plan())
            except Exception as error:
                log.warning("Version %s could not be judged: %s", current.version, error)
        with versions.lock:
            if not self._stands():
                return False
            if judged:
                self._conclude(judged)
            self._epoch = versions.epoch
            return True

    def _conclude(self, judged: Sequence[np.ndarray]) -> None:
        """Trust the published version, take it back, or wait for more answers."""
        versions = self._versions
        version, trusted = versions.current.version, versions.trusted.version
        with self._news:
            verdict, effect = self._worth.conclude(judged, len(self._held), version, trusted)
        if verdict == "better":
            versions.trust()
        elif verdict == "worse":
            versions.roll_back()
            with self._news:
                self._worth.taken_back(version, versions.current.version, versions.current.adapter)
            effect["rolled_back"] = 1.0
        if effect:
            versions.effect(version, effect)

    def _wanted(self) -> bool:
        with self._news:
            price = PRICE.get(self._settings.training, 1.0)
            return self._worth.wanted(self._settings.cost_aware, self._cost, price, self._versions.current.adapter)

    def _learn(self, worker: Worker, stood: Callable[[], float]) -> None:
        """Train, and keep the result as the next version."""
        with self._versions.lock:
            if not self._stands():
                return
            current = self._versions.current
        began, before = time.monotonic(), stood()
        adapter, optimiser, steps = worker.train(
            self._versions.folder, current.adapter, current.optimiser, self._batches, self._plan(), self._heads
        )
        seconds = max(0.0, time.monotonic() - began - (stood() - before))
        if not any(math.isfinite(step.loss) for step in steps):
            raise RuntimeError("No training step had a finite loss, so nothing was learnt.")
        with self._versions.lock:
            if not self._stands():
                return
            with self._news:
                self._worth.seconds = seconds
            self._versions.keep(adapter, optimiser, steps, self._requests, self._settings.adapters_kept)
            with self._news:
                self._worth.kept(adapter)
