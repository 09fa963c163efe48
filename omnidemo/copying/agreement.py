"""How likely an id is right, by who proposes it and who proposes another one: a logistic regression that
learns from every answer."""

from __future__ import annotations

import math
from collections.abc import Sequence

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

Offered = Sequence[tuple[int, int, float]]  # (source, id, the source's own chance)
Features = list[tuple[int, float]]  # (place, value) of those that are not 0


class Agreement:
    """The weights, which every judged place changes."""

    def __init__(self) -> None:
        self.weights = list(FIRST_WEIGHTS)
        self._squares = [STEPS] * len(FIRST_WEIGHTS)

    def chance(self, features: Features) -> float:
        """How likely the id is right that has these features."""
        total = sum(self.weights[place] * value for place, value in features)
        return 1.0 / (1.0 + math.exp(-total))

    def learn(self, features: Features, right: bool) -> None:
        """Take whether an id was right."""
        off = self.chance(features) - right
        for place, value in features:
            slope = off * value
            self._squares[place] += slope * slope
            self.weights[place] -= RATE * slope / math.sqrt(self._squares[place])


def features_of(token: int, offered: Offered, later: bool) -> Features:
    """The features of an id, given what each source offers; `later`: it is not the first of a draft."""
    found = [(0, 1.0), (1, 1.0)] if later else [(0, 1.0)]
    for source, other, chance in offered:
        odds = math.log(chance / (1.0 - chance)) if 0.0 < chance < 1.0 else MOST if chance > 0.0 else -MOST
        place = 2 + 4 * source + (0 if other == token else 2)
        found += [(place, min(max(odds, -MOST), MOST)), (place + 1, 1.0)]
    return found
