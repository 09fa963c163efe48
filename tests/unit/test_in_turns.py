"""Measurements in turns: who begins, how many passes a budget has room for, which run is shown."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import pytest

from omnidemo.core.metrics import measure
from omnidemo.core.records import Generation, Round, Token
from omnidemo.pair.in_turns import Budget, LaneStopped, in_turns, median_run, passes_of, rotated, spread
from omnidemo.pair.repetition import (
    BUDGET,
    BUSY,
    SECONDS,
    NoFigure,
    before_middle,
    speedup,
    tokens_within,
    told,
)


def lanes(*names: str) -> dict[str, Callable[[], str]]:
    numbers = count()
    return {name: lambda name=name: f"{name}{next(numbers)}" for name in names}  # type: ignore[misc]


def ticks(seconds: float) -> Callable[[], float]:
    """A clock, asked at the beginning and before each pass, of passes that take so many seconds."""
    times = (seconds * max(0, number) for number in count(-1))
    return lambda: next(times)


def test_who_begins_changes_from_pass_to_pass() -> None:
    assert [rotated("abc", turn) for turn in range(4)] == [list("abc"), list("bca"), list("cab"), list("abc")]
    made = list(in_turns(lanes("a", "b", "c"), Budget(3), lambda: 0.0))
    assert made == [
        (0, "a", "a0"), (0, "b", "b1"), (0, "c", "c2"), (1, "b", "b3"), (1, "c", "c4"), (1, "a", "a5"),
        (2, "c", "c6"), (2, "a", "a7"), (2, "b", "b8"),
    ]  # fmt: skip
    assert [name for _, name, _ in in_turns(lanes("a", "b"), Budget(1), lambda: 0.0, first=1)] == ["b", "a"]
    assert passes_of(lanes("a", "b"), Budget(2), lambda: 0.0) == [
        {"a": "a0", "b": "b1"},
        {"b": "b2", "a": "a3"},
    ]


@pytest.mark.parametrize(
    ("budget", "seconds", "passes"),
    [
        (Budget(4), 1e9, 4),
        (Budget(3, seconds=10), 1, 3),
        (Budget(3, seconds=10), 4, 2),  # a third one would end after twelve
        (Budget(3, seconds=10), 40, 1),
        (Budget(3, seconds=10, least=2), 40, 2),
        (Budget(3, most=9, enough=3.0), 0.1, 9),
        (Budget(3, most=9, enough=3.0), 0.8, 5),  # four are enough, and one of five is the median
        (BUDGET, SECONDS / 3, 3),
        (BUDGET, SECONDS / 2, 2),
    ],
)
def test_as_many_passes_as_a_budget_has_room_for(budget: Budget, seconds: float, passes: int) -> None:
    assert len(passes_of(lanes("a", "b"), budget, ticks(seconds))) == passes


def test_more_passes_are_made_while_they_are_wanted_and_there_is_room() -> None:
    budget = Budget(3, most=9, seconds=10)
    assert (
        len(passes_of(lanes("a", "b"), budget, ticks(0.5), lambda made: len(made) < 6)) == 7
    )  # an odd number
    assert len(passes_of(lanes("a", "b"), budget, ticks(0.5), lambda made: True)) == 9
    assert len(passes_of(lanes("a", "b"), budget, ticks(2.0), lambda made: True)) == 5


def test_a_lane_that_is_stopped_ends_all() -> None:
    def stop() -> str:
        raise LaneStopped

    running: Iterator[Any] = in_turns({"a": lambda: "a", "b": stop}, Budget(3), lambda: 0.0)
    assert next(running) == (0, "a", "a")
    with pytest.raises(LaneStopped):
        next(running)


@pytest.mark.parametrize(
    ("runs", "low", "high"), [(1, 0, 0), (2, 0, 1), (5, 0, 4), (6, 0, 5), (9, 1, 7), (15, 3, 11), (25, 7, 17)]
)
def test_the_range_holds_the_median_with_95_per_cent(runs: int, low: int, high: int) -> None:
    assert spread([float(value) for value in reversed(range(runs))]) == (low, high)
    holds = 1 - 2 * sum(math.comb(runs, below) for below in range(low + 1)) / 2**runs
    assert holds >= 0.95 or low == 0


def test_the_run_that_is_shown_is_the_middle_one() -> None:
    assert median_run([5.0, 1.0, 2.0], float) == 2.0 and median_run([1.0, 9.0, 2.0, 3.0], float) == 2.0


def answered(rounds: int, tokens: int, seconds: float) -> Generation:
    token, split = Token(7, "x", "direct", 0.5), {"total": seconds}
    split |= dict.fromkeys(("draft", "verify", "settle", "other"), 0.0)
    made = tuple(Round(0, (token,) * tokens, (), 0, 0, 0, 0, 0, 0, split) for _ in range(rounds))
    return Generation((7,) * (rounds * tokens), "x", made, measure(made, None), "end", "ngram-exact", 0)


def test_as_many_tokens_as_fit_the_seconds_and_no_less_than_32() -> None:
    # a token takes 0.05 s with guessing, and 0.1 s of a round without
    assert tokens_within(10.0, answered(100, 2, 0.1)) == 66
    assert tokens_within(10.0, answered(100, 2, 0.001)) == 200, "all of a fast answer"
    assert tokens_within(10.0, answered(100, 2, 9.0)) == 32
    assert tokens_within(10.0, answered(10, 1, 9.0)) == 10, "an answer has no more"
    assert tokens_within(10.0, answered(100, 2, 0.1), 0.05) == 100, "the cost table knows better"


def test_what_is_measured_of_a_long_answer_is_its_middle() -> None:
    rounds = answered(100, 2, 0.1).rounds
    assert len(before_middle(rounds, 40)) == 80 // 2 and len(before_middle(rounds, 41)) == 39
    assert not before_middle(rounds, 200) and not before_middle(rounds, 300)


def test_an_answer_is_never_faster_than_its_tokens_a_step() -> None:
    """Of the passes counts only how much longer a step took, however many tokens it wrote there."""
    plain = answered(30, 1, 0.1).rounds
    assert speedup(2.0, {"guessed": answered(10, 3, 0.16).rounds, "plain": plain}) == pytest.approx(1.25)
    assert told(2.0, [1.25, 1.2, 1.3]) == [1.25, 1.2, 1.3]
    assert told(2.0, [2.05, 1.9, 2.2]) == [2.0, 1.9, 2.0]
    with pytest.raises(NoFigure, match=BUSY):
        told(2.0, [2.2, 2.1, 2.3])
