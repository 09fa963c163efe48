"""Rounds whose draws are made several at once where the drafter computes, by compiled code or by a CUDA
graph.

Only the draws are made early. The method still walks over them, so the proposal, its judgement and its
correction are the reference's.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from omnidemo.backends.fused_cache import FusedCache
from omnidemo.decoding.backend import Clock, Draft, Pass, RoundPlan, RoundResult
from omnidemo.decoding.contexts import DrafterContext
from omnidemo.decoding.method import Method
from omnidemo.decoding.randomness import Sampler, SharedNoise
from omnidemo.decoding.rollout import DRAWS, ProposalRule, Rollout, RolloutRequest
from omnidemo.decoding.round import Judged, RoundContext, reference_round
from omnidemo.decoding.sampling import Probs


def roll_out(drafter: DrafterContext, order: RolloutRequest) -> Rollout | None:
    """A rollout from the end of the drafter's ids; None where its cache cannot. Drawn ids are not pushed; ids
    pushed later are not read again."""
    beginning = drafter.beginning()
    if beginning is None or not isinstance(drafter.cache, FusedCache):
        return None
    rollout = drafter.cache.roll_out(order, *beginning)
    if rollout is not None:
        drafter.read_ahead(rollout)
    return rollout


class RolledDraws:
    """The draws of one round, see `decoding.round.Prefetch`."""

    def __init__(self) -> None:
        # ids before the draw, the id, its probability and distribution
        self._draws: deque[tuple[int, int, float, Probs]] = deque()
        self._none = False  # no more rollouts in this round
        self._ends_known = False  # whether the draft ends with the last of these draws

    def give(self, drafter: DrafterContext, rollout: Rollout, whole: bool = False) -> None:
        """Supply the draws of a rollout from the end of the drafter's ids. `whole`: the draft ends with
        them."""
        start, self._ends_known = len(drafter.ids), whole
        places = [start + place for place in rollout.places]
        self._draws.extend(
            zip(places, rollout.ids, rollout.probabilities, rollout.distributions, strict=True)
        )

    def fill(
        self, context: RoundContext, rule: Callable[[RoundContext], ProposalRule], budget: int, index: int
    ) -> None:
        if self._none or (self._draws and self._draws[0][0] == len(context.drafter.ids)):
            return
        self._draws.clear()
        policy = context.policy
        stop, states = (policy.stop_rule(), policy.reads_states) if policy.watches else (None, False)
        order = RolloutRequest(
            rule(context), context.sampling, budget, context.upcoming(DRAWS), stop, states,
            seen=context.drafter_seen(),
            noise=context.noise, position=context.place(index).position, names=context.map.tables[0],
        )  # fmt: skip
        rollout = roll_out(context.drafter, order)
        self._none = rollout is None or not rollout.ids
        if rollout is not None and not self._none:
            self.give(context.drafter, rollout)

    def pop(self, context: RoundContext) -> tuple[int, float, Probs] | None:
        if not self._draws:
            return None
        place, drawn, q, probs = self._draws.popleft()
        if place != len(context.drafter.ids):
            self._draws.clear()
            return None
        context.use_up(1)  # the number that it was drawn with
        return drawn, q, probs

    def keep_drafting(self, answer: bool) -> bool:
        return bool(self._draws) if self._ends_known else answer


class RolloutBackend:
    """Serves rounds with a draft for a drafter whose cache has rollouts; with a repetition penalty only where
    its passes are compiled."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock

    def run_round(self, context: RoundContext, method: Method, plan: RoundPlan) -> RoundResult | None:
        if plan.draft_length == 0 or not rolls(context):
            return None
        return self.with_draws(context, method, plan, RolledDraws())

    def judge(self, context: RoundContext, method: Method, draft: Draft, read: Pass) -> Judged | None:
        """Judge a proposal in place of `Method.accept`; None: the method does."""
        return None

    def with_draws(
        self, context: RoundContext, method: Method, plan: RoundPlan, draws: RolledDraws | None,
        verify: Callable[[list[int]], Pass] | None = None,
    ) -> RoundResult:  # fmt: skip
        """The reference's round with supplied draws; None: the reference draws."""
        context.prefetch = draws
        try:
            return reference_round(context, method, plan, self.clock, verify, self.judge)
        finally:
            context.prefetch = None


def rolls(context: RoundContext) -> bool:
    """Whether the drafter's cache can make several draws of a round at once."""
    drafter = context.drafter.cache
    if not repeatable(context) or not isinstance(drafter, FusedCache) or not drafter.rolls:
        return False
    unknown = context.penalty is not None or context.noise is not None  # to a step that is recorded
    return not unknown or drafter.runner.passes is not None


def repeatable(context: RoundContext) -> bool:
    """Whether the random numbers of later draws are known, or none are needed."""
    return context.sampling.greedy or isinstance(context.rng, Sampler | SharedNoise)
