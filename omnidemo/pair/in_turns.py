"""Runs the lanes of a measurement in turns, so that background load slows all of them equally."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")


class LaneStopped(Exception):
    """A lane was stopped before it was done."""


@dataclass(frozen=True, slots=True)
class Budget:
    """How many passes over all lanes: `passes`, then further ones up to `most` until they have taken `enough`
    seconds together, nobody wants more, and they are an odd number, whose median is a pass. A pass that would
    not end within `seconds` does not begin, unless it is one of the first `least`."""

    passes: int = 1
    most: int = 0
    enough: float = 0.0
    seconds: float = math.inf
    least: int = 1

    def goes_on(self, done: int, elapsed: float, wanted: bool = False) -> bool:
        """Whether another pass begins after `done` passes of `elapsed` seconds together. `wanted`: somebody
        wants more."""
        if done < self.least:
            return True
        short = wanted or elapsed < self.enough or done % 2 == 0
        more = done < self.passes or (done < self.most and short)
        return more and elapsed * (done + 1) / done <= self.seconds


def rotated(lanes: Sequence[T], turn: int) -> list[T]:
    """The lanes in the order of a turn: another lane begins in each."""
    shift = turn % len(lanes)
    return [*lanes[shift:], *lanes[:shift]]


def in_turns(
    lanes: Mapping[str, Callable[[], T]], budget: Budget, clock: Callable[[], float], first: int = 0,
    wanted: Callable[[], bool] = lambda: False,
) -> Iterator[tuple[int, str, T]]:  # fmt: skip
    """Yield (pass, lane, result) one by one. `first`: the turn of the first pass; `wanted`: whether somebody
    wants more passes than are enough."""
    began, turn = clock(), 0
    while budget.goes_on(turn, clock() - began, wanted()):
        for name in rotated(list(lanes), first + turn):
            yield turn, name, lanes[name]()
        turn += 1


def passes_of(
    lanes: Mapping[str, Callable[[], T]], budget: Budget, clock: Callable[[], float],
    wanted: Callable[[Sequence[Mapping[str, T]]], bool] = lambda made: False,
) -> list[dict[str, T]]:  # fmt: skip
    """The results of all passes, each by lane. Raises what a lane raises. `wanted`: whether somebody wants
    more passes than those so far."""
    made: list[dict[str, T]] = []
    for turn, name, result in in_turns(lanes, budget, clock, wanted=lambda: wanted(made)):
        if turn == len(made):
            made.append({})
        made[turn][name] = result
    return made


def median_run(runs: Sequence[T], value: Callable[[T], float]) -> T:
    """The run with the median value; of an even number the lower of the two."""
    return sorted(runs, key=value)[(len(runs) - 1) // 2]


def spread(values: Sequence[float]) -> tuple[float, float]:
    """A 95 % confidence interval of the median, by order statistics: the number of values below the median is
    binomial. For fewer than six values the least and the most (94 % for five, then 88, 75, 50 %)."""
    ordered, count = sorted(values), len(values)
    outside = cut = 0
    while 40 * (outside := outside + math.comb(count, cut)) <= 2**count:
        cut += 1
    cut = max(1, cut)
    return ordered[cut - 1], ordered[-cut]
