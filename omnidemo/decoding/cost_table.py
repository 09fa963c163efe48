"""The cost table: the price of a round by the rows of its target pass. It is known before the first answer,
and rounds correct it.

    price(rows, positions) = reading + rows · computing + positions · attention + the host's share
                             + drafter tokens · step + the fixed cost of a draft

A pass reads the weights once, whatever its rows. Computing costs are per row, and uneven with some weight
formats, so `passes` has prices for several numbers of rows and interpolates between them. Prices are in
seconds; decisions use ratios, so a machine that slows down as a whole changes none.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from statistics import median
from typing import Any, Literal, NamedTuple

import numpy as np

Origin = Literal["guessed", "stored", "measured"]
ROWS = (1, 2, 4, 6, 8, 16)  # numbers of rows with a price; a table may have fewer
MOST_HEARD = 1024  # rounds that wait for the next correction
FEW = 4  # fewer rounds correct nothing
MOST_CHANGE = 4.0  # largest factor of a price in one correction
COUNTED = 16  # most rounds of a kind that count, so that a long answer does not outweigh the table
KNOWN = 2.0  # rounds that the table counts as
# factor of computing costs after an answer without drafts: else costs that a busy machine has raised would
# never be measured again
FORGIVEN = 0.9
ENOUGH = 16  # rounds that turn a guess into a measurement
KEPT = 15  # newest times of each kind for `taken`


class RoundTimes(NamedTuple):
    """The times of a round. `rows`: of the target's pass; `draft`: seconds of drafting `drafted` tokens;
    `seconds`: of the whole round; `positions`: ids that the target had read."""

    rows: int
    drafted: int
    draft: float
    seconds: float
    positions: int = 0


@dataclass(slots=True)
class CostTable:
    """The prices of a pair's passes on this machine. It changes in `settle` alone, so one table holds for a
    whole answer."""

    # seconds of a pass of so many rows at no position, with the host's share
    passes: dict[int, float]
    step: float  # of a drafter token
    attention: float = 0.0  # of each position, in a pass
    beside: float = 0.0  # of each draft
    origin: Origin = "guessed"
    at: float | None = None  # UNIX time of the newest measurement or round; None: a guess
    heard: int = 0  # rounds that have corrected it

    _new: list[RoundTimes] | None = None
    _kept: dict[tuple[int, bool], list[float]] | None = None

    @classmethod
    def linear(cls, reading: float = 1.0, row: float = 0.15, step: float = 0.1, **more: Any) -> CostTable:
        """A list with equal prices for all rows. `reading`: seconds of a pass of one row."""
        return cls({rows: reading + (rows - 1) * row for rows in ROWS}, step, **more)

    def price(self, rows: int, positions: int = 0, drafted: int = 0) -> float:
        """Seconds of a round by the rows of its target pass and its drafter tokens."""
        found = self.passes.get(rows)
        if found is None:
            found = self._between(rows)
        return found + positions * self.attention + (drafted * self.step + self.beside if drafted else 0.0)

    def _between(self, rows: int) -> float:
        known = sorted(self.passes)
        if len(known) < 2:
            return self.passes[known[0]]
        at = min(max(1, bisect_right(known, rows)), len(known) - 1)
        low, high = known[at - 1], known[at]
        row = (self.passes[high] - self.passes[low]) / (high - low)
        return self.passes[low] + row * (rows - low)

    @property
    def known(self) -> bool:
        """Whether its prices were measured, not guessed."""
        return self.origin != "guessed" or self.heard >= ENOUGH

    def become(self, other: CostTable) -> None:
        """Take the prices of another table: passes are computed in another way from now on."""
        self.passes, self.step, self.attention = dict(other.passes), other.step, other.attention
        self.beside, self.origin, self.at, self.heard = other.beside, other.origin, other.at, other.heard
        self._new, self._kept = None, other._kept

    def fixed(self) -> CostTable:
        """A copy that no later round corrects."""
        made = copy(self)
        made.passes, made._new, made._kept = dict(self.passes), None, None
        return made

    def note(self, round: RoundTimes, at: float | None = None) -> None:
        """Note a round's times for the next `settle`. `at`: the UNIX time."""
        if not 0.0 < round.seconds < math.inf:
            return
        self._new = [] if self._new is None else self._new
        self._kept = {} if self._kept is None else self._kept
        if len(self._new) < MOST_HEARD:
            self._new.append(round)
        times = self._kept.setdefault((round.rows, round.drafted > 0), [])
        times.append(round.seconds)
        del times[:-KEPT]
        self.at = at if at is not None else self.at

    def taken(self) -> Mapping[tuple[int, bool], tuple[int, float]]:
        """(rows, drafted or not) → (number, median seconds) of the newest rounds."""
        return {kind: (len(times), median(times)) for kind, times in sorted((self._kept or {}).items())}

    def settle(self) -> None:
        """Correct the prices by the rounds noted since: reading and computing by the target passes, the fixed
        cost of a draft and of a step by the drafts."""
        new = self._new or []
        if len(new) < FEW:
            return
        self._new, first = None, self.price(1)
        passes, drafts = dict[int, list[RoundTimes]](), dict[int, list[RoundTimes]]()
        for one in new:
            passes.setdefault(one.rows, []).append(one)
            drafts.setdefault(one.drafted, []).append(one)
        drafts.pop(0, None)
        reading, computing = _factors([
            (first + median(one.positions for one in same) * self.attention, self.price(rows) - first,
             [one.seconds - one.draft for one in same])
            for rows, same in passes.items()
        ])  # fmt: skip
        beside, step = _factors([
            (self.beside, drafted * self.step, [one.draft for one in same])
            for drafted, same in drafts.items()
        ])  # fmt: skip
        if [*passes] == [1]:
            computing = FORGIVEN
        self.passes = {
            rows: reading * first + computing * (seconds - first) for rows, seconds in self.passes.items()
        }
        self.attention *= reading
        self.beside, self.step = beside * self.beside, step * self.step
        self.heard += len(new)

    def plain_beside(self, rounds: Sequence[RoundTimes]) -> float | None:
        """Seconds of a plain round at the pace of these rounds; None without measurements."""
        if not self.known:
            return None
        paces = [one.seconds / self.price(one.rows, one.positions, one.drafted) for one in rounds]
        return self.price(1) * (median(paces) if paces else 1.0)

    def to_file(self) -> dict[str, Any]:
        """The table as JSON values."""
        return {
            "passes": {str(rows): seconds for rows, seconds in self.passes.items()}, "step": self.step,
            "attention": self.attention, "beside": self.beside, "at": self.at, "heard": self.heard,
            "took": [[*kind, times] for kind, times in sorted((self._kept or {}).items())],
        }  # fmt: skip

    @classmethod
    def from_file(cls, kept: Any) -> CostTable | None:
        """The table that `to_file` wrote; None for other values."""
        try:
            passes = {int(rows): float(seconds) for rows, seconds in kept["passes"].items()}
            step, attention, beside = (float(kept[name]) for name in ("step", "attention", "beside"))
            at, heard = float(kept["at"]), int(kept["heard"])
            took = {(int(rows), bool(drafts)): [*map(float, times)] for rows, drafts, times in kept["took"]}
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
            return None
        right = all(0.0 < seconds < math.inf for seconds in (*passes.values(), step)) and 1 in passes
        rest = all(0.0 <= seconds < math.inf for seconds in (attention, beside, at))
        right = right and all(0.0 < each < math.inf for times in took.values() for each in times)
        took = {kind: times for kind, times in took.items() if times}
        if not (right and rest):
            return None
        return cls(passes, step, attention, beside, "stored", at, heard, None, took)


def _factors(kinds: Iterable[tuple[float, float, Sequence[float]]]) -> list[float]:
    """The factors of a fixed and of a growing price that explain the times of several kinds of rounds: least
    squares, in which the known prices count as KNOWN rounds. `kinds`: both prices, and the times; the median
    counts, so single slow rounds change nothing."""
    equations, values = [math.sqrt(KNOWN) * np.eye(2)], [np.zeros(2)]
    for fixed, growing, times in kinds:
        expected, weight = fixed + growing, math.sqrt(min(len(times), COUNTED))
        equations.append(weight / expected * np.array([[fixed, growing]]))
        values.append(np.array([weight * (_limited(median(times) / expected) - 1.0)]))
    found = np.linalg.lstsq(np.concatenate(equations), np.concatenate(values), rcond=None)[0]
    return [_limited(1.0 + part) for part in found.tolist()]


def _limited(change: float) -> float:
    return min(max(change, 1.0 / MOST_CHANGE), MOST_CHANGE)
