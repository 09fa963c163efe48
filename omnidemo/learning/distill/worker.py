"""What a worker is, the plan by which it trains, and pauses while somebody is answered.

Neither torch nor numpy is imported here. `ProcessWorker` (a niced process, for a CPU) and `InProcessWorker`
(for a GPU and for inline mode) are a `Worker`. `learning/lines/trainer_pool.py` makes the one that all lines
of a pair share, unless it is given `trainers`, as with `--ray`; in inline mode `distiller.py` makes one for
each line (on a GPU it takes that of the pool).
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal

from omnidemo.core.config import Settings
from omnidemo.core.config.controls import CONTROLS

if TYPE_CHECKING:
    import numpy as np

    from omnidemo.core.records import Agreement, Replayed, Trace, TrainStep
    from omnidemo.learning.distill.losses import Divergence, NgramLoss
    from omnidemo.learning.probes.probe import ProbeRequest
    from omnidemo.models.adapters.adapter_state import AdapterState, OptimiserState

    Batches = Sequence[Sequence[Trace]]
    Trained = tuple[AdapterState, OptimiserState, list[TrainStep]]

# Settings by which a line learns that may change while the app runs.
ADAPTABLE = [name for name, control in CONTROLS.items() if control.learns]
WARM_UPDATES = 4  # over which the learning rate of a new line grows
POLL_SECONDS = 0.01  # most time until an answer is noticed
# learning rate and steps of the quickest pace: what a line begins with where nothing says otherwise
QUICK = (Settings.model_fields["learning_rate"].default, Settings.model_fields["steps_per_update"].default)


class WorkerError(RuntimeError):
    """A worker could not do what was requested; the message is one sentence with the cause."""


@dataclass(frozen=True, slots=True)
class TrainingPlan:
    """How to train. `window`: most drafter tokens read per trace (less where the drafter's own context is
    shorter)."""

    rank: int = 128  # 0: all parameters
    learning_rate: float = 5e-4
    steps: int = 12  # of an update
    # steps at the start of a line with a growing rate (four updates): a full rate overfits the first few
    # answers
    warmup: int = 48
    schedule: Literal["constant", "cosine"] = "constant"
    schedule_steps: int = 600  # over which "cosine" falls to a tenth, and stays there
    divergence: Divergence = "forward"
    jsd_beta: float = 0.5
    ngram_loss: NgramLoss = "nll"
    ngram_weight: float = 0.2
    errors_only: bool = False  # learn only where the drafter was wrong
    head: Literal["off", "joint", "interleaved"] = "interleaved"
    head_rate: float = 3e-4  # a higher one learns the few answers of an update by heart
    head_steps: int = 8  # of "interleaved", per update
    clip: float = 1.0
    memory: float = 0.995  # of the running average of the weights over steps, which is what is published
    window: int = 1024
    seed: int = 0

    def rate(self, step: int) -> float:
        """Learning rate of the step with this number (from 1)."""
        rate = self.learning_rate * min(1.0, step / max(1, self.warmup))
        if self.schedule == "cosine":
            rate *= 0.55 + 0.45 * math.cos(math.pi * min(1.0, step / self.schedule_steps))
        return rate


def paced(settings: Settings, pace: float) -> tuple[float, int]:
    """The learning rate and the steps of an update at this multiple of the settings. Above 1 both grow, up to
    QUICK or to the settings where those are quicker; below 1 the rate falls alone."""
    rate, steps = settings.learning_rate, settings.steps_per_update
    if pace <= 1:
        return rate * pace, steps
    return max(rate, min(rate * pace, QUICK[0])), max(steps, min(round(steps * pace), QUICK[1]))


def plan_of(settings: Settings, pace: float = 1.0) -> TrainingPlan:
    """The settings as a training plan at a pace. The acceptance head learns where it decides how far to
    draft."""
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
    all that it needs, and the local `folder` of the drafter first.

    Any thread may call; one call runs at a time. Raises WorkerError or whatever the step itself raises. A
    subclass runs a method by name in `_call`, or overrides the methods.
    """

    can_pause = True  # whether a call stops where it is while the worker is paused

    def __init__(self) -> None:
        # held for an update or a measurement that may be paused; taken before any other lock
        self.turn = threading.Lock()

    @property
    def silent(self) -> float:
        """Seconds without a sign of life during a call that is not paused; 0 where nothing can hang apart
        from the caller."""
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

    def replay(
        self, request: ProbeRequest, adapter: AdapterState | None, prompts: Sequence[str]
    ) -> list[Replayed]:
        """`Prober.replay`: recorded answers, drafted with an adapter."""
        return self._call("replay", request, adapter, prompts)

    def _call(self, name: str, *given: Any) -> Any:
        raise NotImplementedError

    def pause(self) -> None:
        """Stop until `resume`; not called where `can_pause` is False."""

    def resume(self) -> None:
        """Go on."""

    def close(self) -> None:
        """Stop and free the models. A call in flight raises WorkerError where it can be stopped."""


class PauseController:
    """Training gives way to chats: delays one update while `busy()` is true (an answer is being written), by
    at most `patience` seconds in all. Even niced, training would slow an answer (`payback.PRICE`). The
    trainer's state is "waiting" then. The state "paused" is another thing: somebody stopped updates on the
    page (`Distiller.pause`).

    First `wait()`, then `with controller:` around the worker's call; with a patience of 0 neither does
    anything, nor the second for a worker that cannot pause. `paused_seconds` is the time in which the worker
    was stopped. `on_pause(True)` is called when it stops, `on_pause(False)` when it goes on.
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
        """Return at the first quiet moment, when patience has ended, or when `closing` is set."""
        began = time.monotonic()
        while not closing.is_set() and self.busy() and time.monotonic() - began < self._left:
            closing.wait(POLL_SECONDS)
        self._left -= time.monotonic() - began

    def __enter__(self) -> PauseController:
        if self._left > 0 and self.worker.can_pause:
            self._thread = threading.Thread(target=self._run, name="pause controller", daemon=True)
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._done.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        while self._left > 0 and not self._done.wait(POLL_SECONDS):
            if self.busy():
                self._stop()

    def _stop(self) -> None:
        """Stop the worker until the answer, the update or patience has ended."""
        began = time.monotonic()
        try:
            self.worker.pause()
            self.on_pause(True)
            while not self._done.wait(POLL_SECONDS) and self.busy() and time.monotonic() - began < self._left:
                pass
        finally:  # nobody else would let the process go on
            self.worker.resume()
            seconds = time.monotonic() - began
            self._left, self.paused_seconds = self._left - seconds, self.paused_seconds + seconds
            self.on_pause(False)
