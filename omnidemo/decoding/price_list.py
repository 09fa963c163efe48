"""What a round costs, by its rows: a list of prices, known before the first answer, which rounds correct.

    price(rows, positions) = reading + rows · computing + positions · attention + the host's share
                             + drafter tokens · step + what a draft costs besides

Reading the weights is paid once for a pass, whatever its rows. Computing is paid for each row; how much
differs from row to row by the form of the weights, so `passes` has a price for each of several numbers of
rows, and those between lie on lines. All prices are in seconds, but what is decided by them are ratios: a
machine that gets slower all over changes no decision.
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
ROWS = (1, 2, 4, 6, 8, 16)  # whose passes have prices; a list may have fewer of them
MOST_HEARD = 1024  # rounds that wait for the next correction
FEW = 4  # rounds below which nothing is corrected yet
MOST_PACE = 8.0  # times by which the pace of all prices may change at once
MOST_CHANGE = 2.0  # the same of one price against the others
COUNTED = 16  # rounds of a kind that count at most, so that a long answer does not outweigh what was known
# How many rounds of a kind what is known counts as: a guess, and a list that was measured or corrected.
GUESS, KNOWN = 0.5, 2.0
# The part of it by which computing is held: in the rounds of few rows, which are the most, it hardly shows.
OPEN = 0.125
# The part of the way to the guess that a list goes with an answer that tells nothing of several rows, and the
# rows by which it is seen how far that is
DOUBT, FAR = 0.4, 4
ENOUGH = 16  # rounds from which on even a guess has become a measurement
KEPT = 15  # newest times of each kind that are shown


class Timed(NamedTuple):
    """What a round took. `rows`: of the target's pass; `draft`: seconds of drafting, for `drafted` tokens;
    `seconds`: of all of it; `positions`: that the target had read."""

    rows: int
    drafted: int
    draft: float
    seconds: float
    positions: int = 0


@dataclass(slots=True)
class PriceList:
    """The prices of a pair's passes on this machine. It has no clock, decides nothing, and changes in
    `settle` alone, so that an answer goes by one list from its beginning to its end."""

    # seconds of a pass of so many rows at no position, with the host's share
    passes: dict[int, float]
    step: float  # of a drafter token
    attention: float = 0.0  # of each position, in a pass
    beside: float = 0.0  # of a draft, besides its steps and rows: the target's weights have left the cache
    row: float = 0.15  # a row more, in plain rounds, as bytes and multiply-adds let guess
    origin: Origin = "guessed"
    at: float | None = None  # UNIX time of the newest measurement or round that it knows; None: a guess
    heard: int = 0  # rounds that have corrected it
    rows_heard: int = 0  # those of them whose passes had several rows

    _new: list[Timed] | None = None
    _kept: dict[tuple[int, bool], list[float]] | None = None

    @classmethod
    def linear(cls, reading: float = 1.0, row: float = 0.15, step: float = 0.1, **more: Any) -> PriceList:
        """A list by which every row costs the same. `reading`: seconds of a pass of one row."""
        return cls({rows: reading + (rows - 1) * row for rows in ROWS}, step, row=row / reading, **more)

    def price(self, rows: int, positions: int = 0, drafted: int = 0) -> float:
        """Seconds of a round whose pass has so many rows, and whose draft has so many drafter tokens."""
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
        """Whether its seconds were measured, and not guessed."""
        return self.origin != "guessed" or self.heard >= ENOUGH

    def become(self, other: PriceList) -> None:
        """Take the prices of another list, for passes that are computed in another way from now on."""
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
        """Take a round's times, which the next `settle` corrects prices by. `at`: the UNIX time."""
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
        """Of the newest rounds by (rows, whether the drafter drafted): how many, and their median seconds."""
        return {kind: (len(times), median(times)) for kind, times in sorted((self._kept or {}).items())}

    def settle(self) -> None:
        """Correct the prices by the rounds since: first all of them by the machine's pace, which changes no
        decision, then each by what is left, slowly. The median of each kind of round counts, so that single
        slow ones change nothing."""
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
        """The step by how much longer it takes to draft more tokens. What drafts of any length take besides
        is found with the passes."""
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
        """All rounds were plain. If rows seem dear and hardly any round has told so, that may be why: a busy
        machine made the list. What was guessed then counts more with each answer, until rounds tell."""
        first = self.price(1)
        dear = (self.price(FAR) / first - 1.0) / ((FAR - 1) * self.row) if self.row > 0.0 else 1.0
        if dear > 1.0:
            part = DOUBT * COUNTED / (COUNTED + 8 * self.rows_heard)
            self.passes = {
                rows: first + (seconds - first) * dear**-part for rows, seconds in self.passes.items()
            }

    def _correct_passes(self, new: Sequence[Timed], known: float) -> None:
        """Reading, computing and what a draft costs besides, each by a factor of its own: least squares over
        the kinds of rounds, each off by its median part, where what is known counts as `known` rounds."""
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
            # of a draft the unit is a pass, because it may have cost nothing so far
            equations.append(weight * np.array([[reading, computing, first * drafts]]) / expected)
            values.append(np.array([weight * part]))
        found = np.linalg.lstsq(np.concatenate(equations), np.concatenate(values), rcond=None)[0]
        changes = [min(max(1.0 + float(part), 1.0 / MOST_CHANGE), MOST_CHANGE) for part in found[:2]]
        more = {rows: seconds - first for rows, seconds in self.passes.items()}
        self.passes = {rows: changes[0] * first + changes[1] * each for rows, each in more.items()}
        self.attention *= changes[0]
        self.beside = min(max(0.0, self.beside + first * float(found[2])), first)

    def plain_beside(self, rounds: Sequence[Timed]) -> float | None:
        """Seconds that a plain round would have taken at the pace of these rounds; None where nothing was
        measured yet."""
        if not self.known:
            return None
        paces = [one.seconds / self.price(one.rows, one.positions, one.drafted) for one in rounds]
        return self.price(1) * (median(paces) if paces else 1.0)

    def to_file(self) -> dict[str, Any]:
        """Its prices as JSON has them."""
        return {
            "passes": {str(rows): seconds for rows, seconds in self.passes.items()}, "step": self.step,
            "attention": self.attention, "beside": self.beside, "row": self.row, "at": self.at,
            "heard": self.heard, "rows_heard": self.rows_heard,
            "took": [[*kind, times] for kind, times in sorted((self._kept or {}).items())],
        }  # fmt: skip

    @classmethod
    def from_file(cls, kept: Any) -> PriceList | None:
        """The list that `to_file` gave; None where that is none."""
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
