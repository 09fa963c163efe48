"""How often ids from memory are accepted, and the drafts that are made of them.

Nothing here depends on the target's next draw, so a proposal is a point mass.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from omnidemo.core.records import Match

LONGEST_COPY = 16  # ids of a draft
LEAST = 0.1  # a draft ends where the chance that all its ids are accepted falls below
LENGTHS = (3, 4, 5, 7, 9, 13, 20)  # borders of the classes of match lengths
AGREEING = 4  # classes of agreement: one place; all of several; more than half; fewer
CLASSES = AGREEING * (len(LENGTHS) + 1)  # of a copied id, of each source
# borders of the classes of a continuation's share
SHARES = (0.35, 0.5, 0.65, 0.8, 0.9, 0.95, 0.98)
BELIEF = 8.0  # observations that a prior chance is worth
FORGET = 0.995  # decay of a class's older observations with each new one
# Prior P(accepted) of a copied id, by match length (rows) and agreement, from the conversation and from
# earlier answers: measured on SmolLM2's greedy answers, rounded.
FIRST_CHANCES = (
    ((0.6, 0.6, 0.5, 0.3), (0.63, 0.78, 0.5, 0.33), (0.72, 0.78, 0.55, 0.25), (0.78, 0.79, 0.55, 0.3),
        (0.83, 0.82, 0.55, 0.35),
     (0.85, 0.88, 0.6, 0.35), (0.91, 0.92, 0.65, 0.35), (0.95, 0.96, 0.7, 0.35)),
    ((0.35, 0.45, 0.4, 0.25), (0.45, 0.6, 0.45, 0.3), (0.55, 0.67, 0.5, 0.27), (0.5, 0.65, 0.5, 0.25),
        (0.5, 0.73, 0.5, 0.35),
     (0.57, 0.9, 0.5, 0.3), (0.62, 0.88, 0.5, 0.25), (0.75, 0.9, 0.5, 0.3)),
)  # fmt: skip
# Prior P(accepted) of a continuation, by kind (rows: a context of one id that was met once, twice, more
# often; of two ids …) and share: measured on answers of the 1.5B and SmolLM2 to tasks.
FIRST_OF_CONTINUATIONS = (
    (0.33, 0.33, 0.33, 0.33, 0.33, 0.33, 0.33, 0.33), (0.1, 0.15, 0.2, 0.3, 0.5, 0.6, 0.7, 0.7),
    (0.1, 0.18, 0.25, 0.38, 0.55, 0.75, 0.85, 0.9),
    (0.3, 0.3, 0.3, 0.35, 0.45, 0.6, 0.7, 0.7), (0.12, 0.15, 0.2, 0.3, 0.45, 0.6, 0.8, 0.85),
    (0.2, 0.28, 0.35, 0.5, 0.65, 0.75, 0.85, 0.95),
    (0.35, 0.4, 0.45, 0.5, 0.55, 0.6, 0.65, 0.7), (0.1, 0.12, 0.2, 0.3, 0.45, 0.55, 0.7, 0.75),
    (0.2, 0.28, 0.35, 0.5, 0.65, 0.75, 0.85, 0.95),
    (0.5, 0.5, 0.5, 0.58, 0.66, 0.66, 0.74, 0.81), (0.2, 0.25, 0.4, 0.5, 0.65, 0.8, 0.9, 0.92),
    (0.12, 0.27, 0.43, 0.63, 0.78, 0.88, 0.93, 0.98),
)  # fmt: skip


class CopyChances:
    """How often ids from memory are accepted, by class (`class_of_copy` and `class_of_continuation` in
    `memory_chain.py`)."""

    def __init__(self) -> None:
        first = [chance for source in FIRST_CHANCES for row in source for chance in row]
        first += [chance for kind in FIRST_OF_CONTINUATIONS for chance in kind]
        self.weight = np.full(len(first), BELIEF)
        self.accepted = BELIEF * np.array(first)

    @property
    def table(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The weight of each class, and the accepted part of it."""
        return self.weight, self.accepted


@dataclass(slots=True)
class CopiedDraft:
    """Target ids that may be proposed: for each its origin, and the chance that it and all before
    it are accepted."""

    ids: list[int] = field(default_factory=list)
    matches: list[Match] = field(default_factory=list)
    chances: list[float] = field(default_factory=list)
