"""How a training shows its progress: a line every twenty steps."""

from __future__ import annotations

import time

EVERY = 20


class Reporter:
    """Loss (a running mean), gradient norm, tokens a second and the time left."""

    def __init__(self, title: str, start: int, batch: int, start_share: float = 0.0) -> None:
        self.title, self.batch = title, batch
        self.mean: float | None = None
        self.at, self.when, self.share = start, time.monotonic(), start_share

    def step(self, done: int, progress: float, loss: float, norm: float, factor: float) -> None:
        """Note a finished step; `progress` is the share of the run that is done, `factor` that of the learning rate."""
        self.mean = loss if self.mean is None else 0.95 * self.mean + 0.05 * loss
        if done % EVERY and progress < 1.0:
            return
        now = time.monotonic()
        speed = (done - self.at) * self.batch / max(1e-9, now - self.when)
        left = max(0.0, 1.0 - progress) * (now - self.when) / max(1e-9, progress - self.share)
        self.at, self.when, self.share = done, now, progress
        print(
            f"{time.strftime('%H:%M:%S')} {self.title} step {done} ({progress:.1%}) loss {self.mean:.4f} last {loss:.4f} norm {norm:.2f} "
            f"rate {factor:.2f} {speed:,.0f} tok/s eta {left / 60:.1f} min",
            flush=True,
        )
