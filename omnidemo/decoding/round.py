"""What a method works with during a round, and the reference round itself: the plain way that every backend has to agree with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import torch
from torch import Tensor

from omnidemo.decoding.backend import Acceptance, Clock, DecodingMethod, Draft, Pass, RoundPlan, RoundResult, Slot, StageSeconds
from omnidemo.decoding.contexts import DrafterContext
from omnidemo.decoding.draft_policy import DraftPolicy, State
from omnidemo.decoding.randomness import Randomness, draw_with_prob
from omnidemo.decoding.rollout import ProposalRule, token_by_token
from omnidemo.decoding.row_ops import RowStats, share, warm
from omnidemo.decoding.sampling import Law, RepetitionPenalty, SamplingParams, as_array, as_tensor, fetch, highest, on_host
from omnidemo.decoding.state import TargetContext
from omnidemo.vocab.ngram_cache import NgramCache
from omnidemo.vocab.vocabulary_map import VocabularyMap


class NotFinite(ArithmeticError):
    """The drafter's numbers are not finite here, so nothing can be drawn from them."""


class Prefetch(Protocol):
    """Draws that a backend makes before they are asked for, by the same numbers."""

    def fill(self, context: RoundContext, rule: Callable[[RoundContext], ProposalRule], budget: int) -> None:
        """Between two slots: the next ones are drawn by a rule, for so many drafter tokens."""
        ...

    def take(self, context: RoundContext) -> tuple[int, float, Law] | None:
        """The next draw, as `RoundContext.draw` returns it; None where it has not been made. Its random number is used up."""
        ...

    def keep_drafting(self, answer: bool) -> bool:
        """Whether another slot comes, where the draft policy gives this answer."""
        ...


@dataclass(slots=True, eq=False)
class RoundContext:
    """What a method works with. One serves a generation; what changes from round to round is said of its field. Trie and weights do not
    change within a round."""

    drafter: DrafterContext
    map: VocabularyMap
    ngrams: NgramCache
    warp: SamplingParams
    chooser: Randomness
    end_ids: frozenset[int]
    penalty: RepetitionPenalty | None = None
    start: int = 0  # drafter ids in the text before the round
    policy: DraftPolicy | None = None  # when a draft ends before its budget is used up
    target: TargetContext = field(kw_only=True)
    stats: RowStats | None = None  # of the rows that this round is judged by, where they are known
    prefetch: Prefetch | None = None  # of this round's draws

    def logits(self) -> Tensor:
        """The drafter's logits [D] after all its ids, with the repetition penalty."""
        logits = as_tensor(self.drafter.logits())
        return logits if self.penalty is None else self.warp.penalised(logits, self.penalty.of_drafter(self.drafter.ids, self.start))

    def masked(self, bars: Tensor) -> Tensor:
        """The logits [D] and `bars` [D], which are −∞ for what may not be drawn and 0 for the rest. They come before the warp, so that
        top-k counts what may be drawn."""
        return self.logits() + bars

    def law(self, bars: Tensor) -> Law:
        """The drafter's law [D] among what the `bars` [D] leave, renormalised."""
        if self.penalty is None and self.warp.plain and not self.warp.greedy and on_host(logits := self.drafter.logits()):
            return warm(as_array(logits) + as_array(bars), self.warp.temperature)
        return self.warp.law(self.masked(bars))

    def draw(self, bars: Callable[[], Tensor]) -> tuple[int, float, Law]:
        """Draw the next drafter token among what the bars [D] leave, if it has not been drawn ahead: (id, its probability, the law [D]). At
        temperature 0 the law is the masked logits, and the probability what it would be at temperature 1.
        NotFinite where there is no law."""
        drawn, q, law = self._drawn(bars)
        if not 0.0 < q <= 2.0:  # beyond rounding: what is not a number, and what infinite logits come to
            raise NotFinite
        return drawn, q, law

    def _drawn(self, bars: Callable[[], Tensor]) -> tuple[int, float, Law]:
        if self.prefetch is not None and (made := self.prefetch.take(self)) is not None:
            return made
        if self.warp.greedy:
            logits = self.masked(bars())
            if on_host(logits):
                drawn = highest(logits)
                return drawn, share(logits.numpy(), drawn), logits
            best = logits.argmax(-1, keepdim=True)
            return *fetch(best, logits.softmax(-1).gather(-1, best)), logits
        law = self.law(bars())
        return *draw_with_prob(self.chooser, law), law

    def readable_bars(self) -> Tensor:
        """Those of draws within a text."""
        return self.map.readable_bars

    def begin_slot(self, rule: Callable[[RoundContext], ProposalRule], budget: int) -> None:
        """Say how the next slots are drawn, and for how many drafter tokens, so that a backend may draw them at once."""
        if self.prefetch is not None:
            self.prefetch.fill(self, rule, budget)

    def goes_on(self, slot: Slot) -> bool:
        """Whether another slot is drafted after this one, whose pieces are the drafter's last ids."""
        if self.policy is None or not self.policy.watches:
            return True
        going = bool(slot.sure) and self._goes_on(slot.base, slot.sure)  # without them nobody knows how sure the drafter was
        return going if self.prefetch is None else self.prefetch.keep_drafting(going)

    def _goes_on(self, base: int, sure: Sequence[float]) -> bool:
        assert self.policy is not None
        states: list[State] = []
        if self.policy.reads_states:
            found = [self.drafter.state(base + depth) for depth in range(len(sure))]
            states = [state for state in found if state is not None]
        return self.policy.goes_on(sure, states)

    def draw_freely(self, budget: int) -> tuple[list[int], list[float], list[Law]]:
        """Draw and push up to `budget` drafter tokens, as far as the end of the answer: their ids, probabilities and laws [D]."""
        drawn: list[int] = []
        q: list[float] = []
        laws: list[Law] = []
        while len(drawn) < budget and not (drawn and self.map.targets[drawn[-1]] in self.end_ids):
            self.begin_slot(_freely, budget - len(drawn))
            try:
                token, probability, law = self.draw(self.readable_bars)
            except NotFinite:
                break
            drawn.append(token)
            q.append(probability)
            laws.append(law)
            self.drafter.push(token)
            if self.policy is not None and self.policy.watches and not self._goes_on(len(self.drafter.ids) - 1, [probability]):
                break
        return drawn, q, laws


def _freely(context: RoundContext) -> ProposalRule:
    return token_by_token(context.map.readable_bars)


def reference_round(
    context: RoundContext, method: DecodingMethod, plan: RoundPlan, clock: Clock, verify: Callable[[list[int]], Pass] | None = None
) -> RoundResult:
    """Draft, verify, accept: what a round means. `verify` stands in for the target's pass where a backend has made it already."""
    target, began = context.target, clock()

    # 1 Draft, and 2 translate: the method proposes target tokens for a budget of drafter tokens.
    draft = method.draft(context, plan.draft_length) if plan.draft_length else Draft()
    del draft.slots[plan.max_tokens - 1 :]  # one drafter token may spell several of the target's
    proposal, drafted = draft.proposal, clock()

    # 3 Verify: one target pass over everything that was proposed.
    read = verify(proposal) if verify is not None else target.verify(proposal, context.warp.temperature)
    verified = clock()

    # 4 Accept from the left, correct the first rejection or add a bonus token.
    penalty = context.penalty
    context.stats = read.stats if penalty is None else None
    scores = read.logits if penalty is None else context.warp.penalised(read.logits, penalty.of_target(target.ids, proposal))
    found = method.accept(context, draft, scores) if draft.slots else Acceptance(0, _alone(context, scores), False, [])
    written = [*proposal[: found.accepted], *([] if found.token is None else [found.token])]
    probs = target_probs(read, proposal, written)
    seconds = StageSeconds(drafted - began, verified - drafted, clock() - verified)
    return RoundResult(
        draft.slots, found.accepted, found.token, found.rejected, found.accepts, probs, draft.drafted, read.logits, seconds
    )  # fmt: skip


def _alone(context: RoundContext, scores: Law) -> int:
    """The token of a round without a proposal."""
    stats, warp = context.stats, context.warp
    if warp.greedy:
        return stats.best()[0] if stats is not None else highest(scores[0])
    return context.chooser.draw(stats.law(0) if stats is not None and warp.plain else warp.law(scores[0]))


def target_probs(read: Pass, proposal: Sequence[int], written: Sequence[int]) -> list[float]:
    """The target's probability of each proposed token, and of the last one that was written, before temperature."""
    accepted = min(len(proposal), len(written) - 1)
    rows = [*range(len(proposal)), accepted]
    tokens = [*proposal, written[-1]]
    if read.stats is not None:
        return [*read.stats.shares(proposal), *read.stats.shares(tokens[-1:], accepted)]
    if on_host(read.logits):
        logits = as_array(read.logits)
        return [share(logits[row], token) for row, token in zip(rows, tokens, strict=True)]
    there = as_tensor(read.logits)  # with one wait for the device
    wanted = torch.tensor([rows, tokens]).to(there.device, non_blocking=True)
    found: list[float] = there.softmax(-1)[wanted[0], wanted[1]].tolist()  # several times as fast as logsumexp
    return found
