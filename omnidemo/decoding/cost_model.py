"""What drafts are expected to bring and to cost: the chances of each source, learned over all answers of an
adapter line, and the price list. The policy `cost` decides by both and by nothing else, so the same state
makes the same drafts.

**Chances.** Calibrations say how often a slot is accepted, by the probability that the drafter gave it;
`CopyChances` say the same of ids from memory. Before anything is drawn, means stand for the drafter: how
often the first slot of a draft is accepted, apart where it stands behind copied ids, and how often a later
one is. What is known of these fades with rounds that draft nothing, so that a drafter is never given up for
good.

**Prices.** See `price_list.py`. Here they are held against a plain round's: a draft's price is how many plain
rounds its round lasts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from omnidemo.decoding.calibration import EDGES, Calibration
from omnidemo.decoding.price_list import PriceList
from omnidemo.decoding.sources.copier import LONGEST_COPY, CopyChances

# Expected tokens per price that a draft needs, above a plain round's, where prices were measured and where
# they are guessed
MARGIN, GUESSED_MARGIN = 0.05, 0.15
FIRST, LATER = 0.5, 0.5  # P(accepted) of a draft's first slot and of later ones, where nothing is known
BELIEF = 4.0  # slots that this counts as
FORGET = 0.98  # decay of older slots with each new one
FADE = 0.995  # the same with each round that drafts nothing
RECENT = 0.975  # decay of a draft's counts with each new one
READING = 0.15  # of a drafter's step: an id that it reads with others
HORIZON = 64  # rounds over which the reading of a prompt by the drafter has to pay
USUAL = 256  # positions that are assumed where nothing is known of the text


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


def best_draft(
    chances: Sequence[float], prices: Sequence[float] | NDArray[np.float64], above: float = 1.0
) -> Best:
    """The length with the most expected tokens per price; the shortest of equals, and the plain round where
    none has more than `above`. `chances[n - 1]`: that the first n tokens are all accepted. `prices[n]`: of a
    round that proposes n, in plain rounds."""
    best, rate, tokens = PLAIN, above, 1.0
    for count, chance in enumerate(chances, 1):
        if count >= len(prices):
            break
        tokens += chance
        if tokens > rate * prices[count]:
            best = Best(count, tokens, float(prices[count]))
            rate = best.rate
    return best


class Belief:
    """How often something is accepted, in the mean."""

    def __init__(self, prior: float) -> None:
        self.prior, self.weight, self.accepted = prior, 0.0, 0.0

    def __call__(self) -> float:
        return (self.accepted + BELIEF * self.prior) / (self.weight + BELIEF)

    def learn(self, accepted: float) -> None:
        """Note an acceptance (0 or 1, or its probability)."""
        self.weight = FORGET * self.weight + 1.0
        self.accepted = FORGET * self.accepted + accepted

    def fade(self) -> None:
        """A round has drafted nothing."""
        self.weight *= FADE
        self.accepted *= FADE


class CostModel:
    """The chances of a line, with the prices of the pair whose line it is. `prices` None: a guess that knows
    no pair."""

    def __init__(self, prices: PriceList | None = None) -> None:
        self.prices = prices if prices is not None else PriceList.linear()
        self.acceptance = Calibration()  # by the drafter's probability of a slot
        self.head = Calibration()  # by the head's
        # of the slot after an accepted one, by the drafter's probability of the accepted one
        self.next_acceptance = Calibration(prior=0.6)
        self.copies = CopyChances()
        self.renew()
        self.rounds = self.drafts = 0  # all of them, and those in which the drafter drafted
        self._drafted = self._proposed = self._weight = 0.0  # of drafts, old ones fading

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__()  # type: ignore[misc]  # what a state of another version lacks is as at the beginning
        self.__dict__.update({name: value for name, value in state.items() if name in self.__dict__})

    def renew(self) -> None:
        """The drafter has changed: how often its drafts are right is to be seen anew."""
        self.first, self.later, self.behind = Belief(FIRST), Belief(LATER), Belief(FIRST)

    @property
    def segments(self) -> NDArray[np.float64]:
        """Those of a `StopRule`, as the calibrations have them now."""
        edges = np.array([[0.0, *EDGES]]).T
        return np.concatenate([edges, self.acceptance.lines, self.next_acceptance.lines], 1)

    @property
    def length(self) -> float:
        """Drafter tokens of a drafting round, on average over the newest."""
        return self._drafted / self._weight if self._weight else 0.0

    @property
    def waste(self) -> float:
        """Drafter tokens per proposed token, with those that are drawn and thrown away."""
        return max(1.0, (self._drafted + BELIEF) / (self._proposed + BELIEF))

    @property
    def margin(self) -> float:
        """By how much a draft's expected tokens per price have to exceed a plain round's."""
        return MARGIN if self.prices.known else GUESSED_MARGIN

    @property
    def token_seconds(self) -> float:
        """Seconds of a token of plain decoding; 0 where nothing was measured."""
        return self.prices.price(1, USUAL) if self.prices.known else 0.0

    def fused_prices(
        self, prices: PriceList, longest: int, positions: int, unread: int = 0
    ) -> NDArray[np.float64]:
        """[1 + LONGEST_COPY, 1 + longest]: of a round that proposes m copied ids and n slots of the drafter
        behind them, in plain rounds. The drafter has `unread` ids to read before."""
        plain, step = prices.price(1, positions), prices.step
        rows = np.array([prices.price(1 + count, positions) for count in range(LONGEST_COPY + longest + 1)])
        copied, drafted = np.arange(LONGEST_COPY + 1)[:, None], np.arange(longest + 1)
        fixed = prices.beside + (unread / HORIZON + copied) * READING * step
        return (rows[copied + drafted] + (drafted > 0) * fixed + drafted * self.waste * step) / plain

    def draft_chances(self, longest: int, behind: bool = False) -> list[float]:
        """[n − 1]: that the first n slots of a draft are all accepted, before anything is drawn; `behind`:
        where copied ids come before them, which are."""
        first, later = self.behind() if behind else self.first(), self.later()
        return [first * later**count for count in range(longest)]

    def best_draft(self, prices: PriceList, longest: int, positions: int = USUAL, unread: int = 0) -> Best:
        """What a draft of the drafter is expected to bring, at its best length."""
        found = self.fused_prices(prices, longest, positions, unread)[0]
        return best_draft(self.draft_chances(longest), found)

    def pays(self, best: Best) -> bool:
        """Whether a draft is worth making."""
        return best.length > 0 and best.rate >= 1.0 + self.margin

    def learn(
        self, draft_probs: Sequence[Sequence[float]], accept_probs: Sequence[float], behind: bool = False
    ) -> None:
        """Take the judged slots of a draft: the drafter's probabilities of each slot's tokens (none where it
        did not draw them), and the probability with which each slot was accepted. `behind`: behind copied
        ids."""
        (self.behind if behind else self.first).learn(accept_probs[0] if accept_probs else 0.0)
        for accepted in accept_probs[1:]:
            self.later.learn(accepted)
        before = 0.0  # the drafter's probability of the slot before; 0: there is none, or it is not known
        alone, after = [], []
        for probs, accepted in zip(draft_probs, accept_probs, strict=False):
            if before:
                after.append((before, accepted))
            before = math.prod(probs) if probs else 0.0
            if before:
                alone.append((before, accepted))
        self.acceptance.learn(*alone)
        self.next_acceptance.learn(*after)

    def count(self, drafted: int, proposed: int) -> None:
        """Take a round's counts: drafter tokens, and what was proposed with them, copies apart."""
        self.rounds += 1
        if not drafted:
            self.first.fade()
            self.later.fade()
            self.behind.fade()
            return
        self.drafts += 1
        self._drafted, self._weight = RECENT * self._drafted + drafted, RECENT * self._weight + 1.0
        self._proposed = RECENT * self._proposed + proposed
