"""One update of a line: evaluate the published version on the newest answers, then learn from them if that pays."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Sequence

import numpy as np

from omnidemo.adapters.registry import AdapterRegistry
from omnidemo.config import Settings
from omnidemo.distill.evaluation import Evaluation
from omnidemo.distill.payback import PRICE, ChatCost
from omnidemo.distill.trace_buffer import TraceBuffer
from omnidemo.distill.worker import TrainingPlan, TrainRequest, Worker, plan_of

log = logging.getLogger(__name__)


class Update:
    """One update. The constructor takes the fresh answers and is called with `versions.lock` and `condition` held, `run` without them.
    Where somebody changes the line by hand meanwhile, its epoch grows, and the rest of the update is dropped."""

    def __init__(
        self,
        versions: AdapterRegistry,
        evaluation: Evaluation,
        buffer: TraceBuffer,
        settings: Settings,
        condition: threading.Condition,
        cost: ChatCost,
        closing: threading.Event,
    ) -> None:
        """`condition` guards `evaluation`."""
        self._versions, self._evaluation, self._settings = versions, evaluation, settings
        self._condition, self._cost, self._closing = condition, cost, closing
        self._epoch = versions.epoch
        self._held, self._requests = evaluation.take(), evaluation.requests
        self._batches = buffer.take(settings.steps_per_update, settings.batch_size)
        interleaved = settings.head == "interleaved"
        self._head_batches = buffer.draw(self._plan().head_steps, settings.batch_size) if interleaved else []

    def run(self, worker: Worker, paused_seconds: Callable[[], float]) -> None:
        """Raises whatever goes wrong; then the published version stays. `paused_seconds()`: how long the worker was paused so far."""
        if self._evaluate(worker) and self._wanted():
            self._learn(worker, paused_seconds)

    def _plan(self) -> TrainingPlan:
        """Made anew for each step: a rollback lowers the learning rate."""
        return plan_of(self._settings, slower=self._evaluation.slower)

    def _unchanged(self) -> bool:
        """Whether nobody changed the line since, with `versions.lock` held."""
        return self._epoch == self._versions.epoch and not self._closing.is_set()

    def _evaluate(self, worker: Worker) -> bool:
        """Measure the published version on answers that it has not learned from, beside the trusted one; whether the update goes on. An
        evaluation that fails changes nothing."""
        versions = self._versions
        with versions.lock:
            current, trusted = versions.current, versions.trusted
            states = self._evaluation.states(current.adapter, trusted.adapter)
        acceptance: list[np.ndarray] = []
        if self._held and current.version != trusted.version:
            try:
                acceptance = worker.evaluate(versions.folder, states, self._held, self._plan())
            except Exception as error:
                log.warning("Version %s could not be evaluated: %s", current.version, error)
        with versions.lock:
            if not self._unchanged():
                return False
            if acceptance:
                self._conclude(acceptance)
            self._epoch = versions.epoch
            return True

    def _conclude(self, acceptance: Sequence[np.ndarray]) -> None:
        """Promote the published version, roll it back, or wait for more answers."""
        versions = self._versions
        version, trusted = versions.current.version, versions.trusted.version
        with self._condition:
            verdict, effect = self._evaluation.conclude(acceptance, len(self._held), version, trusted)
        if verdict == "better":
            versions.promote()
        elif verdict == "worse":
            versions.roll_back()
            with self._condition:
                self._evaluation.note_rollback(version, versions.current.version, versions.current.adapter)
            effect["rolled_back"] = 1.0
        if effect:
            versions.effect(version, effect)

    def _wanted(self) -> bool:
        with self._condition:
            price = PRICE.get(self._settings.training, 1.0)
            return self._evaluation.wanted(self._settings.cost_aware, self._cost, price, self._versions.current.adapter)

    def _learn(self, worker: Worker, paused_seconds: Callable[[], float]) -> None:
        """Train, and keep the result as the next version."""
        with self._versions.lock:
            if not self._unchanged():
                return
            current = self._versions.current
        began, before = time.monotonic(), paused_seconds()
        folder = self._versions.folder
        request = TrainRequest(folder, current.adapter, current.optimiser, self._batches, self._plan(), self._head_batches)
        adapter, optimiser, steps = worker.train(request)
        seconds = max(0.0, time.monotonic() - began - (paused_seconds() - before))
        if not any(math.isfinite(step.loss) for step in steps):
            raise RuntimeError("No training step had a finite loss, so nothing was learnt.")
        with self._versions.lock:
            if not self._unchanged():
                return
            with self._condition:
                self._evaluation.seconds = seconds
            self._versions.add(adapter, optimiser, steps, self._requests, self._settings.adapters_kept)
            with self._condition:
                self._evaluation.kept(adapter)
