"""The CPU backend: whole rounds by compiled code, several per call.

A call computes the requested round and the next ones (prefetched rounds). A prefetched round is returned if
its `StateKey` and draft length match the request; otherwise all remaining ones are dropped. A round that only
the host can finish (a correction that takes many numbers, or meets a token of more than `LONGEST` drafter
tokens) is finished here, from the call's draws and verification.
"""

from __future__ import annotations

from collections import deque
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from omnidemo.backends import compile_kernels
from omnidemo.backends.call_layout import NONE
from omnidemo.backends.compiled_passes import choice_of, text_of
from omnidemo.backends.compiled_rounds import MadeRound, RoundsRequest
from omnidemo.backends.fused_cache import FusedCache
from omnidemo.backends.rollout_backend import RolledDraws, RolloutBackend, repeatable, rolls
from omnidemo.decoding.backend import (
    Acceptance,
    Clock,
    Draft,
    Pass,
    RoundPlan,
    RoundResult,
    StageSeconds,
    StateKey,
)
from omnidemo.decoding.method import Method
from omnidemo.decoding.randomness import Sampler
from omnidemo.decoding.rollout import DRAWS, FEW, ProposalRule, RolloutRequest, anything
from omnidemo.decoding.round import Judged, RoundContext
from omnidemo.decoding.row_ops import token_prob
from omnidemo.decoding.sampling import as_array

NUMBERS = 384  # uniform numbers of one call


class CpuBackend(RolloutBackend):
    """Serves rounds of a target with compiled passes: plain rounds, and drafting rounds where the method has
    a `ProposalRule` and the drafter compiled passes. `RolloutBackend` serves other drafts."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock)
        self._ahead: deque[MadeRound] = deque()  # prefetched rounds, in order
        self._wasted = 0.0  # seconds of dropped rounds, not charged to a round yet
        self._ends: tuple[NDArray[np.int64], NDArray[np.int64]] | None = None  # end tokens of target, drafter

    def run_round(self, context: RoundContext, method: Method, plan: RoundPlan) -> RoundResult | None:
        if not repeatable(context):
            return None
        target = context.target.cache
        if not isinstance(target, FusedCache) or not target.rolls:
            return super().run_round(context, method, plan)
        if plan.copied:  # prefetched rounds are invalid then
            self._drop_ahead()
            draws = RolledDraws() if plan.draft_length and rolls(context) else None
            result: RoundResult | None = self.with_draws(context, method, plan, draws)
        else:
            result = self._served(context, target, method, plan) or super().run_round(context, method, plan)
        if result is not None and self._wasted and (plan.draft_length or plan.copied):
            result.seconds = result.seconds._replace(draft=result.seconds.draft + self._wasted)
            self._wasted = 0.0
        return result

    def judge(self, context: RoundContext, method: Method, draft: Draft, read: Pass) -> Judged | None:
        """Accept a proposal of the host by compiled code. Drafted tokens only where the target's own token is
        accepted: otherwise the code that drew them corrects a rejection."""
        kernels, sampling, proposal = compile_kernels.kernels(), context.sampling, draft.proposal
        if kernels is None or read.stats is None or type(method).accept is not Method.accept:
            return None
        if not (sampling.greedy or context.rng.shared or all(slot.match for slot in draft.slots)):
            return None
        numbers, count = context.upcoming(len(proposal) + 1), len(proposal)
        accepts, likely = np.zeros(count), np.zeros(count + 1)
        accepted, written, spent = kernels.judge_given(
            np.array(proposal, np.int64), read.stats.rows, read.stats.numbers,
            choice_of(sampling, numbers, context.noise, context.place(0).position, count + 1),
            text_of(context.target_seen(), self._end_tokens(context)[0]), accepts, likely,
        )  # fmt: skip
        context.use_up(spent)
        token = None if written == NONE else written
        rejected = token is not None and accepted < len(draft.slots)
        judged = accepts[: min(count, accepted + (token is not None))].tolist()
        return Acceptance(accepted, token, rejected, judged), likely.tolist()

    def _end_tokens(self, context: RoundContext) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The end tokens of target and drafter."""
        if self._ends is None:
            last = [drafter_id for end in context.end_ids if (drafter_id := context.map.drafters[end]) >= 0]
            self._ends = np.array(tuple(context.end_ids), np.int64), np.array(last, np.int64)
        return self._ends

    def _served(
        self, context: RoundContext, target: FusedCache, method: Method, plan: RoundPlan
    ) -> RoundResult | None:
        """The round, from this or an earlier call of compiled code; None where no call can make it."""
        began, drafts, rule = self.clock(), plan.draft_length > 0, None
        if drafts:
            drafter = context.drafter.cache
            rule = (
                method.proposal_rule(context) if isinstance(drafter, FusedCache) and drafter.rolls else None
            )
            if rule is None or context.policy.reads_states:
                return None
        made = self._next(context, rule, plan)
        early = made is not None
        if made is None:
            self._ahead.extend(
                self._make(context, target, rule, plan)
                if rule is not None
                else self._write(context, target, plan)
            )
            if not self._ahead:
                return None
            made = self._ahead.popleft()
        # The caller times the whole call as this round's, so the seconds of the other rounds are subtracted.
        others = 0.0 if early else sum(sum(one.seconds) for one in self._ahead)
        draft, verify = made.seconds if early else (-made.seconds[1] - others, made.seconds[1])
        if drafts and made.rollout is not None:
            context.drafter.read_ahead(made.rollout)
        elif drafts:
            context.drafter.count_read(made.held[1])
        if made.result is None:
            return self._finished_here(context, method, plan, made, draft + self.clock() - began, verify)
        for slot in made.result.slots:
            context.drafter.ids.extend(slot.draft_ids)
        context.use_up(made.spent)
        target.length = len(context.target.ids) + made.held[0]
        if drafts:
            made.result.seconds = StageSeconds(draft + self.clock() - began, verify)
        else:
            made.result.seconds = StageSeconds(0.0, verify if early else self.clock() - began - others)
        return made.result

    def _next(self, context: RoundContext, rule: ProposalRule | None, plan: RoundPlan) -> MadeRound | None:
        """This round, if it was prefetched and is still valid."""
        if not self._ahead:
            return None
        made = self._ahead.popleft()
        if made.budget == plan.draft_length and state_key(context, rule) == made.key:
            return made
        self._ahead.append(made)
        self._drop_ahead()
        return None

    def _drop_ahead(self) -> None:
        self._wasted += sum(sum(one.seconds) for one in self._ahead)
        self._ahead.clear()

    def _make(
        self, context: RoundContext, target: FusedCache, rule: ProposalRule, plan: RoundPlan
    ) -> list[MadeRound]:
        """Compute this round, which drafts, and up to `plan.lookahead` more; [] where that is not
        possible."""
        drafter, policy = context.drafter, context.policy
        beginning = drafter.beginning()
        if beginning is None:
            return []
        if len(beginning[0]) > FEW:  # a pass of its own makes better use of threads
            drafter.logits()
            beginning = drafter.beginning()
            assert beginning is not None
        stop = policy.stop_rule() if policy.watches else None
        order = RolloutRequest(
            rule, context.sampling, plan.draft_length, context.upcoming(NUMBERS), stop,
            seen=context.drafter_seen(),
            noise=context.noise, position=context.place(0).position,
        )  # fmt: skip
        wanted = RoundsRequest(
            order,
            1 + plan.lookahead,
            plan.max_tokens - 1,
            context.map,
            *self._end_tokens(context),
            state_key(context, rule),
            context.target_seen(),
        )
        assert isinstance(drafter.cache, FusedCache)
        made = target.make_rounds(drafter.cache, wanted, context.target.unread, *beginning) or []
        drew = bool(made) and (
            made[0].result is not None or (made[0].rollout is not None and bool(made[0].rollout.ids))
        )
        return made if drew else []

    def _write(self, context: RoundContext, target: FusedCache, plan: RoundPlan) -> list[MadeRound]:
        """Decode this token and up to `plan.lookahead` more in one call of the target; [] where that saves no
        time."""
        count, sampling = min(1 + plan.lookahead, target.steps_per_call), context.sampling
        # then the reference decodes a single token as fast
        simple = sampling.plain and not sampling.penalises
        if count < 2 and simple:
            return []
        began = self.clock()
        context.target.passes += 1
        key, vocabulary = state_key(context, None), context.map
        rule = anything(len(vocabulary.to_drafter), vocabulary.to_drafter.device)
        order = RolloutRequest(
            rule, sampling, count, context.upcoming(DRAWS), ends=tuple(context.end_ids),
            seen=context.target_seen(),
            noise=context.noise, position=context.place(0).position,
        )  # fmt: skip
        tokens = target.roll_out(order, context.target.unread, None, None)
        if tokens is None or not tokens.ids:
            target.trim(len(context.target.ids) - 1)  # ids were read, but nothing drawn
            return []
        rounds, each = [], (self.clock() - began) / len(tokens.ids)
        raw = simple and sampling.temperature in (0.0, 1.0)
        for place, token in enumerate(tokens.ids):
            row = tokens.rows[place : place + 1]
            # At temperature 0 the rollout gives the probability at temperature 1, else that of the draw.
            p = tokens.probabilities[place] if raw else token_prob(as_array(row)[0], token)
            result = RoundResult([], 0, token, False, [], [p], 0, row, StageSeconds())
            rounds.append(MadeRound(key, 0, result, (0.0, each), 1))
            used = int(order.uniforms is not None)
            key = replace(
                key, target_len=key.target_len + 1, last_id=token, rng_position=key.rng_position + used
            )
        return rounds

    def _finished_here(
        self,
        context: RoundContext,
        method: Method,
        plan: RoundPlan,
        made: MadeRound,
        draft: float,
        verify: float,
    ) -> RoundResult:
        """Finish a round by the reference, from the draws of the call and its verification, if there is
        one."""
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


def state_key(context: RoundContext, rule: ProposalRule | None) -> StateKey:
    target, drafter, rng = context.target, context.drafter, context.rng
    position = rng.position if isinstance(rng, Sampler) else 0
    if rule is None:  # without a draft the drafter does not matter
        return StateKey(len(target.ids), 0, target.ids[-1], position, 0, None, (target.passes, 0))
    return StateKey(
        len(target.ids), len(drafter.ids), target.ids[-1], position, drafter.weight_changes, rule,
        (target.passes, drafter.passes)
    )  # fmt: skip
