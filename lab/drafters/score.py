"""Scores of a drafter on recorded answers, as tables: agreement by set, and what it is worth at given
prices."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from lab.drafters.ceilings import WAYS, Prices, simulate
from lab.drafters.guesses import Guesses
from lab.measured_rows import markdown_table

FIXED = 4  # guesses of a draft of fixed length
ALL = "all"  # the last row of a table


@dataclass(slots=True)
class Score:
    """Of one set: sums over the tokens of its answers, and the rounds that drafts of a fixed length would
    take at temperature 0."""

    answers: int = 0
    tokens: int = 0
    direct: int = 0
    agreed: float = 0.0
    same: float = 0.0
    greedy: int = 0
    rounds: int = 0

    def add(self, guesses: Guesses) -> None:
        self.answers += 1
        self.tokens += len(guesses.agreed)
        self.direct += int((guesses.lengths == 1).sum())
        self.agreed += float(guesses.agreed.sum())
        self.same += float(guesses.same.sum())
        if guesses.answer.temperature <= 0:
            self.greedy += len(guesses.right)
            self.rounds += count_rounds(guesses.right.tolist(), FIXED)

    @property
    def cells(self) -> list[float]:
        return [
            self.direct / self.tokens,
            self.agreed / self.tokens,
            self.same / self.tokens,
            self.greedy / max(1, self.rounds),
        ]


def count_rounds(right: Sequence[bool], length: int) -> int:
    """Rounds that it takes to write tokens with drafts of so many guesses, each right or not; the last draft
    ends with the answer."""
    rounds, at = 0, 0
    while at < len(right):
        left = length
        while at < len(right) and right[at] and left:
            left, at = left - 1, at + 1
        rounds += 1
        at += 1  # what the target writes itself
    return rounds


def scores(found: Iterable[Guesses]) -> dict[str, Score]:
    """By set."""
    sets: dict[str, Score] = {}
    for guesses in found:
        sets.setdefault(guesses.answer.set, Score()).add(guesses)
    return sets


def agreement_table(found: Sequence[Guesses]) -> str:
    heads = ["set", "answers", "tokens", "direct", "agreement", "same", f"tokens a round, {FIXED} guesses"]
    rows = [
        [name, f"{one.answers}", f"{one.tokens}", *(f"{cell:.3f}" for cell in one.cells)]
        for name, one in sorted(scores(found).items())
    ]
    total = Score()
    for guesses in found:
        total.add(guesses)
    rows.append([ALL, f"{total.answers}", f"{total.tokens}", *(f"{cell:.3f}" for cell in total.cells)])
    return markdown_table(heads, rows)


def speed_table(found: Sequence[Guesses], prices: Prices, ends: Sequence[int], drawn: bool) -> str:
    """Tokens a round, and how many times as fast as plain decoding; of greedy answers, or of those that were
    drawn."""
    plain, rows = prices.of_rows(1)[1], list[list[str]]()
    every = sorted(
        simulate((one for one in found if (one.answer.temperature > 0) == drawn), prices, ends).items()
    )
    for (name, _), ways in every:
        rows.append(
            [name, *(f"{ways[way].tokens_a_round:.2f}, {ways[way].speedup(plain):.2f} ×" for way in WAYS)]
        )
    if every:
        middle = {
            way: [
                median(pick(ways[way]) for _, ways in every)
                for pick in (lambda one: one.tokens_a_round, lambda one: one.speedup(plain))
            ]
            for way in WAYS
        }
        rows.append(["median", *(f"{middle[way][0]:.2f}, {middle[way][1]:.2f} ×" for way in WAYS)])
    return markdown_table(["set", *WAYS], rows)


def change_table(pairs: Sequence[tuple[Guesses, Guesses]], times: Sequence[tuple[float, float]]) -> str:
    """What another drafter changes: of the same answers the mean differences by set, with their standard
    errors over answers. `times`: ms of each answer, before and after."""
    figures: dict[str, list[tuple[float, ...]]] = {}
    for (one, other), (before, after) in zip(pairs, times, strict=True):
        changed = (
            float((other.agreed - one.agreed).mean()),
            float((other.same - one.same).mean()),
            before / after - 1,
        )
        for name in (one.answer.set, ALL):
            figures.setdefault(name, []).append(changed)
    rows = []
    for name in sorted(figures, key=lambda name: (name == ALL, name)):
        values = np.array(figures[name])
        errors = values.std(0, ddof=1) / len(values) ** 0.5 if len(values) > 1 else np.full(3, np.nan)
        cells = (f"{mean:+.3f} ± {error:.3f}" for mean, error in zip(values.mean(0), errors, strict=True))
        rows.append([name, f"{len(values)}", *cells])
    return markdown_table(
        ["set", "answers", "agreement", "same", "tokens a second, copies and guesses"], rows
    )
