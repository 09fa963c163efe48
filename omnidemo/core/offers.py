"""Small records of a round: its offers and its copies."""

from __future__ import annotations

from typing import Literal, NamedTuple

DraftSource = Literal["drafter", "copy", "fused", "plain"]


class Offer(NamedTuple):
    """A draft candidate of a round, at the policy's best length: `length` tokens, all accepted with
    probability `chance`. The round is then expected to write `tokens` at the `price` of so many plain rounds.
    The source "copy" is memory (the chat, earlier answers and continuations of short contexts), "fused" is
    memory followed by the drafter, with the `chance` of the ids from memory; "plain" is the round without a
    draft. `needed`: the least rate at which the policy "cost" takes it; 0 where prices do not decide."""

    source: DraftSource
    length: int
    tokens: float
    price: float
    chance: float
    taken: bool
    needed: float = 0.0

    @property
    def rate(self) -> float:
        """Expected tokens per price."""
        return self.tokens / self.price


class Copies(NamedTuple):
    """Copied tokens of a round: proposed, accepted and judged ones. The drafter drew none of them."""

    proposed: int
    accepted: int
    judged: int
