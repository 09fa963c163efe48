"""What a copied id costs: its row of the target's pass, by measured rounds."""

from __future__ import annotations

from collections import defaultdict, deque
from statistics import median

NEWEST = 15  # times of each length that count
FEW = 3  # times below which the least counts and not the median, because the first rounds of a process are slow
FIRST_ROW = 0.15  # plain rounds that a row is believed to take at first
BELIEVED_AT, BELIEF = (1, 8), 1.5  # ids of a draft for which that counts as so many times
MOST = 1.0  # plain rounds that a row can be measured to take, so that one slow round does not end copying
STALE = 64  # rounds without a copy after which the oldest times are forgotten: what seemed too dear is tried again


class CopyTimes:
    """A round that proposes n copied ids is taken to last `first` + n · `row` seconds more than a plain one."""

    def __init__(self) -> None:
        self._times: defaultdict[int, deque[float]] = defaultdict(_newest)  # by number of ids proposed
        self._fitted: tuple[float, float, float] | None = None  # a plain round's seconds, and the line by them
        self._idle = 0  # rounds since the newest time

    def note(self, proposed: int, seconds: float) -> None:
        """Take the seconds of a round that proposed so many copied ids; 0: none."""
        if proposed:
            self._times[proposed].append(seconds)
            self._fitted, self._idle = None, 0
            return
        self._idle += 1
        if self._idle >= STALE and self._times:
            for count in [*self._times]:
                self._times[count].popleft()
                if not self._times[count]:
                    del self._times[count]
            self._fitted, self._idle = None, 0

    def line(self, plain: float) -> tuple[float, float]:
        """(`first`, `row`) where a plain round lasts `plain` seconds: least squares over the medians, each weighted by its times."""
        if self._fitted is None or self._fitted[0] != plain:
            points = [(count, FIRST_ROW * plain * count, BELIEF) for count in BELIEVED_AT]
            points += [(count, self._more(count, plain), float(len(times))) for count, times in self._times.items()]
            total = sum(weight for _, _, weight in points)
            x = sum(weight * count for count, _, weight in points) / total
            y = sum(weight * more for _, more, weight in points) / total
            squares = sum(weight * (count - x) ** 2 for count, _, weight in points)
            row = max(0.0, sum(weight * (count - x) * (more - y) for count, more, weight in points) / squares)
            self._fitted = plain, y - row * x, row
        return self._fitted[1:]

    def _more(self, count: int, plain: float) -> float:
        times = self._times[count]
        return min((median(times) if len(times) >= FEW else min(times)) - plain, MOST * plain * count)


def _newest() -> deque[float]:
    return deque(maxlen=NEWEST)
