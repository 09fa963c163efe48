"""How long a training run is, how far it has come, and what it says of that."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

EVERY = 20  # steps between two lines of progress


@dataclass(frozen=True, slots=True)
class Plan:
    """A training run: how many tokens at most, in rows of which length, in how many minutes at most."""

    tokens: int
    length: int  # tokens a row
    minutes: float | None = None
    batch: int = 8192  # tokens a step

    @property
    def steps(self) -> int:
        return max(1, self.tokens // self.batch)

    def progress(self, step: int, seconds: float) -> float:
        """From 0 to 1: schedules follow this and not the steps, so that a run on a busy machine still ends in
        time and well."""
        return max(step / self.steps, seconds / (60 * self.minutes) if self.minutes else 0.0)

    def rows(self, step: int) -> range:
        """The numbers of the rows that a step reads."""
        count = self.batch // self.length
        return range(step * count, (step + 1) * count)


@dataclass(slots=True)
class Clock:
    """How far a run is: part of a checkpoint."""

    step: int = 0
    seconds: float = 0.0  # in all sittings
    losses: list[float] = field(default_factory=list)


class Reporter:
    """Loss (a running mean), gradient norm, tokens a second and the time left."""

    def __init__(self, title: str, start: int, batch: int, start_share: float = 0.0) -> None:
        self.title, self.batch = title, batch
        self.mean: float | None = None
        self.at, self.when, self.share = start, time.monotonic(), start_share

    def step(self, done: int, progress: float, loss: float, norm: float, factor: float) -> None:
        """Note a finished step; `progress` is the share of the run that is done, `factor` that of the
        learning rate."""
        self.mean = loss if self.mean is None else 0.95 * self.mean + 0.05 * loss
        if done % EVERY and progress < 1.0:
            return
        now = time.monotonic()
        speed = (done - self.at) * self.batch / max(1e-9, now - self.when)
        left = max(0.0, 1.0 - progress) * (now - self.when) / max(1e-9, progress - self.share)
        self.at, self.when, self.share = done, now, progress
        print(
            f"{time.strftime('%H:%M:%S')} {self.title} step {done} ({progress:.1%}) loss {self.mean:.4f} last"
            f" {loss:.4f} norm {norm:.2f} rate {factor:.2f} {speed:,.0f} tok/s eta {left / 60:.1f} min",
            flush=True,
        )
