"""Rounds with compiled parts: the drafter's draws in one rollout, the target's pass, and the acceptance.

Only the draws are made early. The method still walks over them, so the proposal and its correction are the
reference's.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from omnidemo.backends import compile_kernels
from omnidemo.backends.call_layout import NONE
from omnidemo.backends.compiled_passes import choice_of, text_of
from omnidemo.backends.fused_llama import FusedCache
from omnidemo.decoding.backend import Acceptance, Draft, Judged, Pass, RoundPlan
from omnidemo.decoding.contexts import DrafterContext
from omnidemo.decoding.engine import RoundContext
from omnidemo.decoding.method import Method
from omnidemo.decoding.randomness import Sampler, SharedNoise
from omnidemo.decoding.rollout import DRAWS, ProposalRule, Rollout, RolloutRequest
from omnidemo.decoding.row_ops import RowStats, stats_of
from omnidemo.decoding.sampling import Probs
from omnidemo.decoding.state import target_probs


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
    """The draws of one round, see `decoding.backend.Draws`."""

    def __init__(self) -> None:
        # ids before the draw, the id, its probability and distribution
        self._draws: deque[tuple[int, int, float, Probs]] = deque()
        self._none = False  # no more rollouts in this round

    def give(self, drafter: DrafterContext, rollout: Rollout) -> None:
        """Supply the draws of a rollout from the end of the drafter's ids."""
        places = [len(drafter.ids) + place for place in rollout.places]
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
        stop = policy.stop_rule() if policy.watches else None
        order = RolloutRequest(
            rule(context), context.sampling, budget, context.map.to_target, context.upcoming(DRAWS), stop,
            context.drafter_seen(), context.noise, context.place(index).position,
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


class CompiledBackend:
    """Serves a drafter with compiled rollouts, and a target with compiled passes."""

    def __init__(self) -> None:
        self._ends: NDArray[np.int64] | None = None

    def draws(self, context: RoundContext, plan: RoundPlan) -> RolledDraws | None:
        return RolledDraws() if plan.draft_length and rolls(context) else None

    def judge(self, context: RoundContext, method: Method, draft: Draft, read: Pass) -> Judged | None:
        """Accept by compiled code, where only the target's own token is accepted. The method corrects other
        rejections."""
        sampling, proposal, noise = context.sampling, draft.proposal, context.noise
        own, form, stats = sampling.greedy or noise is not None, context.constraint, read.stats
        if not own or stats is None or (draft.slots and type(method).accept is not Method.accept):
            return None
        if self._ends is None:
            self._ends = np.array(tuple(context.end_ids), np.int64)
        kernels, count = compile_kernels.kernels(), len(proposal)
        assert kernels is not None
        if form is not None:
            rows = form.masked(read.logits, proposal)
            # where a filter or a penalty comes behind the mask, the kernel reads the rows alone
            simple = context.penalty is None and sampling.plain
            stats = stats_of(rows, sampling.temperature) if simple else RowStats(rows, stats.numbers, 0.0)
        accepts, likely = np.zeros(count), np.zeros(count + 1)
        accepted, written = kernels.judge_own(
            np.array(proposal, np.int64), stats.rows, stats.numbers,
            choice_of(sampling, None, noise, context.place(0).position, count + 1),
            text_of(context.target_seen(), self._ends), accepts, likely,
        )  # fmt: skip
        token = None if written == NONE else written
        rejected = token is not None and accepted < len(draft.slots)
        judged = accepts[: min(count, accepted + (token is not None))].tolist()
        made = Acceptance(accepted, token, rejected, judged)
        if form is None:
            return made, likely.tolist()
        # the target's own probabilities, before the mask
        return made, target_probs(read, proposal, [*proposal[:accepted], *([] if token is None else [token])])


def rolls(context: RoundContext) -> bool:
    """Whether the drafter's cache can make several draws of a round at once."""
    drafter = context.drafter.cache
    return _repeatable(context) and isinstance(drafter, FusedCache) and drafter.compiled


def _repeatable(context: RoundContext) -> bool:
    """Whether the random numbers of later draws are known, or none are needed."""
    return context.sampling.greedy or isinstance(context.rng, Sampler | SharedNoise)
