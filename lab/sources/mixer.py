"""A mixture of what several sources say, whose weights are learned from what was written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lab.sources.memories import KINDS, Look

LIKELIEST = 8  # ids of a source that are mixed
SMALLEST = 1e-3  # probability of an id that a source does not say
RATE, CAUTION = 0.05, 5.0  # of Adagrad
SOURCES = 5


class Mixed(NamedTuple):
    """What is mixed, of s sources and n ids: the places of their weights [s, 1], the logarithms of what each
    says and whether it says it at all [s, n], and the mixture [n]."""

    tokens: list[int]
    places: NDArray[np.int64]
    logs: NDArray[np.float64]
    there: NDArray[np.float64]
    chances: NDArray[np.float64]


class Mixer:
    """log-linear: the score of an id is the sum over sources of a weight of the source's kind times the
    logarithm of its probability there, and another weight where the source says it at all."""

    def __init__(self) -> None:
        self.weights = np.zeros(2 * SOURCES * KINDS)
        self.weights[::2] = 0.3
        self.squares = np.full(len(self.weights), CAUTION)

    def probs(self, looks: Sequence[tuple[int, Look]]) -> tuple[Mixed, dict[int, float]]:
        """(what `learn` takes, the probability of each id that a source says)."""
        said: dict[int, None] = {}
        best = [(number, look.kind, self._best(look.probs)) for number, look in looks]
        for _, _, ids in best:
            said.update(dict.fromkeys(ids))
        tokens = list(said)
        places = np.array([[2 * (number * KINDS + kind)] for number, kind, _ in best])
        logs = np.array([[np.log(ids.get(token, 0.0) + SMALLEST) for token in tokens] for _, _, ids in best])
        there = np.array([[float(token in ids) for token in tokens] for _, _, ids in best])
        scores = (self.weights[places] * logs + self.weights[places + 1] * there).sum(0)
        chances = np.exp(scores - scores.max())
        chances /= chances.sum()
        mixed = Mixed(tokens, places, logs, there, chances)
        return mixed, dict(zip(tokens, chances.tolist(), strict=True))

    @staticmethod
    def _best(probs: dict[int, float]) -> dict[int, float]:
        if len(probs) <= LIKELIEST:
            return probs
        return {token: probs[token] for token in sorted(probs, key=probs.__getitem__)[-LIKELIEST:]}

    def learn(self, mixed: Mixed, wanted: int) -> None:
        """A step towards what was written, where a source said it."""
        tokens, places, logs, there, chances = mixed
        if wanted not in tokens:
            return
        off = chances.copy()
        off[tokens.index(wanted)] -= 1.0
        for at, values in ((places[:, 0], logs), (places[:, 0] + 1, there)):
            slope = values @ off
            self.squares[at] += slope * slope
            self.weights[at] -= RATE * slope / np.sqrt(self.squares[at])
