"""Calibration: how often slots are accepted, by the probability that was predicted for them; learned from
judged drafts."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

EDGES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98)  # of the classes of a calibration
FORGET = 0.99  # decay of a class's older observations with each new one
BELIEF = 5.0  # observations that the drafter's own probability is worth at first


class Calibration:
    """P(accepted) by classes of what was predicted, from what came of it. The prediction itself counts as
    `BELIEF` observations."""

    def __init__(self, prior: float | None = None, lines: NDArray[np.float64] | None = None) -> None:
        self.prior = prior  # believed instead of the prediction
        # (a, b) of each class: P is a + b · prediction
        self.lines = np.zeros((len(EDGES) + 1, 2)) if lines is None else lines
        self.weight = [0.0] * (len(EDGES) + 1)
        self.accepted = [0.0] * (len(EDGES) + 1)
        self.predicted = [0.0] * (len(EDGES) + 1)
        for at in range(len(EDGES) + 1):
            self._fit(at)

    def __call__(self, predicted: float) -> float:
        at = bisect_right(EDGES, predicted)
        believed = predicted if self.prior is None else self.prior
        return (self.accepted[at] + BELIEF * believed) / (self.weight[at] + BELIEF)

    def learn(self, predicted: float, accepted: float) -> None:
        """Note an acceptance (0 or 1, or its probability)."""
        at = bisect_right(EDGES, predicted)
        self.weight[at] = FORGET * self.weight[at] + 1.0
        self.accepted[at] = FORGET * self.accepted[at] + accepted
        self.predicted[at] = FORGET * self.predicted[at] + predicted
        self._fit(at)

    def _fit(self, at: int) -> None:
        seen, line = self.weight[at] + BELIEF, self.lines[at]
        line[0] = (self.accepted[at] + (0.0 if self.prior is None else BELIEF * self.prior)) / seen
        line[1] = BELIEF / seen if self.prior is None else 0.0

    def rows(self) -> list[tuple[float, float, float]]:
        """(mean prediction, acceptance observed, weight of the observations) of each class that has any: a
        reliability plot."""
        seen = zip(self.predicted, self.accepted, self.weight, strict=True)
        return [
            (predicted / weight, accepted / weight, weight)
            for predicted, accepted, weight in seen
            if weight > 0
        ]


@dataclass(slots=True)
class StopRule:
    """When a draft ends. Compiled code says the same once more (`roll_out` in `backends/kernels/draft.py`):
    change both.

    `segments` [n, 5] are rows (from which s on, a, b, c, d), the calibration as piecewise linear functions of
    s, the drafter's probability of a slot. After a slot, `cumulative` (the probability that all slots so far
    are accepted) is multiplied by a + b·s. Another slot is drafted if s ≥ `min_prob` and `cumulative` · (c +
    d·s) > `price`.
    """

    cumulative: float = 1.0
    min_prob: float = 0.0
    price: float = -1.0
    segments: NDArray[np.float64] = field(default_factory=lambda: np.array([[0.0, 1.0, 0.0, 1.0, 0.0]]))

    def keep_drafting(self, prob: float) -> bool:
        """Take a slot that was drawn with probability `prob` into account; returns whether another one is
        drafted."""
        _, a, b, c, d = self.segments[int(self.segments[:, 0].searchsorted(prob, side="right")) - 1].tolist()
        self.cumulative *= a + b * prob
        return prob >= self.min_prob and self.cumulative * (c + d * prob) > self.price
