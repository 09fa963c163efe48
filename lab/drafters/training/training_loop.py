"""The training loop: single-threaded workers on shared buffers.

Four workers with one thread each train three times as fast as one process with four threads: every operation
is parallel, no thread waits at the end of each, and a microbatch stays in a core's cache. Gradients are
summed once a step; the optimiser is split over the workers.
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

from omnidemo.core.private_folders import replacing
from omnidemo.core.processes import deaf_to_ctrl_c

from .flat_llama import Shape
from .optimiser import Rates, Share
from .pause import hold
from .plan import Clock, Plan, Reporter
from .row_files import row_at
from .training_llama import TrainingLlama

# Set in the environment of the workers before they start: glibc otherwise returns big buffers to the system
# at once, at half the speed.
ENVIRONMENT = {
    "MALLOC_MMAP_MAX_": "0",
    "MALLOC_TRIM_THRESHOLD_": "8000000000",
    "MALLOC_TOP_PAD_": "500000000",
    "MALLOC_ARENA_MAX": "1",
    "OMP_NUM_THREADS": "1",
    "TORCHINDUCTOR_COMPILE_THREADS": "1",
    "TOKENIZERS_PARALLELISM": "false",
}
EVERY_S = 180.0  # between two checkpoints
KEPT = ("master", "first", "second")  # of the buffers, in a checkpoint


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
    pause: Path | None = None  # nothing is computed while this file exists
    stop_at: int | None = None  # leave with a checkpoint before this step (for tests)


def make_buffers(flat: Tensor, workers: int) -> dict[str, Tensor]:
    """Everything that the workers share."""
    buffers = {name: torch.zeros_like(flat) for name in ("first", "second")}  # moments of the optimisers
    buffers |= {
        "master": flat.clone(),
        "weights": flat.to(torch.bfloat16),
        "gradients": torch.zeros(workers, len(flat)),
    }
    # summed loss, squared norm, seconds held, and in the first row the progress
    buffers["scratch"] = torch.zeros(workers, 4, dtype=torch.float64)
    return {name: buffer.share_memory_() for name, buffer in buffers.items()}


def _save(path: Path, buffers: dict[str, Tensor], plan: Plan, clock: Clock) -> None:
    with replacing(path) as partial:
        torch.save({name: buffers[name] for name in KEPT} | {"plan": asdict(plan), **asdict(clock)}, partial)


def _load(buffers: dict[str, Tensor], state: dict[str, Any]) -> Clock:
    for name in KEPT:
        buffers[name].copy_(state[name])
    buffers["weights"].copy_(buffers["master"])
    return Clock(**{name: state[name] for name in Clock.__dataclass_fields__})


def _rows(job: Job, step: int) -> Tensor:
    """The rows [rows, channels, length] of a step."""
    length = job.plan.length
    rows = [torch.from_numpy(row_at(job.data, length, one).astype("int64")) for one in job.plan.rows(step)]
    return torch.stack(rows)


def _own_share(
    lean: TrainingLlama, rows: Tensor, counted: int, tickets: Any, pause: Path | None
) -> tuple[float, float]:
    """Train on the rows of a step that no other worker takes, one by one; the sum of their losses, and for
    how many seconds that was held. A worker on a busy core does fewer, so sums depend on timing in the last
    bit."""
    total = held = 0.0
    while True:
        with tickets.get_lock():
            turn = tickets.value
            tickets.value += 1
        if turn >= len(rows):
            return total, held
        held += hold(pause)
        total += lean.step(rows[turn : turn + 1], 1.0 / counted)


def worker(
    rank: int, workers: int, job: Job, buffers: dict[str, Tensor], clock: Clock, barrier: Any, tickets: Any
) -> None:
    """One of the processes; the first also keeps the schedule, reports and writes the checkpoints."""
    torch.set_num_threads(1)
    plan, rates = job.plan, job.rates
    scratch = buffers["scratch"]
    lean = TrainingLlama(job.shape, buffers["weights"], buffers["gradients"][rank], job.compiled)
    share = Share(job.shape, rank, workers, buffers, clock.step)
    reporter = (
        Reporter(job.title, clock.step, plan.batch, plan.progress(clock.step, clock.seconds))
        if rank == 0
        else None
    )
    began, before = time.monotonic(), clock.seconds
    saved, progress = began, plan.progress(clock.step, clock.seconds)
    while progress < 1.0 and clock.step != job.stop_at:
        rows = _rows(job, clock.step)
        counted = max(1, int(rows[:, 1, 1:].sum()))
        scratch[rank, 0], scratch[rank, 2] = _own_share(lean, rows, counted, tickets, job.pause)
        barrier.wait()
        scratch[rank, 1] = share.gather()
        if rank == 0:
            tickets.value = 0
            began += float(scratch[:, 2].max())
            clock.seconds = before + time.monotonic() - began
            scratch[0, 3] = plan.progress(clock.step + 1, clock.seconds)
        barrier.wait()
        norm = float(scratch[:, 1].sum()) ** 0.5
        loss = float(scratch[:, 0].sum()) / counted
        factor, after = rates.factor(clock.step, progress), float(scratch[0, 3])
        share.update(rates, factor, min(1.0, 1.0 / (norm + 1e-6)))
        barrier.wait()
        clock.step += 1
        if reporter is not None:
            clock.losses.append(round(loss, 4))
            reporter.step(clock.step, after, loss, norm, factor)
            # The others already read the next microbatches; nobody writes weights before this worker is at
            # the barrier again.
            if progress < 1.0 - rates.decay <= after:
                _save(job.checkpoint.with_name("plateau.pt"), buffers, plan, clock)
            if after >= 1.0 or clock.step == job.stop_at or time.monotonic() - saved > EVERY_S:
                _save(job.checkpoint, buffers, plan, clock)
                saved = time.monotonic()
        progress = after


def train(job: Job, flat: Tensor, workers: int, inline: bool = False) -> tuple[Tensor, Clock]:
    """Run a job to its end, from its checkpoint if there is one; returns the flat float32 weights and how it
    went.

    `inline` runs a single worker in this process, without the allocation settings.
    """
    buffers, state = make_buffers(flat, workers), latest(job)
    clock = Clock() if state is None else _load(buffers, state)
    if job.plan.progress(clock.step, clock.seconds) < 1.0:
        context = mp.get_context("spawn")
        shared = (workers, job, buffers, clock, context.Barrier(workers), context.Value("i", 0))
        if inline:
            worker(0, *shared)
        else:
            kept = dict(os.environ)
            os.environ.update(ENVIRONMENT)
            started = None
            try:
                with deaf_to_ctrl_c():
                    started = mp.spawn(worker, shared, nprocs=workers, join=False)
                while not started.join():
                    pass
            finally:
                for process in started.processes if started else ():
                    process.terminate()
                os.environ.clear()
                os.environ.update(kept)
        clock = _load(buffers, torch.load(job.checkpoint))
    return buffers["master"].clone(), clock


def latest(job: Job) -> dict[str, Any] | None:
    """The checkpoint to go on from.

    A run whose budget was raised while it was decaying goes back to where its constant phase ended.
    """
    state: dict[str, Any] | None = torch.load(job.checkpoint) if job.checkpoint.exists() else None
    constant = job.checkpoint.with_name("plateau.pt")
    if (
        state is not None
        and constant.exists()
        and any(state["plan"][name] != getattr(job.plan, name) for name in ("tokens", "minutes"))
    ):
        earlier: dict[str, Any] = torch.load(constant)
        if (
            earlier["step"] < state["step"]
            and job.plan.progress(earlier["step"], earlier["seconds"]) < 1.0 - job.rates.decay
        ):
            return earlier
    return state
