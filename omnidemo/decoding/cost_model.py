"""What a draft is expected to bring and to cost: acceptance probabilities ("chances"), learned within an
answer, and the cost table. The policy `cost` decides by these alone, so equal states make equal drafts.

**Chances.** A calibration gives the acceptance of a slot by the drafter's probability; `CopyChances` gives
that of ids from memory. Before anything is drawn, mean acceptances stand for the drafter: of a draft's first
slot, of one after copied ids, and of later slots. They fade in rounds without a draft, so that a drafter
always gets another try.

**Prices** come from `cost_table.py`. Here they are relative: the plain rounds that a round lasts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from omnidemo.decoding.calibration import EDGES, Calibration
from omnidemo.decoding.cost_table import CostTable
from omnidemo.decoding.sources.copy_chances import LONGEST_COPY, CopyChances

# least gain over plain decoding for which a draft is made, with measured and with guessed prices
MARGIN, GUESSED_MARGIN = 0.05, 0.15
FIRST, LATER = 0.5, 0.5  # prior P(accepted) of a draft's first slot and of later ones
BELIEF = 4.0  # slots that a prior is worth
FORGET = 0.98  # decay of older slots with each new one
FADE = 0.995  # the same with each round that drafts nothing
RECENT = 0.975  # decay of a draft's counts with each new one
READING = 0.15  # steps of the drafter that reading one of several ids costs
HORIZON = 64  # rounds within which the drafter's prefill has to pay off
USUAL = 256  # positions of a usual text


class Best(NamedTuple):
    """A draft's length, the expected tokens of its round, and its price in plain rounds. Length 0 is the
    plain round."""

    length: int
    tokens: float
    price: float

    @property
    def rate(self) -> float:
        """Expected tokens per price; 1 for a plain round."""
        return self.tokens / self.price


PLAIN = Best(0, 1.0, 1.0)


def best_draft(
    chances: Sequence[float], prices: Sequence[float] | NDArray[np.float64], above: float = 1.0
) -> Best:
    """The draft length with the most expected tokens per price (ties: the shortest); the plain round if no
    rate exceeds `above`. `chances[n - 1]`: the probability that the first n tokens are all accepted.
    `prices[n]`: of a round that proposes n tokens, in plain rounds."""
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
    """A mean acceptance with a prior."""

    def __init__(self, prior: float) -> None:
        self.prior, self.weight, self.accepted = prior, 0.0, 0.0

    def __call__(self) -> float:
        return (self.accepted + BELIEF * self.prior) / (self.weight + BELIEF)

    def learn(self, accepted: float) -> None:
        """Add an acceptance (0, 1 or a probability)."""
        self.weight = FORGET * self.weight + 1.0
        self.accepted = FORGET * self.accepted + accepted

    def fade(self) -> None:
        """Fade by a round without a draft."""
        self.weight *= FADE
        self.accepted *= FADE


class CostModel:
    """The acceptance probabilities of an answer, and the cost table of its pair (None: a guess)."""

    def __init__(self, prices: CostTable | None = None) -> None:
        self.prices = prices if prices is not None else CostTable.linear()
        self.acceptance = Calibration()  # by the predicted probability of a slot
        # of the slot after an accepted one, by the drafter's probability of the accepted one
        self.next_acceptance = Calibration(prior=0.6)
        self.copies = CopyChances()
        self.renew()
        self.rounds = self.drafts = 0  # all of them, and those in which the drafter drafted
        self._drafted = self._proposed = self._weight = 0.0  # of drafts, old ones fading

    def renew(self) -> None:
        """Forget the means: the drafter has changed."""
        self.first, self.later, self.behind = Belief(FIRST), Belief(LATER), Belief(FIRST)

    @property
    def segments(self) -> NDArray[np.float64]:
        """`StopRule.segments` of the current calibrations."""
        edges = np.array([[0.0, *EDGES]]).T
        return np.concatenate([edges, self.acceptance.lines, self.next_acceptance.lines], 1)

    @property
    def length(self) -> float:
        """Drafter tokens of a drafting round, mean over the newest."""
        return self._drafted / self._weight if self._weight else 0.0

    @property
    def waste(self) -> float:
        """Drafter tokens per proposed token, discarded ones included."""
        return max(1.0, (self._drafted + BELIEF) / (self._proposed + BELIEF))

    @property
    def margin(self) -> float:
        """The least gain over plain decoding for which a draft is made."""
        return MARGIN if self.prices.known else GUESSED_MARGIN

    @property
    def token_seconds(self) -> float:
        """Seconds of a token of plain decoding; 0 where not measured."""
        return self.prices.price(1, USUAL) if self.prices.known else 0.0

    def fused_prices(
        self, prices: CostTable, longest: int, positions: int, unread: int = 0
    ) -> NDArray[np.float64]:
        """[1 + LONGEST_COPY, 1 + longest]: the price, in plain rounds, of a round with m copied ids and n
        drafter slots after them. The drafter has `unread` ids to read first."""
        plain, step = prices.price(1, positions), prices.step
        rows = np.array([prices.price(1 + count, positions) for count in range(LONGEST_COPY + longest + 1)])
        copied, drafted = np.arange(LONGEST_COPY + 1)[:, None], np.arange(longest + 1)
        fixed = prices.beside + (unread / HORIZON + copied) * READING * step
        return (rows[copied + drafted] + (drafted > 0) * fixed + drafted * self.waste * step) / plain

    def draft_chances(self, longest: int, behind: bool = False) -> list[float]:
        """[n − 1]: the chance that the first n slots of a draft are all accepted, before anything is drawn.
        `behind`: given accepted copied ids before them."""
        first, later = self.behind() if behind else self.first(), self.later()
        return [first * later**count for count in range(longest)]

    def best_draft(self, longest: int) -> Best:
        """The drafter's draft of the best length at a usual position."""
        return best_draft(self.draft_chances(longest), self.fused_prices(self.prices, longest, USUAL)[0])

    def pays(self, best: Best) -> bool:
        """Whether any draft length pays."""
        return best.length > 0 and best.rate >= 1.0 + self.margin

    def learn(
        self, draft_probs: Sequence[Sequence[float]], accept_probs: Sequence[float], behind: bool = False
    ) -> None:
        """Learn from the judged slots of a draft: the drafter's probabilities of each slot's tokens (none
        where it did not draw them), and each slot's acceptance probability. `behind`: the draft followed
        copied ids."""
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
        """Count a round: drafter tokens, and proposals made of them, without copies."""
        self.rounds += 1
        if not drafted:
            self.first.fade()
            self.later.fade()
            self.behind.fade()
            return
        self.drafts += 1
        self._drafted, self._weight = RECENT * self._drafted + drafted, RECENT * self._weight + 1.0
        self._proposed = RECENT * self._proposed + proposed
