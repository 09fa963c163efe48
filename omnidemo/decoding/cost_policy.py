"""The policy `cost`: the draft with the most expected tokens per price."""

from __future__ import annotations

from omnidemo.copying.copier import CopiedDraft
from omnidemo.decoding.calibration import StopRule
from omnidemo.decoding.cost_model import PLAIN, Best, CostModel, best_draft
from omnidemo.decoding.draft_policy import AdaptivePolicy
from omnidemo.offers import Offer

# Rounds for which the policy "cost" holds its rule, so that a backend may compute them in one call. It is a
# number of rounds of the answer, so that every backend drafts alike.
HOLD = 8


class CostPolicy(AdaptivePolicy):
    """The draft with the most expected tokens per price, of copied ids or of the drafter's; none where that
    is below a plain round's and a margin. Prices are those of the list as the answer begins, chances those of
    the newest multiple of HOLD rounds."""

    def __init__(self, longest: int, cost_model: CostModel) -> None:
        super().__init__(longest, cost_model)
        self._prices = cost_model.prices.fixed()
        self._copy_prices: list[float] = []
        self._best, self._pays, self._best_chance = PLAIN, False, 1.0  # of the drafter
        self._held = StopRule()  # as a draft begins
        self._copy: Best | None = None  # what could be copied in this round
        self._copy_chance = 1.0
        self._copied_at = -HOLD  # the newest round that copied
        self._index, self._can_draft, self._taken = 0, True, "plain"
        self._has_drafted = False  # so that the drafter has read the prompt

    def begin_round(self, index: int, positions: int, unread: int) -> None:
        self._index, self._copy, self._can_draft, self._taken = index, None, True, "plain"
        if index % HOLD == 0 or not self._copy_prices:
            self._hold(positions, 0 if self._has_drafted else unread)

    def _hold(self, positions: int, unread: int) -> None:
        """Decide whether the drafter drafts, and when its drafts end, for the next HOLD rounds."""
        costs, longest = self.cost_model, self.longest
        self._copy_prices = costs.copy_prices(self._prices, positions)
        prices = costs.draft_prices(self._prices, longest, positions, unread)
        chances = costs.draft_chances(longest)
        self._best = best_draft(chances, prices)
        self._best_chance = chances[self._best.length - 1] if self._best.length else 1.0
        self._pays = costs.pays(self._best)
        # A slot more has to bring as many tokens per price as the draft does without it: then the draft has
        # the most (Dinkelbach's condition). The price of one is the mean as far as drafts will probably go.
        far = min(max(2, self._best.length), longest)
        slot = (prices[far] - prices[1]) / (far - 1) if far > 1 else prices[1] - 1.0
        self._held = StopRule(price=slot * max(1.0, self._best.rate), segments=costs.segments.copy())

    def copies(self, index: int, copied: CopiedDraft, drafts: bool) -> int:
        self._can_draft = drafts
        best = self._copy = best_draft(copied.chances, self._copy_prices)
        self._copy_chance = copied.chances[best.length - 1] if best.length else 1.0
        if not self.cost_model.pays(best) or (drafts and self._pays and best.rate <= self._best.rate):
            return 0
        self._copied_at, self._taken = index, "copy"
        return best.length

    def budget(self, index: int) -> int:
        self._rule = None
        self._taken = "drafter" if self._pays else "plain"
        self._has_drafted |= self._pays
        return self.longest if self._pays else 0

    def plain_lookahead(self) -> int:
        return self.draft_lookahead()

    def draft_lookahead(self) -> int:
        """Until the rule may be another; none shortly after a copy, because what is computed ahead is lost
        for the next one."""
        return 0 if self._index - self._copied_at < HOLD else HOLD - 1 - self._index % HOLD

    def offers(self) -> tuple[Offer, ...]:
        made = [Offer("plain", *PLAIN, 1.0, self._taken == "plain")]
        if self._can_draft and self._best.length:
            made.append(Offer("drafter", *self._best, self._best_chance, self._taken == "drafter"))
        if self._copy is not None and self._copy.length:
            made.append(Offer("copy", *self._copy, self._copy_chance, self._taken == "copy"))
        return tuple(made)

    def _new_rule(self) -> StopRule:
        held = self._held
        return StopRule(held.cumulative, held.min_prob, held.price, held.segments)
