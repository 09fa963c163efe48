"""The CPU backend: whole rounds by compiled code, several per call.

A call computes the round that is wanted and the next ones (prefetched rounds). A prefetched round is returned if its `StateKey` and draft
length are equal to those wanted; otherwise all that are left are dropped. What only the host can finish (a long correction, an n-gram that
is not in the drafter's table) is finished here, from what the call has drawn and verified.
"""

from __future__ import annotations

from collections import deque
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from omnidemo.backends.compiled_rounds import MadeRound, RoundsRequest
from omnidemo.backends.fused_cache import FusedCache
from omnidemo.backends.rollout_backend import RolledDraws, RolloutBackend, repeatable
from omnidemo.decoding.backend import Clock, Pass, RoundPlan, RoundResult, Slot, StageSeconds, StateKey
from omnidemo.decoding.method import Method
from omnidemo.decoding.randomness import Sampler
from omnidemo.decoding.rollout import DRAWS, FEW, ProposalRule, Rollout, RolloutRequest, anything
from omnidemo.decoding.round import RoundContext
from omnidemo.decoding.row_ops import token_prob
from omnidemo.decoding.sampling import as_array

NUMBERS = 384  # uniform numbers that are passed for all rounds of a call


class CpuBackend(RolloutBackend):
    """Serves greedy rounds and rounds at a temperature (no top-k, top-p, min-p or penalty) of a target with compiled passes: plain ones,
    and drafting ones where the method has a `ProposalRule` and the drafter compiled passes. For other drafts see `RolloutBackend`."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock)
        self._rounds: deque[MadeRound] = deque()  # prefetched, in order
        self._made_at: StateKey | None = None  # the state before the first round of their call
        self._last_id = -1  # the target's last id before the next of them
        self._written: tuple[StateKey, Rollout, float] | None = None  # prefetched plain rounds: state before, tokens, seconds each
        self._wasted = 0.0  # seconds of dropped rounds that no round has been charged with yet
        self._ends: tuple[NDArray[np.int64], NDArray[np.int64]] | None = None  # end tokens of target, drafter

    def run_round(self, context: RoundContext, method: Method, plan: RoundPlan) -> RoundResult | None:
        if context.penalty is not None or not context.sampling.plain or not repeatable(context):
            return None
        target = context.target.cache
        if not isinstance(target, FusedCache) or not target.rolls:
            return super().run_round(context, method, plan)
        result = self._plain(context, target, plan) if plan.draft_length == 0 else self._drafted(context, target, method, plan)
        if result is not None and self._wasted:
            result.seconds = result.seconds._replace(draft=result.seconds.draft + self._wasted)
            self._wasted = 0.0
        return result

    # rounds with a draft -------------------------------------------------------------------------------------------------

    def _drafted(self, context: RoundContext, target: FusedCache, method: Method, plan: RoundPlan) -> RoundResult | None:
        began, drafter, policy = self.clock(), context.drafter.cache, context.policy
        self._drop_plain(context)
        watched = policy is not None and policy.watches
        rule = method.proposal_rule(context) if isinstance(drafter, FusedCache) and drafter.rolls else None
        if rule is None or (watched and policy is not None and policy.reads_states):
            return super().run_round(context, method, plan)
        made, others = self._next(context, rule, plan), 0.0
        early = made is not None
        if made is None:
            made = self._make(context, target, rule, plan)
            if made is None:
                return super().run_round(context, method, plan)
            others = sum(sum(one.seconds) for one in self._rounds)
        self._last_id = made.written[-1] if made.written else -1
        # Seconds of this round so far. The caller times the whole call as draft, so the seconds of the other rounds are subtracted.
        draft, verify = made.seconds if early else (-made.seconds[1] - others, made.seconds[1])
        if made.rollout is not None:
            context.drafter.read_ahead(made.rollout)
        else:
            context.drafter.count_read(made.held[1])
        if made.written is None:
            draft += self.clock() - began
            return self._finished_here(context, method, plan, made, draft, verify)
        result = _result(context, target, made)
        result.seconds = StageSeconds(draft + self.clock() - began, verify)
        return result

    def _next(self, context: RoundContext, rule: ProposalRule, plan: RoundPlan) -> MadeRound | None:
        """This round, if it has been prefetched and is still valid."""
        if not self._rounds or self._made_at is None:
            return None
        made, at = self._rounds.popleft(), self._made_at
        expected = replace(
            at, target_len=at.target_len + made.lengths[0], draft_len=at.draft_len + made.lengths[1], last_id=self._last_id,
            rng_position=at.rng_position + (0 if context.sampling.greedy else made.used),
        )  # fmt: skip
        if made.budget == plan.draft_length and state_key(context, rule) == expected:
            return made
        self._wasted += sum(sum(one.seconds) for one in (made, *self._rounds))
        self._rounds.clear()
        return None

    def _make(self, context: RoundContext, target: FusedCache, rule: ProposalRule, plan: RoundPlan) -> MadeRound | None:
        """Compute this round and up to `plan.lookahead` more; None where that is not possible."""
        drafter, policy = context.drafter, context.policy
        beginning = drafter.beginning()
        if beginning is None:
            return None
        if len(beginning[0]) > FEW:  # a pass of its own makes better use of threads
            drafter.logits()
            beginning = drafter.beginning()
            assert beginning is not None
        sampler = context.rng if isinstance(context.rng, Sampler) and not context.sampling.greedy else None
        stop = policy.stop_rule() if policy is not None and policy.watches else None
        order = RolloutRequest(rule, context.sampling, plan.draft_length, sampler.peek(NUMBERS) if sampler is not None else None, stop)
        if self._ends is None:
            last = [drafter_id for end in context.end_ids if (drafter_id := context.map.drafters[end]) >= 0]
            self._ends = np.array(tuple(context.end_ids), np.int64), np.array(last, np.int64)
        wanted = RoundsRequest(order, 1 + plan.lookahead, plan.max_tokens - 1, context.map, *self._ends)
        self._made_at = state_key(context, rule)
        assert isinstance(drafter.cache, FusedCache)
        made = target.make_rounds(drafter.cache, wanted, context.target.unread, *beginning)
        if not made or not made[0].draft_probs:
            return None
        self._rounds.extend(made)
        return self._rounds.popleft()

    def _finished_here(
        self, context: RoundContext, method: Method, plan: RoundPlan, made: MadeRound, draft: float, verify: float
    ) -> RoundResult:
        """Finish a round by the reference, from the draws of the call and, if it came that far, its verification."""
        draws, target = RolledDraws(), context.target
        if made.rollout is not None:
            draws.give(context.drafter, made.rollout, whole=made.proposal is not None)

        def verification(proposal: list[int]) -> Pass:
            if made.stats is None or made.proposal != proposal:
                return target.verify(proposal, context.sampling.temperature)
            target.cache.length = len(target.ids) + made.held[0]
            return Pass(made.stats.rows, made.stats)

        result = self.with_draws(context, method, plan, draws, verification)
        spent = result.seconds
        result.seconds = StageSeconds(spent.draft + draft, spent.verify + verify, spent.accept)
        return result

    # plain rounds --------------------------------------------------------------------------------------------------------

    def _plain(self, context: RoundContext, target: FusedCache, plan: RoundPlan) -> RoundResult | None:
        began, written = self.clock(), self._written
        if written is None:
            written = self._write(context, target, plan)
            if written is None:
                return None
        before, tokens, each = written
        place = len(context.target.ids) - before.target_len
        now = state_key(context, None)
        known = place < len(tokens.ids) and now == replace(
            before, target_len=now.target_len, last_id=tokens.ids[place - 1] if place else before.last_id,
            rng_position=before.rng_position + (0 if context.sampling.greedy else place),
        )  # fmt: skip
        if not known:
            self._drop_plain(context)
            return None
        if isinstance(context.rng, Sampler) and not context.sampling.greedy:
            context.rng.uniform()  # the number that it was drawn with
        token, row = tokens.ids[place], tokens.rows[place : place + 1]
        # At temperature 0 the rollout gives the probability at temperature 1, else that at its own temperature.
        p = tokens.probabilities[place] if context.sampling.temperature in (0.0, 1.0) else token_prob(as_array(row)[0], token)
        target.length = len(context.target.ids)
        self._written = written if place + 1 < len(tokens.ids) else None
        seconds = StageSeconds(0.0, each if place else self.clock() - began - each * (len(tokens.ids) - 1))
        return RoundResult([], 0, token, False, [], [p], 0, row, seconds)

    def _write(self, context: RoundContext, target: FusedCache, plan: RoundPlan) -> tuple[StateKey, Rollout, float] | None:
        """Decode this token and up to `plan.lookahead` more in one call of the target; None where that saves no time."""
        count = min(1 + plan.lookahead, target.steps_per_call)
        if count < 2:
            return None
        began = self.clock()
        context.target.passes += 1
        before, vocabulary = state_key(context, None), context.map
        numbers = context.rng.peek(DRAWS) if isinstance(context.rng, Sampler) and not context.sampling.greedy else None
        rule = anything(len(vocabulary.to_drafter), vocabulary.to_drafter.device)
        order = RolloutRequest(rule, context.sampling, count, numbers, ends=tuple(context.end_ids))
        tokens = target.roll_out(order, context.target.unread, None, None)
        if tokens is None or not tokens.ids:
            target.trim(len(context.target.ids) - 1)  # it has only read
            return None
        return before, tokens, (self.clock() - began) / len(tokens.ids)

    def _drop_plain(self, context: RoundContext) -> None:
        if self._written is not None:
            before, tokens, each = self._written
            self._wasted += each * (len(tokens.ids) - max(0, len(context.target.ids) - before.target_len))
            self._written = None


def state_key(context: RoundContext, rule: ProposalRule | None) -> StateKey:
    target, drafter, rng = context.target, context.drafter, context.rng
    position = rng.position if isinstance(rng, Sampler) else 0
    if rule is None:  # without a draft the drafter does not matter
        return StateKey(len(target.ids), 0, target.ids[-1], position, 0, None, (target.passes, 0))
    return StateKey(
        len(target.ids), len(drafter.ids), target.ids[-1], position, drafter.weights, rule, (target.passes, drafter.passes)
    )  # fmt: skip


def _result(context: RoundContext, target: FusedCache, made: MadeRound) -> RoundResult:
    """The `RoundResult` of a complete round; pushes its proposal to the drafter and uses up its random numbers."""
    slots, base = [], 0
    drafter, draft_probs, drafted = context.drafter, made.draft_probs, made.drafted
    start, proposal = len(drafter.ids), made.proposal or []
    for target_id, first, stop, q in zip(proposal, made.firsts, made.stops, made.bounds, strict=False):
        slots.append(Slot(target_id, tuple(drafted[base:stop]), q, start + base, draft_probs=draft_probs[first : first + stop - base]))
        base = stop
    drafter.ids += drafted[:base]
    if isinstance(context.rng, Sampler) and not context.sampling.greedy:
        context.rng.advance(made.spent)
    assert made.stats is not None and made.written is not None
    target.length = len(context.target.ids) + made.held[0]
    token = made.written[-1] if len(made.written) > made.accepted else None
    return RoundResult(
        slots, made.accepted, token, made.rejected, made.accepts, made.likely, len(draft_probs), made.stats.rows, StageSeconds()
    )  # fmt: skip
