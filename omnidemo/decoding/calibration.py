"""Calibration: how often slots are accepted, by the probability predicted for them."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

EDGES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98)  # of the classes of a calibration
FORGET = 0.99  # decay of a class's older observations with each new one
BELIEF = 5.0  # observations that the drafter's own probability is worth at first
TRUST = 0.7  # accepted ÷ predicted before any observation


class Calibration:
    """P(accepted) by classes of the prediction. A class begins with the prediction times `scale`, worth
    `BELIEF` observations. `scale` is accepted ÷ predicted over all classes, so a few drafts show that a
    drafter is too sure of an unknown target."""

    def __init__(self, prior: float | None = None) -> None:
        self.prior = prior  # replaces the prediction
        self.weight = [0.0] * (len(EDGES) + 1)
        self.accepted = [0.0] * (len(EDGES) + 1)
        self.predicted = [0.0] * (len(EDGES) + 1)

    def __call__(self, predicted: float) -> float:
        at = bisect_right(EDGES, predicted)
        believed = predicted if self.prior is None else self.prior
        return (self.accepted[at] + BELIEF * self.scale * believed) / (self.weight[at] + BELIEF)

    @property
    def scale(self) -> float:
        """Accepted ÷ believed over all classes, at most 1."""
        believed = sum(self.predicted) if self.prior is None else self.prior * sum(self.weight)
        trust = TRUST if self.prior is None else 1.0
        return min(1.0, (sum(self.accepted) + BELIEF * trust) / (believed + BELIEF))

    def learn(self, *guesses: tuple[float, float]) -> None:
        """Add observations (prediction, acceptance); an acceptance is 0, 1 or a probability."""
        for predicted, accepted in guesses:
            at = bisect_right(EDGES, predicted)
            self.weight[at] = FORGET * self.weight[at] + 1.0
            self.accepted[at] = FORGET * self.accepted[at] + accepted
            self.predicted[at] = FORGET * self.predicted[at] + predicted

    @property
    def lines(self) -> NDArray[np.float64]:
        """[classes, 2]: (a, b) of each class, with P(accepted) = a + b · prediction."""
        seen, held = np.array(self.weight) + BELIEF, BELIEF * self.scale
        sure, by_prediction = (0.0, held) if self.prior is None else (held * self.prior, 0.0)
        return np.stack([(np.array(self.accepted) + sure) / seen, by_prediction / seen], 1)


@dataclass(slots=True)
class StopRule:
    """When a draft ends. `roll_out` in `backends/kernels/draft.py` has the same rule: change both.

    `segments` [n, 5] are rows (lower border of s, a, b, c, d): the calibration as piecewise linear functions
    of s, the drafter's probability of a slot. After a slot `cumulative` (the probability that all slots so
    far are accepted) is multiplied by a + b·s. Another slot is drafted if s ≥ `min_prob` and `cumulative` ·
    (c + d·s) > `price`.
    """

    cumulative: float = 1.0
    min_prob: float = 0.0
    price: float = -1.0
    segments: NDArray[np.float64] = field(default_factory=lambda: np.array([[0.0, 1.0, 0.0, 1.0, 0.0]]))

    def keep_drafting(self, prob: float) -> bool:
        """Update the rule with a slot of probability `prob`; returns whether another slot is drafted."""
        _, a, b, c, d = self.segments[int(self.segments[:, 0].searchsorted(prob, side="right")) - 1].tolist()
        self.cumulative *= a + b * prob
        return prob >= self.min_prob and self.cumulative * (c + d * prob) > self.price
