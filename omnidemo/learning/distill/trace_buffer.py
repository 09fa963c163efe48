"""The replay buffer: traces up to a number of bytes, drawn in one of four orders."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Literal

import numpy as np

from omnidemo.core.records import Trace
from omnidemo.learning.distill.losses import spelled

ReplayOrder = Literal["mixed", "newest", "informative", "uniform"]
NEWEST_BATCHES = 2  # of traces, from which the order "newest" draws: fewer would be learned by heart
MIN_WEIGHT = 0.02  # in the order "informative", of a trace whose every token was accepted


class TraceBuffer:
    """The newest traces up to a number of bytes; no update has read the `fresh` newest ones.

    `order` may change at any time. "mixed": half fresh, half older traces. "newest": the newest ones.
    "informative": the more of a trace's tokens (without copied ones) were not accepted proposals, the more
    often it is drawn. "uniform": all alike.
    """

    def __init__(self, most_bytes: int, seed: int = 0, order: ReplayOrder = "mixed") -> None:
        self.most_bytes, self.nbytes, self.fresh = most_bytes, 0, 0
        self._taken = 0  # fresh traces at the last `take`
        self.order: ReplayOrder = order
        self._traces: deque[Trace] = deque()
        self._random, self._draws = random.Random(seed), random.Random(seed + 1)
        self._looks = random.Random(seed + 2)

    def __len__(self) -> int:
        return len(self._traces)

    def add(self, trace: Trace) -> None:
        self._traces.append(trace)
        self.nbytes += trace.nbytes
        self.fresh += 1
        while self.nbytes > self.most_bytes:
            self.nbytes -= self._traces.popleft().nbytes
        self.fresh = min(self.fresh, len(self._traces))

    def fresh_traces(self) -> list[Trace]:
        """The traces that no update has taken, oldest first."""
        return list(islice(self._traces, len(self._traces) - self.fresh, None))

    def earlier(self, most: int) -> list[Trace]:
        """At most `most` traces that an update has taken, drawn uniformly."""
        count = len(self._traces) - self.fresh
        places = self._looks.sample(range(count), min(most, count))
        return [self._traces[place] for place in places]

    def take(self, steps: int, size: int) -> list[list[Trace]]:
        """The batches of an update; [] where no trace is fresh. Afterwards none is fresh. No trace is twice
        in a batch."""
        traces, fresh = list(self._traces), self.fresh
        self.fresh, self._taken = 0, self.fresh or self._taken
        if not fresh:
            return []
        if self.order == "mixed":
            return self._mixed(traces[len(traces) - fresh :], traces[: len(traces) - fresh], steps, size)
        if self.order == "newest":
            newest = traces[-max(fresh, NEWEST_BATCHES * size) :]
            return list(self._cycled(newest, steps, min(size, len(newest))))
        if self.order == "informative":
            weights = [MIN_WEIGHT + 1 - trace.acceptance for trace in traces]
            return [self._weighted(traces, weights, size) for _ in range(steps)]
        return [self._random.sample(traces, min(size, len(traces))) for _ in range(steps)]

    def draw(self, steps: int, size: int) -> list[list[Trace]]:
        """At most `steps` batches for the acceptance head, of answers that the published drafter has not
        learned from: the fresh traces, or right after a `take` those that were fresh before. Each comes at
        most once."""
        traces = self.fresh_traces() or list(
            islice(self._traces, max(0, len(self._traces) - self._taken), None)
        )
        drawn = self._draws.sample(traces, min(len(traces), steps * size))
        return [drawn[index : index + size] for index in range(0, len(drawn), size)]

    def _mixed(
        self, fresh: Sequence[Trace], older: Sequence[Trace], steps: int, size: int
    ) -> list[list[Trace]]:
        """Batches with half fresh traces (only fresh ones where there are no older), each once before any
        comes again; older traces, drawn uniformly, fill the batch."""
        wanted = min(len(fresh), size if not older else (size + 1) // 2)
        return [
            batch + self._random.sample(older, min(size - wanted, len(older)))
            for batch in self._cycled(fresh, steps, wanted)
        ]

    def _cycled(self, traces: Sequence[Trace], steps: int, size: int) -> Iterator[list[Trace]]:
        """Batches in which every trace occurs equally often, give or take one, and none twice."""
        cycle: list[Trace] = []
        for _ in range(steps):
            if len(cycle) < size:  # the rest comes first, and again at the end of the new cycle
                left = {id(trace) for trace in cycle}
                others = [trace for trace in traces if id(trace) not in left]
                cycle += self._random.sample(others, len(others)) + cycle
            batch, cycle = cycle[:size], cycle[size:]
            yield batch

    def _weighted(self, traces: Sequence[Trace], weights: Sequence[float], size: int) -> list[Trace]:
        """A weighted sample without repetition (Efraimidis and Spirakis, 2006)."""
        keys = [self._random.random() ** (1 / weight) for weight in weights]
        best = sorted(range(len(traces)), key=keys.__getitem__, reverse=True)[:size]
        return [traces[index] for index in best]


def usable(trace: Trace) -> bool:
    """Whether trainer and measurer can use a trace: some token is spelled after another, and every number is
    finite."""
    return bool(spelled(trace).any() and np.isfinite(trace.top_p).all() and np.isfinite(trace.p).all())
