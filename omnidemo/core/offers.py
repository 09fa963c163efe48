"""Small records of a round, which travel with it: what it chose from, and what it copied."""

from __future__ import annotations

from typing import Literal, NamedTuple

DraftSource = Literal["drafter", "copy", "fused", "plain"]


class Offer(NamedTuple):
    """What a source of drafts offered for a round, at the length that the policy finds best: `length` tokens,
    all of which are accepted with `chance`, so that the round is expected to write `tokens` for the price of
    `price` plain rounds. The source "copy" is memory (the chat, earlier answers and what followed short
    contexts in them), "fused" is memory with the drafter behind it, whose `chance` is that of the ids from
    memory; "plain" is the round without a draft. `needed`: tokens per price from which on the policy "cost"
    takes it; 0 where prices do not decide."""

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
    """How many copied tokens a round proposed, how many of them were accepted, and how many judged. The
    drafter drew none of them."""

    proposed: int
    accepted: int
    judged: int
