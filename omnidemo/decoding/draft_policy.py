"""Draft policies: how long a draft gets.

A policy decides between two slots by what came before, never about a token already drawn. So it cannot change
the distribution of the output: a draft that ends early is a draft with a smaller budget.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from omnidemo.core.config import GenerationConfig
from omnidemo.core.offers import DraftSource, Offer
from omnidemo.decoding.calibration import StopRule
from omnidemo.decoding.cost_model import PLAIN, Best, CostModel, best_draft
from omnidemo.decoding.sources.copy_chances import CopiedDraft

State = NDArray[np.float32]  # [H]: what the drafter's output layer read when it predicted a token
Head = Callable[[State, float], float]  # (state, log q of the token drawn) → P(accepted)

# Rounds for which a decision holds: rounds, not seconds, so that every backend drafts alike.
HOLD = 8
LEAST_CHANCE = 0.3  # of a whole draft of the policy "chance"
# factor on the price of further copied ids: the best of several drafts has slightly too high a chance
CAUTION = 1.2
# ends no draft before its budget; stateless, because its segments leave `cumulative` at 1
NEVER = StopRule()
# segments for P(accepted) = s
AS_PREDICTED = np.array([[0.0, 0.0, 1.0, 1.0, 0.0]])


class DraftPolicy:
    """The draft policy of one generation: up to `longest` drafter tokens. `rule` makes the `StopRule` of each
    draft; None: no draft ends early. `costs` learns from the drafts. `head` predicts acceptance from the
    drafter's hidden states, in place of its probabilities."""

    def __init__(
        self, longest: int, costs: CostModel | None = None, rule: Callable[[], StopRule] | None = None,
        head: Head | None = None,
    ) -> None:  # fmt: skip
        self.longest, self.costs, self.head = longest, costs, head
        self.watches, self.reads_states = rule is not None, head is not None
        self._new_rule = rule or StopRule
        self._rule: StopRule | None = None  # that of the draft under way
        self._leads = False  # whether copied ids stand before the draft
        # the drafter's accepted and judged slots in this generation, with a prior
        self._right, self._judged = 2.0, 4.0

    def begin_round(self, index: int, positions: int, unread: int) -> None:
        """Called first in round `index` of the answer. `positions`: ids of the text; `unread`: ids that the
        drafter has not read."""
        self._rule = None

    def plan(self, copied: CopiedDraft | None, drafts: bool) -> tuple[int, int]:
        """(How many copied ids the round proposes, how many drafter tokens it may draft after them); (0, 0)
        is plain decoding. `drafts`: whether the drafter can draft. By default a copy stands alone, and is
        taken if its expected accepted tokens exceed those of a draft by one."""
        if copied is not None:
            count, right = min(len(copied.ids), self.longest), self._right / self._judged
            expected = 1.0 + sum(right ** (place + 1) for place in range(self.longest)) if drafts else 0.0
            if sum(copied.chances[:count]) > expected:
                return count, 0
        return 0, self.longest if drafts else 0

    def offers(self) -> tuple[Offer, ...]:
        """What each source offered in this round; () for a policy without acceptance probabilities."""
        return ()

    def keep_drafting(self, draft_probs: Sequence[float], states: Sequence[State]) -> bool:
        """Whether to draft another slot after one with these token probabilities. `states`: one [H] a token,
        or none. A slot of several tokens is accepted as a whole, with the product of their probabilities."""
        if self.head is not None and len(states) == len(draft_probs):
            both = zip(states, draft_probs, strict=True)
            draft_probs = [self.head(state, math.log(max(q, 1e-30))) for state, q in both]
        return self.stop_rule().keep_drafting(math.prod(draft_probs))

    def stop_rule(self) -> StopRule:
        """The current stop rule, for a rollout, which cannot call `keep_drafting`. An estimate if hidden
        states decide."""
        if self._rule is None:
            self._rule = self._new_rule()
        return self._rule

    def learn(self, draft_probs: Sequence[Sequence[float]], accept_probs: Sequence[float]) -> None:
        """Learn from a finished draft: the drafter's probabilities of each slot's tokens (none if it did not
        draw them), and the acceptance probabilities of the judged slots."""
        self._right += sum(accept_probs)
        self._judged += max(1, len(accept_probs))
        if self.costs is not None:
            self.costs.learn(draft_probs, accept_probs, self._leads)

    def count(self, drafted: int, proposed: int) -> None:
        """Count a round, with or without a draft."""
        if self.costs is not None:
            self.costs.count(drafted, proposed)


class AdaptivePolicy(DraftPolicy):
    """Policies `chance` and `cost`: copied ids, the drafter's, or the drafter's after copied ones.

    `chance`: the longest draft that is accepted as a whole with a probability above `least`; no time decides.
    `cost` (`least` None): the draft with the most expected tokens per price; none if that does not exceed
    plain decoding by the margin. Prices hold for the answer, chances for HOLD rounds.
    """

    costs: CostModel

    def __init__(self, longest: int, costs: CostModel, least: float | None = None) -> None:
        super().__init__(longest, costs, self._rule_now)
        self.least, self._prices = least, costs.prices.fixed()
        self._has_drafted = False  # and hence read the prompt

    def begin_round(self, index: int, positions: int, unread: int) -> None:
        super().begin_round(index, positions, unread)
        self._can_draft, self._leads, self._before = True, False, 1.0
        self._taken: DraftSource = "plain"
        # the best copy of this round with the draft behind it, and the chance of its copied ids
        self._copy, self._copy_chance, self._drafted_behind = PLAIN, 1.0, 0
        if index % HOLD == 0:
            self._hold(positions, 0 if self._has_drafted else unread)

    def _hold(self, positions: int, unread: int) -> None:
        """Decide for HOLD rounds whether the drafter drafts, and when its drafts end."""
        costs, longest = self.costs, self.longest
        self._fused_prices = costs.fused_prices(self._prices, longest, positions, unread)
        self._segments = costs.segments
        # [drafted]: of all of them, behind copies that are accepted
        self._behind = np.array([1.0, *costs.draft_chances(longest, behind=True)])
        chances, prices = costs.draft_chances(longest), self._fused_prices[0].tolist()
        if self.least is None:
            self._alone = best_draft(chances, prices, above=0.0)
            self._pays, self._needed = costs.pays(self._alone), 1.0 + costs.margin
        else:
            length = max(1, sum(chance > self.least for chance in chances))
            self._alone = Best(length, 1.0 + sum(chances[:length]), prices[length])
            self._pays, self._needed = True, 0.0
        self._chance = chances[self._alone.length - 1]
        # Dinkelbach's condition: one more slot has to bring as many tokens per price as the draft without it.
        # Its price is the mean over the slots that drafts will probably have.
        far = min(max(2, self._alone.length), longest)
        self._slot = (prices[far] - prices[1]) / (far - 1) if far > 1 else prices[1] - 1.0

    def plan(self, copied: CopiedDraft | None, drafts: bool) -> tuple[int, int]:
        self._can_draft = drafts
        count = self._copied(copied, drafts) if copied is not None else 0
        if count:
            self._taken, self._leads, self._before = "copy", True, self._copy_chance
        behind = bool(self._drafted_behind) if count else drafts and self._pays
        if behind:
            self._taken, self._has_drafted = "fused" if count else "drafter", True
        return count, self.longest if behind else 0

    def _copied(self, copied: CopiedDraft, drafts: bool) -> int:
        """How many of the copied ids are proposed."""
        alone = self._alone
        chances = np.array(copied.chances)[:, None]
        whole = chances * self._behind[: None if drafts else 1]  # [copied − 1, drafted]: the chance of all
        tokens = 1.0 + chances.cumsum(0) - chances + whole.cumsum(1)
        prices = self._fused_prices[1 : len(whole) + 1, : whole.shape[1]]
        worth = (
            tokens / (1.0 + CAUTION * (prices - 1.0)) if self.least is None else tokens * (whole > self.least)
        )
        at = place, behind = divmod(int(worth.argmax()), whole.shape[1])
        self._copy = copy = Best(place + 1 + behind, float(tokens[at]), float(prices[at]))
        self._copy_chance, self._drafted_behind = copied.chances[place], behind
        if self.least is None:
            enough, better = self.costs.pays(copy), copy.rate > alone.rate
        else:
            enough, better = bool(worth[at]), copy.tokens > alone.tokens
        return place + 1 if enough and (better or not (drafts and self._pays)) else 0

    def offers(self) -> tuple[Offer, ...]:
        """The best draft of each source, even if plain decoding is better."""
        taken, needed = self._taken, self._needed
        made = [Offer("plain", *PLAIN, 1.0, taken == "plain", min(needed, 1.0))]
        if self._can_draft:
            made.append(Offer("drafter", *self._alone, self._chance, taken == "drafter", needed))
        if self._copy.length:
            source: Literal["fused", "copy"] = "fused" if self._drafted_behind else "copy"
            if needed and self._can_draft and self._pays:
                needed = max(needed, self._alone.rate)
            made.append(Offer(source, *self._copy, self._copy_chance, taken == source, needed))
        return tuple(made)

    def _rule_now(self) -> StopRule:
        rate = (self._copy if self._leads else self._alone).rate
        price = self._slot * max(1.0, rate) if self.least is None else self.least
        return StopRule(self._before, price=price, segments=self._segments)


def make_policy(asked: GenerationConfig, costs: CostModel, head: Head | None) -> DraftPolicy:
    """The draft policy of one generation, which learns into `costs`. "head" goes by the drafter's own
    probabilities until the acceptance head is trained (SpecDec++; OmniDraft, equation 7)."""
    longest = asked.longest_draft
    if asked.draft_policy == "fixed":
        return DraftPolicy(asked.draft_length)
    if asked.draft_policy == "confidence":
        return DraftPolicy(longest, costs, partial(StopRule, min_prob=asked.confidence))
    if asked.draft_policy == "head":
        # a draft also goes on where the product is just 1 − γ
        price = math.nextafter(1.0 - asked.gamma, -math.inf)
        return DraftPolicy(longest, costs, partial(StopRule, price=price, segments=AS_PREDICTED), head)
    return AdaptivePolicy(longest, costs, LEAST_CHANCE if asked.draft_policy == "chance" else None)
