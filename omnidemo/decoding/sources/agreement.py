"""The chance that an id is right, given which sources propose it and which propose another: a logistic
regression that learns from every answer."""

from __future__ import annotations

import math

import numpy as np

SOURCES = 3  # continuations, the conversation, earlier answers
# Prior weights, the mean over answers of the 1.5B and SmolLM2 to four tasks: a constant, and one for all ids
# but the first. Then four for each source: where it proposes the id, a factor of its log odds and a constant;
# and the same where it proposes another id.
FIRST_WEIGHTS = (
    -0.2, -0.2,
    0.8, 0.05, -0.25, -0.45,
    0.8, 0.05, -0.25, -0.5,
    0.6, 0.0, -0.15, -0.4,
)  # fmt: skip
RATE, STEPS = 0.1, 2.0  # Adagrad: learning rate, and initial sum of squares
MOST = 4.6  # largest absolute log odds

Offers = list[tuple[int, int, int, float]]  # (source, id, class, log odds of the source's own chance)


def log_odds(chance: float) -> float:
    """The log odds of a chance, limited to ±MOST."""
    if not 0.0 < chance < 1.0:
        return MOST if chance > 0.0 else -MOST
    return min(max(math.log(chance / (1.0 - chance)), -MOST), MOST)


class Agreement:
    """The weights of the regression. Every judged place changes them."""

    def __init__(self) -> None:
        self.weights = np.array(FIRST_WEIGHTS)
        self.squares = np.full(len(FIRST_WEIGHTS), STEPS)

    def chance(self, token: int, offers: Offers, later: bool) -> float:
        """The chance that an id is right, given the offers of all sources for its place. `later`: it is not
        the first id of a draft."""
        weights = self.weights.data
        total: float = weights[0] + weights[1] if later else weights[0]
        for source, other, _, odds in offers:
            place = 4 * source + (2 if other == token else 4)
            total += weights[place] * odds + weights[place + 1]
        return 1.0 / (1.0 + math.exp(-total))

    def learn(self, token: int, offers: Offers, later: bool, right: bool) -> None:
        """Learn whether an id was right."""
        off = self.chance(token, offers, later) - right
        found = [(0, 1.0), (1, float(later))]
        for source, other, _, odds in offers:
            place = 4 * source + (2 if other == token else 4)
            found += [(place, odds), (place + 1, 1.0)]
        for place, value in found:
            slope = off * value
            self.squares[place] += slope * slope
            self.weights[place] -= RATE * slope / math.sqrt(self.squares[place])
