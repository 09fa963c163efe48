"""How long a draft gets: a fixed length, while the drafter is confident, by the acceptance head, while it is
likely enough to be accepted, or while it pays for itself.

All policies decide between two slots by what came before, never about a token already drawn. So the
distribution of the emitted text does not depend on them: a draft that ends early is a draft with a smaller
budget.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from omnidemo.core.offers import DraftSource, Offer
from omnidemo.decoding.calibration import StopRule
from omnidemo.decoding.cost_model import PLAIN, Best, CostModel
from omnidemo.decoding.sources.copier import CopiedDraft

State = NDArray[np.float32]  # [H]: what the drafter's output layer read when it predicted a token
Head = Callable[[State, float], float]  # (state, log q of the token drawn) → P(accepted)

# Rounds for which "cost" holds its rule, and "chance" its prices. A number of rounds, not of seconds, so that
# every backend drafts alike.
HOLD = 8
LEAST_CHANCE = 0.3  # of a whole draft of the policy "chance"
# a draft that ends with its budget alone; stateless, since its segments leave `cumulative` at 1
NEVER = StopRule()
# segments by which a slot is accepted with the probability s itself
AS_PREDICTED = np.array([[0.0, 0.0, 1.0, 1.0, 0.0]])


class DraftPolicy:
    """The draft policy of one generation: up to `longest` drafter tokens. `watches`: drafts may end before
    their budget is used up. `reads_states`: `keep_drafting` needs the drafter's hidden states."""

    watches = False
    reads_states = False

    def __init__(self, longest: int) -> None:
        self.longest = longest
        # slots of the drafter that were accepted and judged in this generation, and a guess before
        self._right, self._judged = 2.0, 4.0

    def begin_round(self, index: int, positions: int, unread: int) -> None:
        """Called first in round `index` of the answer. `positions`: ids of the text; `unread`: ids that the
        drafter has not read."""

    def copies(self, index: int, copied: CopiedDraft, drafts: bool) -> int:
        """How many of the copied ids round `index` proposes instead of a draft; 0: none. `drafts`: whether
        the drafter can draft. By default the copy is taken where its expected acceptance exceeds that of the
        generation's own drafts by a token."""
        count, right = min(len(copied.ids), self.longest), self._right / self._judged
        expected = sum(right ** (place + 1) for place in range(self.longest)) if drafts else 0.0
        return count if sum(copied.chances[:count]) > expected + (1.0 if drafts else 0.0) else 0

    def budget(self, index: int) -> int:
        """Drafter tokens of round `index`; 0 is plain decoding."""
        return self.longest

    def budget_behind(self, index: int) -> int:
        """Drafter tokens after the copied ids that `copies` has just chosen; 0: none."""
        return 0

    def offers(self) -> tuple[Offer, ...]:
        """The offers of each source for this round; none for a policy without chances."""
        return ()

    def keep_drafting(self, draft_probs: Sequence[float], states: Sequence[State]) -> bool:
        """Whether another slot is drafted after one with these probabilities of its tokens. `states`: one [H]
        a token, or none."""
        return True

    def stop_rule(self) -> StopRule:
        """The rule of this draft in its current state, for code that draws several slots before it can call
        `keep_drafting`. An estimate where hidden states decide."""
        return NEVER

    def learn(self, draft_probs: Sequence[Sequence[float]], accept_probs: Sequence[float]) -> None:
        """Learn from a finished draft: the drafter's probabilities of each slot's tokens (none for a slot
        spelled otherwise), and the acceptance probabilities of the judged slots."""
        self._right += sum(accept_probs)
        self._judged += max(1, len(accept_probs))

    def count(self, drafted: int, proposed: int) -> None:
        """Count a round, with or without a draft."""


class FixedPolicy(DraftPolicy):
    """Always the longest draft."""


class AdaptivePolicy(DraftPolicy):
    """The base of policies that end drafts early: a `StopRule`, and a `CostModel` that learns from their
    drafts."""

    watches = True

    def __init__(self, longest: int, cost_model: CostModel) -> None:
        super().__init__(longest)
        self.cost_model = cost_model
        self._rule: StopRule | None = None  # that of the draft under way
        self._before = 1.0  # the chance that all copied ids before the draft are accepted
        self._leads = False  # whether there are any

    def budget(self, index: int) -> int:
        self._rule, self._before, self._leads = None, 1.0, False
        return super().budget(index)

    def keep_drafting(self, draft_probs: Sequence[float], states: Sequence[State]) -> bool:
        return self.stop_rule().keep_drafting(math.prod(draft_probs))

    def stop_rule(self) -> StopRule:
        if self._rule is None:
            self._rule = self._new_rule()
        return self._rule

    def _new_rule(self) -> StopRule:
        """The rule at the beginning of a draft."""
        raise NotImplementedError

    def learn(self, draft_probs: Sequence[Sequence[float]], accept_probs: Sequence[float]) -> None:
        super().learn(draft_probs, accept_probs)
        self.cost_model.learn(draft_probs, accept_probs, self._leads)

    def count(self, drafted: int, proposed: int) -> None:
        self.cost_model.count(drafted, proposed)


class ConfidencePolicy(AdaptivePolicy):
    """Stop after a slot with a drafter probability below `threshold`."""

    def __init__(self, longest: int, cost_model: CostModel, threshold: float) -> None:
        super().__init__(longest, cost_model)
        self.threshold = threshold

    def _new_rule(self) -> StopRule:
        return StopRule(min_prob=self.threshold)


class HeadPolicy(AdaptivePolicy):
    """Stop when 1 − Π P(accepted) > γ, with P from the acceptance head (SpecDec++; OmniDraft, equation 7).

    A slot of several drafter tokens is accepted as a whole, with the product of theirs. `head` None: none is
    trained yet, and the drafter's own probabilities replace it.
    """

    def __init__(self, longest: int, cost_model: CostModel, gamma: float, head: Head | None) -> None:
        super().__init__(longest, cost_model)
        self.gamma, self.head = gamma, head
        self.reads_states = head is not None
        self._predicted: list[float] = []

    def budget(self, index: int) -> int:
        self._predicted = []
        return super().budget(index)

    def keep_drafting(self, draft_probs: Sequence[float], states: Sequence[State]) -> bool:
        predicted = draft_probs
        if self.head is not None and len(states) == len(draft_probs):
            predicted = [
                self.head(state, math.log(max(q, 1e-30)))
                for state, q in zip(states, draft_probs, strict=True)
            ]
        self._predicted += predicted
        return super().keep_drafting(predicted, states)

    def _new_rule(self) -> StopRule:
        # a draft also goes on where the product is just 1 − γ
        price = math.nextafter(1.0 - self.gamma, -math.inf)
        return StopRule(price=price, segments=AS_PREDICTED)

    def learn(self, draft_probs: Sequence[Sequence[float]], accept_probs: Sequence[float]) -> None:
        super().learn(draft_probs, accept_probs)
        if self.head is None:
            return
        at, judged = 0, []
        for probs, accepted in zip(draft_probs, accept_probs, strict=False):
            if probs:
                judged.append((math.prod(self._predicted[at : at + len(probs)]), accepted))
            at += len(probs)
        self.cost_model.head.learn(*judged)


class ChancePolicy(AdaptivePolicy):
    """Draft and copy on while everything up to the next token is accepted with a chance above LEAST_CHANCE.
    Times do not decide: equal states draft alike on every machine. Memory goes first as far as the drafter
    would not do better. Offers name the prices at the beginning of the answer."""

    def __init__(self, longest: int, cost_model: CostModel) -> None:
        super().__init__(longest, cost_model)
        self._prices = cost_model.prices.fixed()
        self._hold(0)
        self._offered: dict[DraftSource, tuple[Best, float]] = {}
        self._taken: DraftSource = "plain"
        self._led: Sequence[float] = ()  # chances of the ids from memory that the round begins with

    def begin_round(self, index: int, positions: int, unread: int) -> None:
        if index % HOLD == 0:
            self._hold(positions)
        self._offered, self._taken, self._led = {"plain": (PLAIN, 1.0)}, "plain", ()

    def _hold(self, positions: int) -> None:
        """Take the prices for the next HOLD rounds."""
        self._fused_prices = self.cost_model.fused_prices(self._prices, self.longest, positions)

    def copies(self, index: int, copied: CopiedDraft, drafts: bool) -> int:
        """The number of likely ids with which, with the drafter's after them, the most are expected to be
        accepted."""
        right, most = self._right / self._judged, self.longest if drafts else 0
        best, lead, copies, before = -1.0, 0, 0.0, 1.0
        self._drafts = drafts
        likely = [chance for chance in copied.chances if chance > LEAST_CHANCE]
        for count in range(len(likely) + 1):
            if count:
                before = likely[count - 1]
                copies += before
            expected, chance = copies, before * right
            for _ in range(most - count):
                if chance <= LEAST_CHANCE:
                    break
                expected += chance
                chance *= right
            if expected > best:
                best, lead = expected, count
        self._offer("copy", likely)
        if drafts:
            self._offer_draft()
        self._rule, self._before, self._leads = None, likely[lead - 1] if lead else 1.0, lead > 0
        if lead:
            self._led, self._taken = likely[:lead], "copy"
        return lead

    def budget_behind(self, index: int) -> int:
        """0 where the drafter's next token would hardly be accepted together with all before it."""
        if not self._drafts or self._before * self._right / self._judged <= LEAST_CHANCE:
            return 0
        self._offer("fused", self._led, self.cost_model.draft_chances(self.longest, behind=True))
        self._taken = "fused"
        return self.longest

    def budget(self, index: int) -> int:
        self._offer_draft()
        self._taken = "drafter"
        return super().budget(index)

    def offers(self) -> tuple[Offer, ...]:
        found = self._offered.items()
        return tuple(Offer(source, *best, chance, source == self._taken) for source, (best, chance) in found)

    def _offer_draft(self) -> None:
        """Offer a draft before anything is drawn: at least one slot."""
        if "drafter" not in self._offered:
            self._offer("drafter", (), self.cost_model.draft_chances(self.longest))

    def _offer(self, source: DraftSource, copied: Sequence[float], drafted: Sequence[float] = ()) -> None:
        """Offer ids from memory with these chances, and after them a draft of at least one slot."""
        before = copied[-1] if copied else 1.0
        chances = [before * chance for chance in drafted]
        chances = chances[: max(1, sum(chance > LEAST_CHANCE for chance in chances))]
        length = len(copied) + len(chances)
        if length:
            price = float(self._fused_prices[len(copied), len(chances)])
            tokens = 1.0 + sum(copied) + sum(chances)
            self._offered[source] = Best(length, tokens, price), before if copied else chances[-1]

    def _new_rule(self) -> StopRule:
        return StopRule(self._before, price=LEAST_CHANCE, segments=self.cost_model.segments)
