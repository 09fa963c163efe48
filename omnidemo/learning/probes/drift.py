"""A change of topic, seen as a drop of the acceptance against its own recent level."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable
from itertools import accumulate
from statistics import fmean, variance

RECENT = 7  # requests that are compared
LEVEL = 30  # requests before them that they are compared with
FEWEST = 12  # requests that make a level
LEAST_DROP = 0.08
ERRORS = 3.0  # standard errors
# requests that have to agree: the test is made again with every request, so one alone is too often chance
IN_A_ROW = 2


class DriftDetector:
    """Detects a fall of the acceptance level, from one acceptance per request.

    With m recent values and n before them (mean m̄ and variance s² of the latter), it fires where m̄ − recent
    mean > max(LEAST_DROP, ERRORS · s · √(1/m + 1/n)), IN_A_ROW times. Both windows move, so a slow drift is
    followed, not reported. After it has fired, the values from the estimated onset on are the new level.
    """

    def __init__(self) -> None:
        self._values: deque[float] = deque(maxlen=LEVEL + RECENT)
        self._low = 0
        # how many of the newest values belong to the new topic, as far as one can tell, after `add` was True
        self.onset = 0

    def add(self, value: float) -> bool:
        """Take the next acceptance (0 to 1); whether a shift shows with it."""
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
        # The onset is where the values below the middle between both levels begin to add up.
        below = list(accumulate(mean - drop / 2 - value for value in reversed(recent)))
        self.onset = 1 + max(range(len(below)), key=below.__getitem__)
        self._values = deque(known[len(known) - self.onset :], maxlen=LEVEL + RECENT)
        return True


def shifts(values: Iterable[float | None]) -> list[int]:
    """Indices of the requests with which a topic shift set in, estimated, for a chart of the finite values;
    None is left out."""
    detector, found = DriftDetector(), []
    known = [(index, value) for index, value in enumerate(values) if value is not None]
    for number, (_, value) in enumerate(known, 1):
        if detector.add(value):
            found.append(known[number - detector.onset][0])
    return found
