"""What a copied id costs: its row of the target's pass, by measured rounds."""

from __future__ import annotations

from collections import defaultdict, deque
from statistics import median

NEWEST = 15  # times of each length that count, of which the median is used, so that one slow round changes nothing
FIRST_ROW = 0.15  # plain rounds that a row is believed to take at first
BELIEVED_AT, BELIEF = (1, 8), 1.5  # ids of a draft for which that counts as so many times


class CopyTimes:
    """A round that proposes n copied ids is taken to last `first` + n · `row` seconds more than a plain one."""

    def __init__(self) -> None:
        self._times: defaultdict[int, deque[float]] = defaultdict(lambda: deque(maxlen=NEWEST))  # by number of ids proposed
        self._fitted: tuple[float, float, float] | None = None  # a plain round's seconds, and the line by them

    def __getstate__(self) -> dict[int, list[float]]:
        return {count: list(times) for count, times in self._times.items()}

    def __setstate__(self, state: dict[int, list[float]]) -> None:
        CopyTimes.__init__(self)
        for count, times in state.items():
            self._times[count].extend(times)

    def note(self, proposed: int, seconds: float) -> None:
        """Take the seconds of a round that proposed so many ids."""
        self._times[proposed].append(seconds)
        self._fitted = None

    def line(self, plain: float) -> tuple[float, float]:
        """(`first`, `row`) where a plain round lasts `plain` seconds: least squares over the medians, weighted by how many times there are."""
        if self._fitted is None or self._fitted[0] != plain:
            points = [(count, FIRST_ROW * plain * count, BELIEF) for count in BELIEVED_AT]
            points += [(count, median(times) - plain, len(times)) for count, times in self._times.items()]
            total = sum(weight for _, _, weight in points)
            x = sum(weight * count for count, _, weight in points) / total
            y = sum(weight * more for _, more, weight in points) / total
            squares = sum(weight * (count - x) ** 2 for count, _, weight in points)
            row = max(0.0, sum(weight * (count - x) * (more - y) for count, more, weight in points) / squares)
            self._fitted = plain, y - row * x, row
        return self._fitted[1:]
