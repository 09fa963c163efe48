"""How long a training run is, how far it has come, and what it says of that."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field, replace
from pathlib import Path

EVERY = 20  # steps between two lines of progress


@dataclass(frozen=True, slots=True)
class Plan:
    """A training run: how many tokens at most, in how many minutes at most, in which rows."""

    tokens: int
    minutes: float | None = None
    batch: int = 8192  # tokens a step
    short: int = 512
    long: int = 1024
    long_share: float = 0.15  # of the run, at the end
    micro: int = 1024  # tokens a microbatch

    @property
    def steps(self) -> int:
        return max(1, self.tokens // self.batch)

    def progress(self, step: int, seconds: float) -> float:
        """From 0 to 1: schedules follow this and not the steps, so that a run on a busy machine still ends in
        time and well."""
        return max(step / self.steps, seconds / (60 * self.minutes) if self.minutes else 0.0)

    def rows(self) -> list[tuple[int, int]]:
        """Row lengths with the largest number of rows that the run can need of each."""
        long_steps = int(self.steps * self.long_share) + 1
        return [
            (self.short, max(0, self.steps - long_steps + 1) * (self.batch // self.short)),
            (self.long, long_steps * (self.batch // self.long)),
        ]

    def at(self, step: int, long_start: int | None) -> tuple[int, range]:
        """Row length and row numbers of a step, given the step at which the long rows began."""
        length = self.short if long_start is None else self.long
        count = self.batch // length
        first = (step - (long_start or 0)) * count
        return length, range(first, first + count)

    def amended(self, path: Path | None, name: str) -> Plan:
        """The same plan with the budget that a file has for `name`: `{"a": {"tokens": 30000000, "minutes":
        60}}`, or tokens alone."""
        try:
            wanted = json.loads(path.read_text())[name] if path is not None else self.tokens
        except (OSError, ValueError, KeyError):
            return self
        if isinstance(wanted, dict):
            return replace(
                self,
                tokens=int(wanted.get("tokens", self.tokens)),
                minutes=wanted.get("minutes", self.minutes),
            )
        return replace(self, tokens=int(wanted))


@dataclass(slots=True)
class Clock:
    """How far a run is: part of a checkpoint."""

    step: int = 0
    seconds: float = 0.0  # in all sittings
    long_start: int | None = None
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
