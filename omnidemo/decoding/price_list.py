"""The prices of rounds by their rows. The list is known before the first answer, and rounds correct it.

    price(rows, positions) = reading + rows · computing + positions · attention + the host's share
                             + drafter tokens · step + the fixed cost of a draft

Reading the weights is paid once a pass, whatever its rows. Computing is paid for each row, unevenly by the
form of the weights, so `passes` has a price for several numbers of rows, with linear interpolation between
them. Prices are in seconds, but decisions use ratios: a machine that slows down as a whole changes no
decision.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from statistics import median
from typing import Any, Literal, NamedTuple

import numpy as np

Origin = Literal["guessed", "stored", "measured"]
ROWS = (1, 2, 4, 6, 8, 16)  # numbers of rows with a price; a list may have fewer
MOST_HEARD = 1024  # rounds that wait for the next correction
FEW = 4  # rounds below which nothing is corrected yet
MOST_PACE = 8.0  # largest factor of all prices in one correction
MOST_CHANGE = 2.0  # largest factor of one price against the others
COUNTED = 16  # most rounds of a kind that count, so that a long answer does not outweigh the list
# rounds of a kind that the list counts as: guessed, and measured or corrected
GUESS, KNOWN = 0.5, 2.0
# part of it that holds the price of computing, which rounds of few rows hardly show
OPEN = 0.125
# the share by which a list returns to the guess with an answer of plain rounds, and the rows that measure the
# distance to it
DOUBT, FAR = 0.4, 4
ENOUGH = 16  # rounds that turn a guess into a measurement
KEPT = 15  # newest times of each kind for `taken`


class Timed(NamedTuple):
    """The times of a round. `rows`: of the target's pass; `draft`: seconds of drafting `drafted` tokens;
    `seconds`: of the whole round; `positions`: ids that the target had read."""

    rows: int
    drafted: int
    draft: float
    seconds: float
    positions: int = 0


@dataclass(slots=True)
class PriceList:
    """The prices of a pair's passes on this machine. Without a clock and without decisions. It changes in
    `settle` alone, so that one list holds for a whole answer."""

    # seconds of a pass of so many rows at no position, with the host's share
    passes: dict[int, float]
    step: float  # of a drafter token
    attention: float = 0.0  # of each position, in a pass
    beside: float = 0.0  # fixed cost of a draft: the target's weights leave the cache
    row: float = 0.15  # guess of one more row in plain rounds, from bytes and multiply-adds
    origin: Origin = "guessed"
    at: float | None = None  # UNIX time of the newest measurement or round; None: a guess
    heard: int = 0  # rounds that have corrected it
    rows_heard: int = 0  # those with several rows

    _new: list[Timed] | None = None
    _kept: dict[tuple[int, bool], list[float]] | None = None

    @classmethod
    def linear(cls, reading: float = 1.0, row: float = 0.15, step: float = 0.1, **more: Any) -> PriceList:
        """A list with equal prices for all rows. `reading`: seconds of a pass of one row."""
        return cls({rows: reading + (rows - 1) * row for rows in ROWS}, step, row=row / reading, **more)

    def price(self, rows: int, positions: int = 0, drafted: int = 0) -> float:
        """Seconds of a round with so many rows in its pass and drafter tokens in its draft."""
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

    def become(self, other: PriceList) -> None:
        """Take over another list's prices, because passes are computed in another way from now on."""
        self.passes, self.step, self.attention = dict(other.passes), other.step, other.attention
        self.beside, self.origin, self.at, self.heard = other.beside, other.origin, other.at, other.heard
        self.row, self.rows_heard = other.row, other.rows_heard
        self._new, self._kept = None, other._kept

    def fixed(self) -> PriceList:
        """A copy that no later round corrects."""
        made = copy(self)
        made.passes, made._new, made._kept = dict(self.passes), None, None
        return made

    def note(self, round: Timed, at: float | None = None) -> None:
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
        """Correct the prices by the rounds since: first all prices by the machine's pace, which changes no
        decision; then each price by the remaining difference, slowly. Only the median of each kind of round
        counts, so that single slow rounds change nothing."""
        new = self._new or []
        if len(new) < FEW:
            return
        self._new = None
        known = KNOWN if self.known else GUESS
        self._keep_pace(median(one.seconds / self.price(one.rows, one.positions, one.drafted) for one in new))
        self._correct_steps([one for one in new if one.drafted], known)
        self._correct_passes(new, known)
        self.heard += len(new)
        several = sum(one.rows > 1 for one in new)
        self.rows_heard += several
        if not several:
            self._doubt_rows()

    def _keep_pace(self, pace: float) -> None:
        pace = min(max(pace, 1.0 / MOST_PACE), MOST_PACE)
        self.passes = {rows: pace * seconds for rows, seconds in self.passes.items()}
        self.step, self.attention, self.beside = (
            pace * self.step, pace * self.attention, pace * self.beside,
        )  # fmt: skip

    def _correct_steps(self, drafts: Sequence[Timed], known: float) -> None:
        """Correct the step by the slope of the drafting time over the drafted tokens. The fixed cost of a
        draft is found with the passes."""
        kinds: dict[int, list[float]] = {}
        for one in drafts:
            kinds.setdefault(one.drafted, []).append(one.draft)
        points = [(drafted, median(times), len(times)) for drafted, times in kinds.items()]
        total = sum(count for *_, count in points)
        if len(points) < 2:
            return
        x = sum(count * drafted for drafted, _, count in points) / total
        y = sum(count * seconds for _, seconds, count in points) / total
        spread = sum(count * (drafted - x) ** 2 for drafted, _, count in points)
        slope = sum(count * (drafted - x) * (seconds - y) for drafted, seconds, count in points) / spread
        part = min(max(slope / self.step, 1.0 / MOST_PACE), MOST_PACE)
        weight = min(spread, COUNTED) / (min(spread, COUNTED) + known)
        self.step *= math.exp(weight * math.log(part))

    def _doubt_rows(self) -> None:
        """All rounds were plain. Where rows seem dear and hardly any round has confirmed that, a busy machine
        may have made the list. Then the guess counts more with each answer, until rounds with several rows
        come."""
        first = self.price(1)
        dear = (self.price(FAR) / first - 1.0) / ((FAR - 1) * self.row) if self.row > 0.0 else 1.0
        if dear > 1.0:
            part = DOUBT * COUNTED / (COUNTED + 8 * self.rows_heard)
            self.passes = {
                rows: first + (seconds - first) * dear**-part for rows, seconds in self.passes.items()
            }

    def _correct_passes(self, new: Sequence[Timed], known: float) -> None:
        """Correct reading, computing and the fixed cost of a draft, each by a factor: least squares over the
        kinds of rounds, where the known prices count as `known` rounds."""
        kinds: dict[tuple[int, bool], list[Timed]] = {}
        for one in new:
            kinds.setdefault((one.rows, one.drafted > 0), []).append(one)
        first = self.price(1)
        equations, values = [np.diag(np.sqrt([known, OPEN * known, known]))], [np.zeros(3)]
        for (rows, drafts), times in kinds.items():
            positions = median(one.positions for one in times)
            reading, computing = first + positions * self.attention, self.price(rows) - first
            draft = self.beside if drafts else 0.0
            expected = reading + computing + draft
            seen = max(0.0, median(one.seconds - one.drafted * self.step for one in times))
            part = min(max(seen / expected, 1.0 / MOST_PACE), MOST_PACE) - 1.0
            weight = math.sqrt(min(len(times), COUNTED))
            # the cost of a draft is in units of a pass, because it may be 0 so far
            equations.append(weight * np.array([[reading, computing, first * drafts]]) / expected)
            values.append(np.array([weight * part]))
        found = np.linalg.lstsq(np.concatenate(equations), np.concatenate(values), rcond=None)[0]
        changes = [min(max(1.0 + float(part), 1.0 / MOST_CHANGE), MOST_CHANGE) for part in found[:2]]
        more = {rows: seconds - first for rows, seconds in self.passes.items()}
        self.passes = {rows: changes[0] * first + changes[1] * each for rows, each in more.items()}
        self.attention *= changes[0]
        self.beside = min(max(0.0, self.beside + first * float(found[2])), first)

    def plain_beside(self, rounds: Sequence[Timed]) -> float | None:
        """Seconds of a plain round at the pace of these rounds; None without measurements."""
        if not self.known:
            return None
        paces = [one.seconds / self.price(one.rows, one.positions, one.drafted) for one in rounds]
        return self.price(1) * (median(paces) if paces else 1.0)

    def to_file(self) -> dict[str, Any]:
        """The list as JSON values."""
        return {
            "passes": {str(rows): seconds for rows, seconds in self.passes.items()}, "step": self.step,
            "attention": self.attention, "beside": self.beside, "row": self.row, "at": self.at,
            "heard": self.heard, "rows_heard": self.rows_heard,
            "took": [[*kind, times] for kind, times in sorted((self._kept or {}).items())],
        }  # fmt: skip

    @classmethod
    def from_file(cls, kept: Any) -> PriceList | None:
        """The list that `to_file` gave; None for other values."""
        try:
            passes = {int(rows): float(seconds) for rows, seconds in kept["passes"].items()}
            step, attention, beside = (float(kept[name]) for name in ("step", "attention", "beside"))
            row, at = float(kept["row"]), float(kept["at"])
            heard, several = int(kept["heard"]), int(kept["rows_heard"])
            took = {(int(rows), bool(drafts)): [*map(float, times)] for rows, drafts, times in kept["took"]}
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
            return None
        right = all(0.0 < seconds < math.inf for seconds in (*passes.values(), step)) and 1 in passes
        rest = all(0.0 <= seconds < math.inf for seconds in (attention, beside, row, at))
        right = right and all(0.0 < each < math.inf for times in took.values() for each in times)
        took = {kind: times for kind, times in took.items() if times}
        if not (right and rest):
            return None
        return cls(passes, step, attention, beside, row, "stored", at, heard, several, None, took)
