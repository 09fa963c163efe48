"""Recorded answers as rounds go along them, and what rounds cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lab.sources.answer_rows import AnswerRows


@dataclass(frozen=True, slots=True)
class Costs:
    """In passes of one row: `rows` [n], of a pass of n rows; `step`, of a drafter token. `longest`: ids of a
    draft at most."""

    rows: Sequence[float]
    step: float
    longest: int = 16


@dataclass(slots=True)
class Sums:
    """Of one answer. `price`: of all rounds, in passes of one row; `steps`: drafter tokens."""

    tokens: int = 0
    rounds: int = 0
    price: float = 0.0
    steps: float = 0.0
    proposed: int = 0


@dataclass(slots=True)
class Answer:
    """A recorded answer, as lists."""

    prompt: list[int]
    ids: list[int]
    ends: frozenset[int]
    rows: list[list[tuple[int, float]]]
    chain: list[list[int]]
    chances: list[list[float]]
    steps: list[list[int]]
    guesses: list[dict[int, float]]

    @classmethod
    def of(cls, found: AnswerRows, most: int = 8) -> Answer:
        def pairs(ids: Any, probs: Any) -> list[list[tuple[int, float]]]:
            both = zip(ids.tolist(), probs.tolist(), strict=True)
            return [
                [(token, p) for token, p in zip(*each, strict=True) if token >= 0][:most] for each in both
            ]

        guesses = [dict(one) for one in pairs(found.guess, found.sure)]
        chain, chances = found.chain.tolist(), found.chances.tolist()
        for own, ids, sure in zip(guesses, chain, chances, strict=True):
            if ids[0] >= 0:
                own[ids[0]] = max(own.get(ids[0], 0.0), sure[0])
        return cls(
            found.prompt.tolist(), found.ids.tolist(), frozenset(found.ends.tolist()),
            pairs(found.top, found.probs), chain, chances, found.steps.tolist(), guesses,
        )  # fmt: skip


def leading(draft: Sequence[int], ids: Sequence[int]) -> int:
    """How many ids of a draft are right."""
    count = 0
    while count < min(len(draft), len(ids)) and draft[count] == ids[count]:
        count += 1
    return count
