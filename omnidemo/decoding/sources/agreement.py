"""How likely an id is right, by who proposes it and who proposes another one: a logistic regression that
learns from every answer."""

from __future__ import annotations

import math

import numpy as np

SOURCES = 3  # continuations, the conversation, earlier answers
# Weights at first, the mean of what the 1.5B's and SmolLM2's answers to four tasks gave: a constant, one for
# all ids but the first; then of each source two where it proposes the id (of the log odds of its own chance,
# and a constant), and two where it proposes another one.
FIRST_WEIGHTS = (
    -0.2, -0.2,
    0.8, 0.05, -0.25, -0.45,
    0.8, 0.05, -0.25, -0.5,
    0.6, 0.0, -0.15, -0.4,
)  # fmt: skip
RATE, STEPS = 0.1, 2.0  # of the learning, by Adagrad: its rate, and its sum of squares at first
MOST = 4.6  # absolute log odds of a chance that count

Offers = list[tuple[int, int, int, float]]  # (source, id, class, log odds of the source's own chance)


def log_odds(chance: float) -> float:
    """Of a chance, within MOST."""
    if not 0.0 < chance < 1.0:
        return MOST if chance > 0.0 else -MOST
    return min(max(math.log(chance / (1.0 - chance)), -MOST), MOST)


class Agreement:
    """The weights, which every judged place changes."""

    def __init__(self) -> None:
        self.weights = np.array(FIRST_WEIGHTS)
        self.squares = np.full(len(FIRST_WEIGHTS), STEPS)

    def chance(self, token: int, offers: Offers, later: bool) -> float:
        """How likely an id is right, given what each source offers for its place; `later`: it is not the
        first of a draft."""
        weights = self.weights.data
        total: float = weights[0] + weights[1] if later else weights[0]
        for source, other, _, odds in offers:
            place = 4 * source + (2 if other == token else 4)
            total += weights[place] * odds + weights[place + 1]
        return 1.0 / (1.0 + math.exp(-total))

    def learn(self, token: int, offers: Offers, later: bool, right: bool) -> None:
        """Take whether an id was right."""
        off = self.chance(token, offers, later) - right
        found = [(0, 1.0), (1, float(later))]
        for source, other, _, odds in offers:
            place = 4 * source + (2 if other == token else 4)
            found += [(place, odds), (place + 1, 1.0)]
        for place, value in found:
            slope = off * value
            self.squares[place] += slope * slope
            self.weights[place] -= RATE * slope / math.sqrt(self.squares[place])
