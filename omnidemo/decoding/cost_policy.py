"""The policy `cost`: the draft with the most expected tokens per price."""

from __future__ import annotations

from typing import Literal

import numpy as np

from omnidemo.core.offers import Offer
from omnidemo.decoding.calibration import StopRule
from omnidemo.decoding.cost_model import PLAIN, Best, CostModel, best_draft
from omnidemo.decoding.draft_policy import HOLD, AdaptivePolicy
from omnidemo.decoding.sources.copier import CopiedDraft

# factor on the price of further copied ids: chances are of the best of several drafts, hence slightly too
# high
CAUTION = 1.2


class CostPolicy(AdaptivePolicy):
    """The draft with the most expected tokens per price: copied ids, the drafter's, or these after those;
    none where its rate does not exceed a plain round's by the margin. Prices are those at the beginning of
    the answer, chances those of the newest multiple of HOLD rounds."""

    def __init__(self, longest: int, cost_model: CostModel) -> None:
        super().__init__(longest, cost_model)
        self._prices = cost_model.prices.fixed()
        self._fused_prices = np.ones((0, 0))  # [copied, drafted]
        self._behind = np.zeros(1)  # [drafted]: expected to be accepted of a draft behind copies
        self._worth = np.ones((0, 0))  # [copied, drafted]: 1 ÷ the price, with CAUTION
        self._best, self._pays = PLAIN, False  # of the drafter
        self._offered, self._needed = PLAIN, 1.0  # its best draft, also where a plain round is better
        self._slot = 0.0  # price of one more slot of the drafter
        self._held = StopRule()  # at the beginning of a draft
        self._copy = PLAIN  # the best copy of this round, with the draft behind it
        self._copy_chance = 1.0
        self._can_draft, self._taken, self._drafted_behind = True, "plain", 0
        self._has_drafted = False  # and hence read the prompt

    def begin_round(self, index: int, positions: int, unread: int) -> None:
        self._copy, self._can_draft, self._taken = PLAIN, True, "plain"
        if index % HOLD == 0 or not len(self._fused_prices):
            self._hold(positions, 0 if self._has_drafted else unread)

    def _hold(self, positions: int, unread: int) -> None:
        """Decide for the next HOLD rounds whether the drafter drafts, and when its drafts end."""
        costs, longest = self.cost_model, self.longest
        self._fused_prices = costs.fused_prices(self._prices, longest, positions, unread)
        self._behind = np.cumsum([0.0, *costs.draft_chances(longest, behind=True)])
        self._worth = 1.0 / (1.0 + CAUTION * (self._fused_prices - 1.0))
        prices = self._fused_prices[0]
        chances = costs.draft_chances(longest)
        self._best = best_draft(chances, prices)
        self._pays, self._needed = costs.pays(self._best), 1.0 + costs.margin
        self._offered = best_draft(chances, prices, above=0.0)
        self._offered_chance = chances[self._offered.length - 1] if self._offered.length else 1.0
        # Dinkelbach's condition: one more slot has to bring as many tokens per price as the draft without it.
        # Its price is the mean over the slots that drafts will probably have.
        far = min(max(2, self._best.length), longest)
        self._slot = float((prices[far] - prices[1]) / (far - 1) if far > 1 else prices[1] - 1.0)
        self._held = StopRule(price=self._slot * max(1.0, self._best.rate), segments=costs.segments)

    def copies(self, index: int, copied: CopiedDraft, drafts: bool) -> int:
        self._can_draft = drafts
        chances, count = np.array(copied.chances)[:, None], len(copied.chances)
        tokens = 1.0 + chances.cumsum(0) + chances * self._behind[: None if drafts else 1]
        width = tokens.shape[1]
        place, behind = divmod(int((tokens * self._worth[1 : count + 1, :width]).argmax()), width)
        price = float(self._fused_prices[place + 1, behind])
        self._copy = best = Best(place + 1 + behind, float(tokens[place, behind]), price)
        self._copy_chance, self._drafted_behind = copied.chances[place], behind
        if not self.cost_model.pays(self._copy) or (drafts and self._pays and best.rate <= self._best.rate):
            return 0
        self._taken = "copy"
        self._rule, self._before, self._leads = None, copied.chances[place], True
        return place + 1

    def budget_behind(self, index: int) -> int:
        if not self._drafted_behind:
            return 0
        self._taken, self._has_drafted = "fused", True
        return self.longest

    def budget(self, index: int) -> int:
        self._rule, self._before, self._leads = None, 1.0, False
        self._taken = "drafter" if self._pays else "plain"
        self._has_drafted |= self._pays
        return self.longest if self._pays else 0

    def offers(self) -> tuple[Offer, ...]:
        """The best draft of each source, also where a plain round is better."""
        taken, drafts = self._taken, self._can_draft and self._offered.length
        made = [Offer("plain", *PLAIN, 1.0, taken == "plain", 1.0)]
        if drafts:
            chance = self._offered_chance
            made.append(Offer("drafter", *self._offered, chance, taken == "drafter", self._needed))
        if self._copy.length:
            source: Literal["fused", "copy"] = "fused" if self._drafted_behind else "copy"
            needed = max(self._needed, self._best.rate if drafts and self._pays else 0.0)
            made.append(Offer(source, *self._copy, self._copy_chance, taken == source, needed))
        return tuple(made)

    def _new_rule(self) -> StopRule:
        held, price = self._held, self._held.price
        if self._leads:
            price = self._slot * max(1.0, self._copy.rate)
        return StopRule(self._before, held.min_prob, price, held.segments)
