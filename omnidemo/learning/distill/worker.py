"""The interface of training workers, their plan, and pauses while answers are written. Imports neither torch
nor numpy.

A worker is a `ProcessWorker` (a niced process, for a CPU), an `InProcessWorker` (for a GPU and for the mode
`inline`) or a `RayTrainer`. All lines of a pair share the worker of `TrainerPool`, except with `--ray` and in
the mode `inline` on a CPU, where each line has its own.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from omnidemo.core.config import Settings

if TYPE_CHECKING:
    import numpy as np

    from omnidemo.core.records import Agreement, Trace
    from omnidemo.learning.distill.losses import Divergence, NgramLoss
    from omnidemo.learning.distill.train_step import Batches, Trained
    from omnidemo.models.adapters.adapter_state import AdapterState, OptimiserState

WARM_UPDATES = 4  # over which the learning rate of a new line grows
POLL_SECONDS = 0.01  # longest time until an answer is noticed, while there is patience
# A worker beside answers runs and rests in turns: answers are 0.92 × as fast then, and 0.58 × beside one that
# only has a low priority (lab/notebook/learning-a-task.md).
TURN_SECONDS, REST_SECONDS = 0.1, 0.3
# learning rate and steps of the quickest pace: the defaults of the settings
QUICK = (Settings.model_fields["learning_rate"].default, Settings.model_fields["steps_per_update"].default)


class WorkerError(RuntimeError):
    """A request to a worker failed; the message is one sentence with the cause."""


@dataclass(frozen=True, slots=True)
class TrainingPlan:
    """How to train. `window`: most drafter tokens read per trace, within the drafter's context."""

    rank: int = 128  # 0: all parameters
    learning_rate: float = 5e-4
    steps: int = 12  # of an update
    warmup: int = 48  # first steps of a line, with a growing rate: the full rate overfits the first answers
    schedule: Literal["constant", "cosine"] = "constant"
    schedule_steps: int = 600  # over which "cosine" falls to a tenth, and stays there
    divergence: Divergence = "acceptance"
    jsd_beta: float = 0.5
    ngram_loss: NgramLoss = "nll"
    ngram_weight: float = 0.2
    errors_only: bool = False  # train only on positions without an accepted proposal
    head: Literal["off", "joint", "interleaved"] = "interleaved"
    head_rate: float = 3e-4  # a higher one learns the few answers of an update by heart
    head_steps: int = 8  # of "interleaved", per update
    rehearsal: float = 4.0  # weight in the loss of what the base drafter wrote (`rehearsal.py`)
    clip: float = 1.0
    memory: float = 0.995  # of the running average of the weights over steps, which is published
    window: int = 1024
    seed: int = 0

    def rate(self, step: int) -> float:
        """Learning rate of the step with this number (from 1)."""
        rate = self.learning_rate * min(1.0, step / max(1, self.warmup))
        if self.schedule == "cosine":
            rate *= 0.55 + 0.45 * math.cos(math.pi * min(1.0, step / self.schedule_steps))
        return rate


def paced(settings: Settings, pace: float) -> tuple[float, int]:
    """The learning rate and the steps of an update at a multiple of the settings, which is 1 at least: both
    grow, up to QUICK or to quicker settings."""
    rate, steps = settings.learning_rate, settings.steps_per_update
    return max(rate, min(rate * pace, QUICK[0])), max(steps, min(round(steps * pace), QUICK[1]))


def plan_of(settings: Settings, pace: float = 1.0) -> TrainingPlan:
    """The settings as a training plan at a pace. The acceptance head is trained where the draft policy uses
    it."""
    rate, steps = paced(settings, pace)
    return TrainingPlan(
        rank=settings.lora_rank,
        learning_rate=rate,
        steps=steps,
        warmup=WARM_UPDATES * settings.steps_per_update,
        schedule=settings.schedule,
        schedule_steps=settings.schedule_steps,
        divergence=settings.divergence,
        jsd_beta=settings.jsd_beta,
        ngram_loss=settings.ngram_loss,
        ngram_weight=settings.ngram_weight,
        errors_only=settings.buffer_positions == "errors",
        head=settings.head if settings.draft_policy == "head" else "off",
        seed=settings.training_seed,
    )


class Worker:
    """Trains and measures drafters. A worker keeps loaded models but no state of a line: each call carries
    all of it, and the drafter's local `folder`.

    Thread-safe; one call runs at a time. Methods raise WorkerError or the error of the step. A subclass runs
    a method by its name in `_call`, or overrides the methods.
    """

    can_pause = True  # whether a call stops where it is while the worker is paused
    shares_cores = True  # whether answers are computed on its cores

    def __init__(self) -> None:
        self.turn = threading.Lock()  # held for an update or a measurement; taken before any other lock

    @property
    def silent(self) -> float:
        """Seconds without a sign of life within a call, without pauses; 0 where the call runs in the
        caller."""
        return 0.0

    def train(
        self, folder: Path, adapter: AdapterState | None, optimiser: OptimiserState | None, batches: Batches,
        plan: TrainingPlan,
        head_batches: Batches = (),
    ) -> Trained:  # fmt: skip
        """`train_step.train`: the new adapter, optimiser state, and the steps."""
        return self._call("train", folder, adapter, optimiser, batches, plan, head_batches)

    def evaluate(
        self, folder: Path, states: Sequence[AdapterState | None], traces: Sequence[Trace], plan: TrainingPlan
    ) -> list[np.ndarray]:
        """`train_step.evaluate`: acceptance probabilities [positions] of each state."""
        return self._call("evaluate", folder, states, traces, plan)

    def agree(
        self, folder: Path, state: AdapterState | None, traces: Sequence[Trace], plan: TrainingPlan
    ) -> list[Agreement]:
        """`train_step.agree`: the agreement of drafter and target on each trace."""
        return self._call("agree", folder, state, traces, plan)

    def _call(self, name: str, *given: Any) -> Any:
        raise NotImplementedError

    def pause(self) -> None:
        """Stop until `resume`; only called where `can_pause`."""

    def resume(self) -> None:
        """Continue after `pause`."""

    def close(self) -> None:
        """Stop and free the models. A running call raises WorkerError where it can be stopped."""


class PauseController:
    """Holds one update back while `busy()` (an answer is being written): even niced, training would slow it.
    The update waits, for at most `patience` seconds in all, and then gets a quarter of the time beside a long
    answer, if `shares_cores`. Its state is "waiting" for that patience; "paused" means that somebody stopped
    updates on the page (`Distiller.pause`).

    First `wait()`, then `with controller:` around the worker's call, which does nothing for a worker that
    cannot pause. `paused_seconds`: how long the worker was stopped. `on_pause(True)` is called when it waits,
    `on_pause(False)` when it goes on. Turns call neither.
    """

    def __init__(
        self,
        worker: Worker,
        busy: Callable[[], bool],
        patience: float,
        on_pause: Callable[[bool], None] = lambda paused: None,
    ) -> None:
        self.worker, self.busy, self.on_pause = worker, busy, on_pause
        self.paused_seconds = 0.0
        self._left = patience
        self._done = threading.Event()
        self._thread: threading.Thread | None = None

    def wait(self, closing: threading.Event) -> None:
        """Return as soon as no answer is written, patience has ended, or `closing` is set."""
        began = time.monotonic()
        while not closing.is_set() and self.busy() and time.monotonic() - began < self._left:
            closing.wait(POLL_SECONDS)
        self._left -= time.monotonic() - began

    def __enter__(self) -> PauseController:
        if self.worker.can_pause:
            self._thread = threading.Thread(target=self._run, name="pause controller", daemon=True)
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        while not self._done.wait(POLL_SECONDS if self._left > 0 else TURN_SECONDS):
            if self.busy():
                if self._left > 0:
                    self._stop(self._left, self.on_pause)
                elif self.worker.shares_cores:
                    self._stop(REST_SECONDS)

    def _stop(self, longest: float, told: Callable[[bool], None] = lambda stands: None) -> None:
        """Stop the worker until the answer, the update or the time has ended."""
        began = time.monotonic()
        try:
            self.worker.pause()
            told(True)
            while not self._done.wait(POLL_SECONDS) and self.busy() and time.monotonic() - began < longest:
                pass
        finally:  # nobody else would resume the process
            self.worker.resume()
            seconds = time.monotonic() - began
            self._left, self.paused_seconds = self._left - seconds, self.paused_seconds + seconds
            told(False)
