"""A target's greedy answers, each with what it and its drafter say at every position: recorded once, so that
sources of drafts can be tried along them without either model."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

TOP = 32  # most probable ids of a row that are kept
CHAIN = 8  # target ids of a chain


@dataclass(slots=True)
class AnswerRows:
    """Of an answer of n ids. `prompt` [p], `ids` [n]; `ends`: the target's end tokens; `top`, `probs`
    [n, TOP]: the target's most probable ids at each position; `guess`, `sure` [n, TOP]: the drafter's, of
    the ids that are one token of its own, with its n-grams as they were then; `chain`, `chances`, `steps`
    [n, CHAIN]: what the drafter drafts from each position on, its probability of each id, and the drafter
    tokens that spell it. Where there is none an id is −1 and its probability 0."""

    prompt: NDArray[Any]
    ids: NDArray[Any]
    ends: NDArray[Any]
    top: NDArray[Any]
    probs: NDArray[Any]
    guess: NDArray[Any]
    sure: NDArray[Any]
    chain: NDArray[Any]
    chances: NDArray[Any]
    steps: NDArray[Any]

    def save(self, path: Path) -> None:
        """As .npz, whole or not at all."""
        path.parent.mkdir(parents=True, exist_ok=True)
        half = path.with_suffix(".half.npz")
        np.savez_compressed(half, **{one.name: getattr(self, one.name) for one in fields(self)})
        half.replace(path)

    @classmethod
    def load(cls, path: Path) -> AnswerRows:
        with np.load(path) as found:
            return cls(**{one.name: found[one.name] for one in fields(cls)})


def rows_of(folder: Path) -> dict[str, list[AnswerRows]]:
    """The recorded answers of each set, in their order."""
    files = (path for path in sorted(folder.rglob("*.npz")) if not path.name.endswith(".half.npz"))
    found: dict[str, list[AnswerRows]] = {}
    for path in files:
        found.setdefault(path.parent.name, []).append(AnswerRows.load(path))
    return found
