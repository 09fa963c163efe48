"""The traces that an update is drawn from: bounded, with the newest weighing more."""

from __future__ import annotations

import random
from collections import deque

import numpy as np

from omnidemo.records import Trace


class ReplayBuffer:
    """The newest traces up to a number of bytes, and how many of them no update has seen yet."""

    def __init__(self, most_bytes: int, seed: int = 0) -> None:
        self.most_bytes, self.nbytes, self.fresh = most_bytes, 0, 0
        self._traces: deque[Trace] = deque()
        self._random = random.Random(seed)

    def __len__(self) -> int:
        return len(self._traces)

    def add(self, trace: Trace) -> None:
        self._traces.append(trace)
        self.nbytes += trace.nbytes
        self.fresh += 1
        while self.nbytes > self.most_bytes:
            self.nbytes -= self._traces.popleft().nbytes
        self.fresh = min(self.fresh, len(self._traces))

    def take(self, steps: int, size: int) -> list[list[Trace]]:
        """Batches of an update: half fresh traces in turn, half older ones drawn uniformly; then none is fresh any more."""
        traces = list(self._traces)
        fresh, older = traces[len(traces) - self.fresh :], traces[: len(traces) - self.fresh]
        self.fresh = 0
        turn: list[Trace] = []
        batches: list[list[Trace]] = []
        for _ in range(steps if fresh else 0):
            wanted = min(len(fresh), size if not older else (size + 1) // 2)
            while len(turn) < wanted:
                turn += self._random.sample(fresh, len(fresh))
            batch, turn = turn[:wanted], turn[wanted:]
            batches.append(batch + self._random.sample(older, min(size - wanted, len(older))))
        return batches


def usable(trace: Trace) -> bool:
    """Whether a trace teaches anything: some token is spelled after another, and every number is finite."""
    spelled = (trace.starts >= 1) & (trace.lengths >= 1) & (trace.starts + trace.lengths <= len(trace.drafter_ids))
    return bool(spelled.any() and np.isfinite(trace.top_p).all() and np.isfinite(trace.p).all())
