"""The traces that an update is drawn from: bounded, in one of four orders."""

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
# the order "newest" draws from so many batches' worth of traces: fewer would be learned by heart
NEWEST_BATCHES = 2
# of a trace in the order "informative" whose every token was accepted: it still teaches a little
MIN_WEIGHT = 0.02


class TraceBuffer:
    """The newest traces up to a number of bytes, and how many of them no update has seen yet (`fresh`).

    `order`, which may be changed at any time, decides which traces an update draws. "mixed": half fresh and
    half older ones. "newest": the newest. "informative": any, the more often the more of its tokens (copied
    ones apart) were not accepted proposals. "uniform": any alike.
    """

    def __init__(self, most_bytes: int, seed: int = 0, order: ReplayOrder = "mixed") -> None:
        self.most_bytes, self.nbytes, self.fresh = most_bytes, 0, 0
        self._taken = 0  # how many were fresh at the last `take`
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
        """The traces that no update has taken yet, oldest first."""
        return list(islice(self._traces, len(self._traces) - self.fresh, None))

    def earlier(self, most: int) -> list[Trace]:
        """At most so many of the traces that an update has taken, drawn uniformly."""
        count = len(self._traces) - self.fresh
        places = self._looks.sample(range(count), min(most, count))
        return [self._traces[place] for place in places]

    def take(self, steps: int, size: int) -> list[list[Trace]]:
        """The batches of an update, none where no trace is fresh; afterwards none is. No trace is twice in a
        batch."""
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
        learned from.

        These are the fresh traces, and right after a `take` those that were fresh before it. Each comes at
        most once.
        """
        traces = self.fresh_traces() or list(
            islice(self._traces, max(0, len(self._traces) - self._taken), None)
        )
        drawn = self._draws.sample(traces, min(len(traces), steps * size))
        return [drawn[index : index + size] for index in range(0, len(drawn), size)]

    def _mixed(
        self, fresh: Sequence[Trace], older: Sequence[Trace], steps: int, size: int
    ) -> list[list[Trace]]:
        """At most half fresh traces (all of them where there are no older ones), each once before any comes
        again; older ones, drawn uniformly, fill the batch."""
        wanted = min(len(fresh), size if not older else (size + 1) // 2)
        return [
            batch + self._random.sample(older, min(size - wanted, len(older)))
            for batch in self._cycled(fresh, steps, wanted)
        ]

    def _cycled(self, traces: Sequence[Trace], steps: int, size: int) -> Iterator[list[Trace]]:
        """Batches in which every trace occurs equally often, give or take once, and in none twice."""
        cycle: list[Trace] = []
        for _ in range(steps):
            # the rest goes first into this batch, and again at the end of the new cycle: each comes equally
            # often
            if len(cycle) < size:
                left = {id(trace) for trace in cycle}
                others = [trace for trace in traces if id(trace) not in left]
                cycle += self._random.sample(others, len(others)) + cycle
            batch, cycle = cycle[:size], cycle[size:]
            yield batch

    def _weighted(self, traces: Sequence[Trace], weights: Sequence[float], size: int) -> list[Trace]:
        """A sample without repetition in which a trace's chance grows with its weight (Efraimidis and
        Spirakis, 2006)."""
        keys = [self._random.random() ** (1 / weight) for weight in weights]
        best = sorted(range(len(traces)), key=keys.__getitem__, reverse=True)[:size]
        return [traces[index] for index in best]


def usable(trace: Trace) -> bool:
    """Whether a trace teaches anything: some token is spelled after another, and every number is finite.

    The trainer and the measurement of agreement both go by it; a rule for the trainer alone belongs into
    `Distiller.observe`.
    """
    return bool(spelled(trace).any() and np.isfinite(trace.top_p).all() and np.isfinite(trace.p).all())
