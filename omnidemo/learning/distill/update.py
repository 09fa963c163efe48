"""One update of a line: evaluate the published version on the newest answers, then train on them."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from omnidemo.learning.distill.evaluation import EARLIER, Verdict
from omnidemo.learning.distill.worker import PauseController, TrainingPlan, Worker, plan_of

if TYPE_CHECKING:
    from omnidemo.learning.distill.distiller import Distiller

log = logging.getLogger(__name__)


class Update:
    """One update. The constructor takes the line's fresh answers and is called with `versions.lock` and
    `condition` held, `run` without them. A change of the line by hand raises its epoch, and the rest of the
    update is dropped."""

    def __init__(self, line: Distiller) -> None:
        self._line, self._versions = line, line.versions
        self._evaluation, self._settings = line.evaluation, line.settings
        self._epoch = line.versions.epoch
        self._unseen, self._requests = line.evaluation.take(), line.evaluation.requests
        self._earlier = line.buffer.earlier(EARLIER)
        plan = self._plan()
        self._batches = line.buffer.take(plan.steps, self._settings.batch_size)
        self._head_batches = (
            line.buffer.draw(plan.head_steps, self._settings.batch_size) if plan.head == "interleaved" else []
        )

    def run(self, pauses: PauseController) -> None:
        """Run in the worker of `pauses`. On any error, which is raised, the published version stays."""
        if self._evaluate(pauses.worker):
            self._learn(pauses)

    def _plan(self) -> TrainingPlan:
        """The training plan; an evaluation may change its pace."""
        return plan_of(self._settings, self._evaluation.pace)

    def _unchanged(self) -> bool:
        """Whether the line is as it was. `versions.lock` is held."""
        return self._epoch == self._versions.epoch and not self._line.closing.is_set()

    def _evaluate(self, worker: Worker) -> bool:
        """Evaluate the published version beside the trusted one on answers that it has not learned from;
        whether the update goes on, which it does not where the version was rolled back. A failed evaluation
        changes nothing."""
        versions = self._versions
        with versions.lock:
            current, trusted = versions.current, versions.trusted
            states = [current.adapter, trusted.adapter]
        acceptance: list[np.ndarray] = []
        earlier: list[np.ndarray] = []
        if self._unseen and current.version != trusted.version:
            try:
                acceptance = worker.evaluate(versions.base, states, self._unseen, self._plan())
                if self._earlier:
                    earlier = worker.evaluate(versions.base, states, self._earlier, self._plan())
            except Exception as error:
                log.warning("Version %s could not be evaluated: %s", current.version, error)
        with versions.lock:
            if not self._unchanged():
                return False
            goes_on = not acceptance or self._conclude(acceptance, earlier) != "worse"
            self._epoch = versions.epoch
            return goes_on

    def _conclude(self, acceptance: Sequence[np.ndarray], earlier: Sequence[np.ndarray]) -> Verdict:
        """Promote the published version, roll it back, or leave it."""
        versions = self._versions
        version, trusted = versions.current.version, versions.trusted.version
        with self._line.condition:
            verdict, effect = self._evaluation.conclude(
                acceptance, len(self._unseen), version, trusted, earlier
            )
        if verdict == "better":
            versions.promote()
        elif verdict == "worse":
            versions.roll_back()
            with self._line.condition:
                self._evaluation.note_rollback(version, versions.current.version)
            effect["rolled_back"] = 1.0
        if effect:
            versions.note_effect(version, effect)
        return verdict

    def _learn(self, pauses: PauseController) -> None:
        """Train, and publish the result as the next version."""
        with self._versions.lock:
            if not self._unchanged():
                return
            current = self._versions.current
        began, before = time.monotonic(), pauses.paused_seconds
        adapter, optimiser, steps = pauses.worker.train(
            self._versions.base,
            current.adapter,
            current.optimiser,
            self._batches,
            self._plan(),
            self._head_batches,
        )
        seconds = max(0.0, time.monotonic() - began - (pauses.paused_seconds - before))
        if not any(math.isfinite(step.loss) for step in steps):
            raise RuntimeError("No training step had a finite loss, so nothing was learnt.")
        with self._versions.lock:
            if not self._unchanged():
                return
            with self._line.condition:
                self._evaluation.seconds = seconds
            self._versions.add(adapter, optimiser, steps, self._requests, self._settings.adapters_kept)
