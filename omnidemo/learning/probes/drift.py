"""Changes of topic, detected as drops of the acceptance below its own recent level."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable
from itertools import accumulate
from statistics import fmean, variance

RECENT = 7  # newest requests
LEVEL = 30  # requests before them, which make the level
FEWEST = 12  # requests that make a level
LEAST_DROP = 0.08
ERRORS = 3.0  # standard errors
IN_A_ROW = 2  # requests that must agree: every request repeats the test, so one alone is too often chance


class DriftDetector:
    """Detects a fall of the acceptance level, from one acceptance per request.

    With m recent values and n before them (their mean m̄ and variance s²), it fires where m̄ − recent mean >
    max(LEAST_DROP, ERRORS · s · √(1/m + 1/n)) IN_A_ROW times. Both windows move, so a slow drift does not
    fire. After it has fired, the values from the estimated onset on are the new level.
    """

    def __init__(self) -> None:
        self._values: deque[float] = deque(maxlen=LEVEL + RECENT)
        self._low = 0
        self.onset = (
            0  # after `add` was True: how many of the newest values belong to the new topic, estimated
        )

    def add(self, value: float) -> bool:
        """Add an acceptance (0 to 1); whether it reveals a shift."""
        self._values.append(value)
        if len(self._values) < FEWEST + RECENT:
            return False
        known = list(self._values)
        level, recent = known[:-RECENT], known[-RECENT:]
        mean = fmean(level)
        drop = mean - fmean(recent)
        error = math.sqrt(variance(level) * (1 / len(recent) + 1 / len(level)))
        self._low = self._low + 1 if drop > max(LEAST_DROP, ERRORS * error) else 0
        if self._low < IN_A_ROW:
            return False
        self._low = 0
        # The onset is where values below the middle of both levels begin to add up.
        below = list(accumulate(mean - drop / 2 - value for value in reversed(recent)))
        self.onset = 1 + max(range(len(below)), key=below.__getitem__)
        self._values = deque(known[len(known) - self.onset :], maxlen=LEVEL + RECENT)
        return True


def shifts(values: Iterable[float | None]) -> list[int]:
    """Indices of the estimated onsets of topic shifts in `values`, without those that are None."""
    detector, found = DriftDetector(), []
    known = [(index, value) for index, value in enumerate(values) if value is not None]
    for number, (_, value) in enumerate(known, 1):
        if detector.add(value):
            found.append(known[number - detector.onset][0])
    return found
