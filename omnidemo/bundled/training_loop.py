"""The training loop: single-threaded workers on shared buffers.

Four workers with one thread each train three times as fast as one process with four threads: every operation is parallel, no thread waits
at the end of each, and a microbatch stays in a core's cache. Gradients are summed once a step; the optimiser is split over the workers.
"""

from __future__ import annotations

import os
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
import torch.multiprocessing as mp
from torch import Tensor

from .data import row_at
from .family import Shape
from .optimiser import Rates, Share
from .plan import Clock, Plan

# Set in the environment of the workers before they start: glibc otherwise returns big buffers to the system at once, at half the speed.
ENVIRONMENT = {
    "MALLOC_MMAP_MAX_": "0",
    "MALLOC_TRIM_THRESHOLD_": "8000000000",
    "MALLOC_TOP_PAD_": "500000000",
    "MALLOC_ARENA_MAX": "1",
    "OMP_NUM_THREADS": "1",
    "TORCHINDUCTOR_COMPILE_THREADS": "1",
    "TOKENIZERS_PARALLELISM": "false",
}
STALL_S = 900.0  # after so long at a barrier a worker must have died


@dataclass(slots=True)
class Job:
    """What the workers of a run are told."""

    shape: Shape
    plan: Plan
    rates: Rates
    data: Path
    checkpoint: Path
    title: str = "model"
    compiled: bool = True
    frozen: int = 0  # lowest layers that stay as they are, and the embedding with them
    stealing: bool = True  # a worker on a busy core does fewer microbatches; sums then depend on timing in the last bit
    every_s: float = 180.0
    budget: Path | None = None  # read again and again: a run can be shortened while it runs
    stop_at: int | None = None  # leave with a checkpoint before this step (for tests)


@dataclass(slots=True)
class Buffers:
    """Everything that is shared; `state` is what a checkpoint holds."""

    master: Tensor
    first: Tensor
    second: Tensor
    weights: Tensor
    gradients: Tensor
    scratch: Tensor  # (workers, 3): summed loss, squared norm, and in the first row the progress

    @classmethod
    def make(cls, flat: Tensor, workers: int) -> Buffers:
        zeros = torch.zeros_like
        made = cls(
            flat.clone(), zeros(flat), zeros(flat), flat.to(torch.bfloat16), torch.zeros(workers, len(flat)),
            torch.zeros(workers, 3, dtype=torch.float64),
        )  # fmt: skip
        for name in cls.__dataclass_fields__:
            getattr(made, name).share_memory_()
        return made

    def of_share(self) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        return self.master, self.weights, self.first, self.second, self.gradients

    def save(self, path: Path, plan: Plan, clock: Clock) -> None:
        partial = path.with_suffix(".part")
        state = {"master": self.master, "first": self.first, "second": self.second}
        torch.save({**state, "plan": asdict(plan), **asdict(clock)}, partial)
        os.replace(partial, path)

    def load(self, state: dict[str, Any]) -> None:
        self.master.copy_(state["master"])
        self.first.copy_(state["first"])
        self.second.copy_(state["second"])
        self.weights.copy_(self.master)


def _row(job: Job, length: int, index: int, cache: dict[Any, Any]) -> Tensor:
    waited = 0.0
    while True:
        try:
            return torch.from_numpy(row_at(job.data, length, index, cache).astype("int64"))
        except FileNotFoundError:
            if waited > STALL_S:
                raise
            time.sleep(0.2)
            waited += 0.2


def worker(rank: int, workers: int, job: Job, buffers: Buffers, clock: Clock, barrier: Any, tickets: Any) -> None:
    """One of the processes; the first also keeps the schedule, reports and writes the checkpoints."""
    from omnidemo.bundled.progress import Reporter
    from omnidemo.bundled.training_llama import TrainingLlama

    torch.set_num_threads(1)
    plan, rates = job.plan, job.rates
    cache: dict[Any, Any] = {}
    lean = TrainingLlama(job.shape, buffers.weights, buffers.gradients[rank], job.compiled, job.frozen)
    share = Share(job.shape, rank, workers, *buffers.of_share(), job.frozen)
    reporter = Reporter(job.title, clock.step, plan.batch, plan.progress(clock.step, clock.seconds)) if rank == 0 else None
    began, before = time.monotonic(), clock.seconds
    saved, progress = began, plan.progress(clock.step, clock.seconds)
    while progress < 1.0 and clock.step != job.stop_at:
        if clock.long_start is None and progress >= 1.0 - plan.long_share:
            clock.long_start = clock.step
        length, indices = plan.at(clock.step, clock.long_start)
        rows = torch.stack([_row(job, length, index, cache) for index in indices])
        counted = max(1, int(rows[:, 1, 1:].sum()))
        micro = max(1, plan.micro // length)
        parts = range(0, len(rows), micro)
        total, turn = 0.0, rank
        while True:
            if job.stealing:
                with tickets.get_lock():
                    turn = tickets.value
                    tickets.value += 1
            if turn >= len(parts):
                break
            part = rows[parts[turn] : parts[turn] + micro]
            total += lean.step(part[:, 0], part[:, 1], part[:, 2], 1.0 / counted)
            turn += workers
        buffers.scratch[rank, 0] = total
        barrier.wait(STALL_S)
        buffers.scratch[rank, 1] = share.gather()
        if rank == 0:
            tickets.value = 0
            if clock.step % 20 == 0:
                plan = plan.amended(job.budget, job.title)
            clock.seconds = before + time.monotonic() - began
            buffers.scratch[0, 2] = plan.progress(clock.step + 1, clock.seconds)
        barrier.wait(STALL_S)
        norm = float(buffers.scratch[:, 1].sum()) ** 0.5
        loss = float(buffers.scratch[:, 0].sum()) / counted
        factor, after = rates.factor(clock.step, progress), float(buffers.scratch[0, 2])
        share.update(clock.step, rates, factor, min(1.0, 1.0 / (norm + 1e-6)))
        barrier.wait(STALL_S)
        clock.step += 1
        if reporter is not None:
            clock.losses.append(round(loss, 4))
            reporter.step(clock.step, after, loss, norm, factor)
            # The others already read the next microbatches; nobody writes weights before this worker is at the barrier again.
            if progress < 1.0 - rates.decay <= after:
                buffers.save(job.checkpoint.with_name("constant.pt"), plan, clock)
            if after >= 1.0 or clock.step == job.stop_at or time.monotonic() - saved > job.every_s:
                buffers.save(job.checkpoint, plan, clock)
                saved = time.monotonic()
        progress = after
    if reporter is not None:
        reporter.close()


def train(job: Job, flat: Tensor, workers: int, inline: bool = False) -> tuple[Tensor, Clock]:
    """Run a job to its end, from its checkpoint if there is one; returns the flat float32 weights and how it went.

    `inline` runs a single worker in this process, without the allocation settings.
    """
    buffers, clock = Buffers.make(flat, workers), Clock()
    state = latest(job)
    if state is not None:
        buffers.load(state)
        clock = clock_of(state)
    if job.plan.progress(clock.step, clock.seconds) < 1.0:
        context = mp.get_context("spawn")
        shared = (workers, job, buffers, clock, context.Barrier(workers), context.Value("i", 0))
        if inline:
            worker(0, *shared)
        else:
            kept = dict(os.environ)
            os.environ.update(ENVIRONMENT)
            try:
                mp.spawn(worker, shared, nprocs=workers, join=True)
            finally:
                os.environ.clear()
                os.environ.update(kept)
        final = torch.load(job.checkpoint)
        buffers.load(final)
        clock = clock_of(final)
    return buffers.master.clone(), clock


def clock_of(state: dict[str, Any]) -> Clock:
    return Clock(**{name: state[name] for name in Clock.__dataclass_fields__})


def latest(job: Job) -> dict[str, Any] | None:
    """The checkpoint to go on from.

    A run whose budget was raised while it was decaying goes back to where its constant phase ended.
    """
    state: dict[str, Any] | None = torch.load(job.checkpoint) if job.checkpoint.exists() else None
    constant = job.checkpoint.with_name("constant.pt")
    if state is not None and constant.exists() and any(state["plan"][name] != getattr(job.plan, name) for name in ("tokens", "minutes")):
        earlier: dict[str, Any] = torch.load(constant)
        if earlier["step"] < state["step"] and job.plan.progress(earlier["step"], earlier["seconds"]) < 1.0 - job.rates.decay:
            return earlier
    return state
