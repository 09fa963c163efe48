"""The best draft at known chances and prices: the arithmetic of the policy `cost`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Best(NamedTuple):
    """A draft's length, the tokens that its round is expected to write, and its price in plain rounds. Of
    length 0: the plain round."""

    length: int
    tokens: float
    price: float

    @property
    def rate(self) -> float:
        """Expected tokens per price; a plain round's is 1."""
        return self.tokens / self.price


PLAIN = Best(0, 1.0, 1.0)


def best_draft(chances: Sequence[float], prices: Sequence[float]) -> Best:
    """The length with the most expected tokens per price; the shortest of equals, and the plain round where
    none beats it. `chances[n - 1]`: that the first n tokens are all accepted. `prices[n]`: of a round that
    proposes n, in plain rounds."""
    best, rate, tokens = PLAIN, 1.0, 1.0
    for count, chance in enumerate(chances, 1):
        if count >= len(prices):
            break
        tokens += chance
        if tokens > rate * prices[count]:
            best = Best(count, tokens, prices[count])
            rate = best.rate
    return best
