"""Rounds of recorded answers at given prices: tokens a round and speed of copying, of a drafter, and of both.

A round proposes the best number of ids by what they are expected to save, as the policy `cost` does, but its
prices are known and exact, and rows need not lie on a line. A drafter's guess counts as accepted where its
most probable tokens spell what was written; so at temperature 0 these are the rounds of `ngram-exact` that
knows all n-grams, and above it few more would be accepted. Chances are learned from what became of earlier
drafts of the same set, and a drafter that loses time is asked in every sixteenth round only. No earlier
answers are copied from. `oracle`: every round proposes just what will be accepted, whoever guesses it; no
policy can do better with these guesses.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

import numpy as np

from lab.drafters.guesses import Guesses
from omnidemo.decoding.calibration import Calibration
from omnidemo.decoding.sources.copy_chances import LONGEST_COPY, CopiedDraft, CopyChances
from omnidemo.decoding.sources.memory_source import MemorySource
from omnidemo.decoding.sources.text_index import TextIndex

LONGEST = 8  # guesses of a draft
# drafts before it is decided whether drafting loses; rounds to the next one where it does
TRIED, SELDOM = 24, 16
WAYS = ("copy", "drafter", "both", "oracle")


@dataclass(frozen=True, slots=True)
class Prices:
    """ms: `rows`, of a target pass of so many rows (between them, and beyond, on a line); `step`, of a
    drafter's token."""

    rows: Mapping[int, float]
    step: float

    def of_rows(self, most: int) -> list[float]:
        """Of 0, 1, … `most` rows."""
        known = sorted(self.rows)
        slope = (self.rows[known[-1]] - self.rows[known[-2]]) / (known[-1] - known[-2])
        at = np.interp(np.arange(most + 1), known, [self.rows[count] for count in known])
        return [float(price + max(0, count - known[-1]) * slope) for count, price in enumerate(at)]


@dataclass(slots=True)
class Sums:
    tokens: int = 0
    rounds: int = 0
    milliseconds: float = 0.0

    def add(self, other: Sums) -> None:
        self.tokens, self.rounds, self.milliseconds = (
            self.tokens + other.tokens, self.rounds + other.rounds, self.milliseconds + other.milliseconds,
        )  # fmt: skip

    @property
    def tokens_a_round(self) -> float:
        return self.tokens / max(1, self.rounds)

    def speedup(self, plain: float) -> float:
        """Over plain decoding at so many ms a token."""
        return self.tokens * plain / self.milliseconds if self.milliseconds else 0.0


@dataclass(slots=True)
class Simulation:
    """Rounds of one set's answers, one after the other, in one of `WAYS`."""

    prices: Prices
    way: str
    sums: Sums = field(default_factory=Sums)
    chances: CopyChances = field(default_factory=CopyChances)
    acceptance: Calibration = field(default_factory=Calibration)
    _rows: list[float] = field(default_factory=list)
    _saved: float = 0.0  # ms that a round of the drafter's saves, on average over the newest
    _drafts: int = 0

    def __post_init__(self) -> None:
        self._rows = self.prices.of_rows(LONGEST_COPY + 1)

    def answer(self, guesses: Guesses, ends: Sequence[int]) -> None:
        ids, prompt = guesses.answer.ids, guesses.answer.prompt
        text = TextIndex()
        text.extend(prompt)
        copier = MemorySource(text, self.chances, ends, len(prompt))
        written, at = [*prompt], 0
        while at < len(ids):
            copied = copier.draft(written, LONGEST_COPY) if self.way != "drafter" else None
            proposed, accepted, spent = self._round(guesses, at, copied)
            if copied is not None:
                copier.learn(copied, ids[at:])
            kept = min(accepted + 1, len(ids) - at)
            self.sums.add(Sums(kept, 1, self._rows[proposed + 1] + spent))
            written += ids[at : at + kept]
            at += kept

    @property
    def _worth(self) -> float:
        """ms that an accepted token saves: what one takes at the best speed so far."""
        sums = self.sums
        return min(self._rows[1], sums.milliseconds / sums.tokens) if sums.tokens > 64 else self._rows[1]

    def _best(self, chances: Sequence[float]) -> tuple[int, float]:
        """How many ids to propose, by the chances that each and all before it are accepted, and the ms that
        these save."""
        gains = [
            total * self._worth - (price - self._rows[1])
            for total, price in zip(accumulate(chances), self._rows[2:], strict=False)
        ]
        best = max(range(len(gains)), key=gains.__getitem__, default=-1)
        return (best + 1, gains[best]) if best >= 0 and gains[best] > 0 else (0, 0.0)

    def _round(self, guesses: Guesses, at: int, copied: CopiedDraft | None) -> tuple[int, int, float]:
        """(ids proposed, accepted, ms of drafting) of the round that begins at a token of the answer."""
        ids = guesses.answer.ids[at:]
        if self.way == "oracle":
            right = leading(
                token == wanted for token, wanted in zip(copied.ids if copied else (), ids, strict=False)
            )
            guessed = min(LONGEST, leading(guesses.right[at:]))
            count = guessed if guessed > right else right
            best = max(range(count + 1), key=lambda kept: kept * self._worth - self._rows[kept + 1])
            return (
                best,
                best,
                sum(guesses.lengths[at : at + best].tolist()) * self.prices.step if guessed > right else 0.0,
            )
        count, saved = self._best(copied.chances) if copied else (0, 0.0)
        if self.way == "copy" or (count and saved > max(0.0, self._saved)):
            assert copied is not None or not count
            return (
                count,
                leading(
                    token == wanted
                    for token, wanted in zip(copied.ids[:count] if copied else (), ids, strict=False)
                ),
                0.0,
            )
        if self._drafts >= TRIED and self._saved < 0 and self.sums.rounds % SELDOM:
            return 0, 0, 0.0
        count, accepted, spent = self._drafted(guesses, at)
        net = accepted * self._worth - (self._rows[count + 1] - self._rows[1]) - spent
        self._drafts, self._saved = self._drafts + 1, 0.98 * self._saved + 0.02 * net
        return count, accepted, spent

    def _drafted(self, guesses: Guesses, at: int) -> tuple[int, int, float]:
        """Guess on while the next one may still save more than it costs; then propose the best number of
        them."""
        least = (
            min(after - before for before, after in zip(self._rows[1:], self._rows[2:], strict=False))
            + self.prices.step
        )
        chances, chance, spent = list[float](), 1.0, 0.0
        for place in range(at, min(at + LONGEST, len(guesses.sure))):
            if chance * self._worth < least:
                break
            spent += max(1, int(guesses.lengths[place])) * self.prices.step
            chance *= self.acceptance(float(guesses.sure[place]))
            chances.append(chance)
        count, _ = self._best(chances)
        accepted = leading(guesses.right[at : at + count])
        for place in range(at, min(at + accepted + 1, at + count)):
            self.acceptance.learn((float(guesses.sure[place]), float(guesses.right[place])))
        # what was not proposed teaches too: else a class that seems bad once stays so
        if not count and len(chances):
            self.acceptance.learn((float(guesses.sure[at]), float(guesses.right[at])))
        return count, accepted, spent


def leading(values: Iterable[bool]) -> int:
    """How many are true before the first that is not."""
    count = 0
    for value in values:
        if not value:
            break
        count += 1
    return count


def simulate(
    found: Iterable[Guesses], prices: Prices, ends: Sequence[int], ways: Sequence[str] = WAYS
) -> dict[tuple[str, bool], dict[str, Sums]]:
    """By set and whether answers were drawn: the sums of each way."""
    runs: dict[tuple[str, bool], dict[str, Simulation]] = {}
    for guesses in found:
        kind = guesses.answer.set, guesses.answer.temperature > 0
        for simulation in runs.setdefault(kind, {way: Simulation(prices, way) for way in ways}).values():
            simulation.answer(guesses, ends)
    return {kind: {way: one.sums for way, one in run.items()} for kind, run in runs.items()}


def times(found: Iterable[Guesses], prices: Prices, ends: Sequence[int], way: str = "both") -> list[float]:
    """ms of each answer, those of each kind one after the other."""
    runs: dict[tuple[str, bool], Simulation] = {}
    spent = list[float]()
    for guesses in found:
        kind = guesses.answer.set, guesses.answer.temperature > 0
        run = runs.setdefault(kind, Simulation(prices, way))
        before = run.sums.milliseconds
        run.answer(guesses, ends)
        spent.append(run.sums.milliseconds - before)
    return spent
