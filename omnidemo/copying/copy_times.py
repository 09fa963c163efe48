"""What a copied id costs: its row of the target's pass, by measured rounds."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Sequence
from statistics import median

import numpy as np

from omnidemo.copying.copier import LONGEST_COPY

NEWEST = 15  # times of each length that count
# times below which the least counts and not the median, because the first rounds of a process are slow
FEW = 3
FIRST_ROW = 0.15  # plain rounds that a row is believed to take at first
BELIEVED_AT, BELIEF = (1, 8), 1.5  # ids of a draft for which that counts as so many times
TRUST = 2.0  # times of a length that count as much as the line does
MOST = 1.0  # plain rounds that a row can be measured to take, so that one slow round does not end copying
# rounds without a copy after which the oldest times are forgotten: what seemed too dear is tried again
STALE = 64


class CopyTimes:
    """A round that proposes n copied ids is taken to last as much more than a plain one as such rounds did;
    where there are few of them, as a line through all says: the first rows cost less than later ones, and how
    much less is another for each form of weights."""

    def __init__(self) -> None:
        self._times: defaultdict[int, deque[float]] = defaultdict(_newest)  # by number of ids proposed
        self._known: tuple[float, list[float]] | None = None  # a plain round's seconds, and the costs by them
        self._idle = 0  # rounds since the newest time

    def note(self, proposed: int, seconds: float) -> None:
        """Take the seconds of a round that proposed so many copied ids; 0: none."""
        if proposed:
            self._times[proposed].append(seconds)
            self._known, self._idle = None, 0
            return
        self._idle += 1
        if self._idle >= STALE and self._times:
            for count in [*self._times]:
                self._times[count].popleft()
                if not self._times[count]:
                    del self._times[count]
            self._known, self._idle = None, 0

    def costs(self, plain: float) -> list[float]:
        """Seconds more of a round that proposes 0 … LONGEST_COPY ids, where a plain round lasts `plain`
        seconds."""
        if self._known is None or self._known[0] != plain:
            points = {
                count: (self._more(count, plain), float(len(times))) for count, times in self._times.items()
            }
            believed = [(count, FIRST_ROW * plain * count, BELIEF) for count in BELIEVED_AT]
            first, row = _line([*believed, *((count, *point) for count, point in points.items())])
            # How far rounds of a length are off the line; lengths between two are off as these are.
            off = {
                count: (more - first - row * count) * weight / (weight + TRUST)
                for count, (more, weight) in sorted(points.items())
            }
            numbers = range(LONGEST_COPY + 1)
            apart = np.interp(numbers, [*off], [*off.values()]).tolist() if off else [0.0] * len(numbers)
            self._known = plain, [0.0, *(max(0.0, first + row * n + apart[n]) for n in numbers[1:])]
        return self._known[1]

    def _more(self, count: int, plain: float) -> float:
        times = self._times[count]
        return min((median(times) if len(times) >= FEW else min(times)) - plain, MOST * plain * count)


def _line(points: Sequence[tuple[int, float, float]]) -> tuple[float, float]:
    """(value at 0, slope, which is not negative) by least squares over (x, y, weight)."""
    total = sum(weight for _, _, weight in points)
    x = sum(weight * count for count, _, weight in points) / total
    y = sum(weight * more for _, more, weight in points) / total
    squares = sum(weight * (count - x) ** 2 for count, _, weight in points)
    row = max(0.0, sum(weight * (count - x) * (more - y) for count, more, weight in points) / squares)
    return y - row * x, row


def _newest() -> deque[float]:
    return deque(maxlen=NEWEST)
