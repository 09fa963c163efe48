"""The interface of a worker, the plan by which it trains, and a training request. Neither torch nor numpy is imported here.

Two classes follow `Worker`: `ProcessWorker` (a niced process, for a CPU) and `InProcessWorker` (for a GPU and for inline mode).
`lines/trainer_pool.py` makes the one that all lines of a pair share; another kind is made there. `TrainRequest.folder` is a local path.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

from omnidemo.config import Settings

if TYPE_CHECKING:
    import numpy as np

    from omnidemo.adapters.version_folders import AdapterState, OptimiserState
    from omnidemo.distill.losses import Divergence, NgramLoss
    from omnidemo.probes.probe import ProbeRequest
    from omnidemo.records import Agreement, Replayed, Trace, TrainStep

    Batches = Sequence[Sequence[Trace]]
    Trained = tuple[AdapterState, OptimiserState, list[TrainStep]]

# Settings by which a line learns that may change while the app runs.
ADAPTABLE = ["training", "patience", "cost_aware", "update_interval", "steps_per_update", "batch_size", "learning_rate", "schedule"]
ADAPTABLE += ["schedule_steps", "lora_rank", "divergence", "jsd_beta", "ngram_loss", "ngram_weight", "head"]
ADAPTABLE += ["buffer_positions", "buffer_order"]


class WorkerError(RuntimeError):
    """A worker could not do what was requested; the message is one sentence with the cause."""


@dataclass(frozen=True, slots=True)
class TrainingPlan:
    """How to train. `window`: most drafter tokens read per trace (less where the drafter's own context is shorter)."""

    rank: int = 128  # 0: all parameters
    learning_rate: float = 5e-4
    warmup: int = 48  # steps at the start of a line with a growing rate: a full rate overfits the first few answers
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
    memory: float = 0.98  # of the running average of the weights over steps, which is what is published
    window: int = 1024
    seed: int = 0

    def rate(self, step: int) -> float:
        """Learning rate of the step with this number (from 1)."""
        rate = self.learning_rate * min(1.0, step / max(1, self.warmup))
        if self.schedule == "cosine":
            rate *= 0.55 + 0.45 * math.cos(math.pi * min(1.0, step / self.schedule_steps))
        return rate


def plan_of(settings: Settings, seed: int = 0, slower: float = 1.0) -> TrainingPlan:
    """The settings as a training plan; `slower` is a factor of the learning rate."""
    return TrainingPlan(
        rank=settings.lora_rank,
        learning_rate=settings.learning_rate * slower,
        schedule=settings.schedule,
        schedule_steps=settings.schedule_steps,
        divergence=settings.divergence,
        jsd_beta=settings.jsd_beta,
        ngram_loss=settings.ngram_loss,
        ngram_weight=settings.ngram_weight,
        errors_only=settings.buffer_positions == "errors",
        head=settings.head,
        seed=seed,
    )


@dataclass(frozen=True, slots=True, eq=False)
class TrainRequest:
    """One update: what `train_step.train` gets, for the drafter in `folder`. None: a fresh adapter, a fresh optimiser."""

    folder: Path
    adapter: AdapterState | None
    optimiser: OptimiserState | None
    batches: Batches  # one optimiser step each
    plan: TrainingPlan
    head_batches: Batches = ()  # for the acceptance head alone


class Worker(Protocol):
    """Trains and measures drafters. A worker keeps loaded models but no state of a line: each call carries all that it needs.

    Any thread may call; one call runs at a time. Raises WorkerError or whatever the step itself raises.
    """

    @property
    def silent(self) -> float:
        """Seconds without a sign of life during a call that is not paused; 0 where nothing can hang apart from the caller."""

    def train(self, request: TrainRequest, /) -> Trained:
        """`train_step.train`: the new adapter, optimiser state, and the steps."""

    def evaluate(
        self, folder: Path, states: Sequence[AdapterState | None], traces: Sequence[Trace], plan: TrainingPlan, /
    ) -> list[np.ndarray]:
        """`train_step.evaluate`: acceptance probabilities [positions] of each state."""

    def agree(self, folder: Path, state: AdapterState | None, traces: Sequence[Trace], plan: TrainingPlan, /) -> list[Agreement]:
        """`train_step.agree`: the agreement of drafter and target on each trace."""

    def replay(self, request: ProbeRequest, adapter: AdapterState | None, prompts: Sequence[str], /) -> list[Replayed]:
        """`Prober.replay`: recorded answers, drafted with an adapter."""

    def pause(self) -> None: ...
    def resume(self) -> None: ...

    def close(self) -> None:
        """Stop and free the models. A call in flight raises WorkerError where it can be stopped."""
