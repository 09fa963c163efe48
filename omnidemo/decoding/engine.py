"""The decoding loop, from top to bottom: `decode` plans a round, `make_round` drafts, verifies and accepts,
and `decode` commits the result and yields it as a `Round`. `RoundContext` has what a method works with.

`make_round` is the reference. A backend may do parts of it faster, with the same result.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from omnidemo.core.records import STAGES, FinishReason, Round, Token
from omnidemo.decoding.backend import (
    Acceptance,
    Backend,
    Clock,
    Draft,
    Draws,
    Judged,
    Pass,
    RoundPlan,
    RoundResult,
    Slot,
    StageSeconds,
)
from omnidemo.decoding.constraint import Constraint
from omnidemo.decoding.contexts import DrafterContext
from omnidemo.decoding.draft_policy import DraftPolicy, State
from omnidemo.decoding.randomness import Place, Randomness, Sampler, SharedNoise, draw_with_prob
from omnidemo.decoding.render import discarded_tokens, emitted_tokens, new_ngrams
from omnidemo.decoding.rollout import ProposalRule, token_by_token
from omnidemo.decoding.row_ops import RowStats, softmax_, token_prob
from omnidemo.decoding.sampling import (
    Logits,
    Probs,
    RepetitionPenalty,
    SamplingParams,
    Seen,
    highest,
)
from omnidemo.decoding.sources.copy_chances import CopiedDraft
from omnidemo.decoding.sources.memory_source import Source
from omnidemo.decoding.state import DecodingState, TargetContext, target_probs
from omnidemo.decoding.tracing import Tracer
from omnidemo.vocabulary.ngram_cache import NgramCache
from omnidemo.vocabulary.vocabulary_map import VocabularyMap

if TYPE_CHECKING:
    from omnidemo.decoding.method import Method


OnDraft = Callable[[list[str]], object]


class NotFinite(ArithmeticError):
    """The drafter's logits are not finite, so nothing can be drawn from them."""


@dataclass(slots=True)
class Limits:
    """When a generation ends. A `stop` string ends it after the token that completes the string, which the
    text keeps. `cancelled` is called after each round. `begun`: answer ids that the prompt already ends with;
    a stop string or a character may begin in them."""

    max_new_tokens: int
    stop: tuple[str, ...] = ()
    cancelled: Callable[[], bool] = lambda: False
    begun: Sequence[int] = ()

    def stop_ids(self, vocabulary: VocabularyMap) -> list[int]:
        """The control tokens whose names are stop strings. They write no text."""
        return [vocabulary.target.control[stop] for stop in self.stop if stop in vocabulary.target.control]

    def finish_reason(self, text: str, emitted: int, free_positions: int) -> FinishReason | None:
        """Why the generation ends after `emitted` tokens with this text; None while it goes on.
        `free_positions`: tokens that still fit into the target's window."""
        if any(stop in text for stop in self.stop):
            return "stop"
        return "length" if emitted >= self.max_new_tokens else "context" if free_positions < 1 else None


@dataclass(slots=True)
class AnswerPlan:
    """The parts that decode one answer."""

    method: Method
    map: VocabularyMap
    ngrams: NgramCache  # only read: each round names the n-grams that the caller inserts before the next one
    sampling: SamplingParams
    rng: Randomness
    limits: Limits
    policy: DraftPolicy  # how long each draft gets
    tracer: Tracer | None = None  # keeps the target's distributions for training
    clock: Clock = lambda: 0.0  # in seconds
    backend: Backend | None = None  # draws and judges faster
    memory: Source | None = None  # drafts from memory
    constraint: Constraint | None = None  # holds the answer to a form, such as a JSON schema
    on_draft: OnDraft | None = None  # gets the texts of each round's draft before the target's pass


def decode(state: DecodingState, plan: AnswerPlan) -> Iterator[Round]:
    """Decode until an EOS token, a stop string or a limit. `state` has been started with the prompt."""
    policy, limits, memory, clock = plan.policy, plan.limits, plan.memory, plan.clock
    context, constraint = _context(state, plan), plan.constraint
    if constraint is not None:
        constraint.read(limits.begun)
    answer = _Answer(state, plan, context.end_ids)
    index = 0

    while answer.reason is None:
        # What may this round draft, from memory and by the drafter?
        began = clock()
        most = min(limits.max_new_tokens - answer.emitted, state.target.free_positions)
        copied = memory.draft(state.target.ids, most - 1) if memory is not None else None
        round_plan = _plan(policy, state, plan.method, most, index, copied)
        context.start = len(context.drafter.ids)
        planned = clock()
        made = make_round(context, plan.method, round_plan, clock, plan.backend)
        judged = clock()

        # Policy and memory learn from the outcome; both contexts take the emitted ids.
        _update_policy(policy, round_plan, made)
        result = answer.until_stop(made)
        ids = result.ids
        if memory is not None and copied is not None:
            memory.learn(copied, ids)
        known = result.logits.shape[-1] > 0  # a remote target sends none
        changed = constraint.read(ids, result.logits if known else None) if constraint is not None else 0
        state.commit(context.start, result)
        committed = clock()

        # The text grows, the trace for training too, and the round is yielded as a record.
        tokens = answer.add(result, round_plan)
        if plan.tracer is not None:
            copies = [token.match is not None for token in tokens]  # which the drafter did not guess
            plan.tracer.add(result.logits[: len(ids)], ids, result.accepted, copies)
        draft, verify, accept = result.seconds
        stages = (planned - began + draft, verify, committed - judged + accept, clock() - committed)
        yield Round(
            index=index,
            tokens=tuple(tokens),
            discarded=tuple(discarded_tokens(result, context.map, context.sampling.greedy)),
            draft_length=round_plan.draft_length or len(round_plan.copied),
            drafted=result.drafted,
            proposed=sum(slot.target_id >= 0 for slot in result.slots),
            accepted=result.accepted,
            judged=len(result.accept_probs),
            ngram_hits=sum(
                len(slot.draft_ids) != 1 and slot.match is None for slot in result.slots[: result.accepted]
            ),
            seconds={**dict(zip(STAGES, stages, strict=True)), "total": sum(stages)},
            inserts=new_ngrams(result.next_token, context.map, context.ngrams),
            finish_reason=answer.reason,
            variation=result.variation,
            offers=policy.offers(),
            changed=changed,
        )
        index += 1
        if answer.reason is None and limits.cancelled():
            answer.reason = "cancelled"


def _plan(
    policy: DraftPolicy, state: DecodingState, method: Method, most: int, index: int,
    copied: CopiedDraft | None
) -> RoundPlan:  # fmt: skip
    """Decide what the next round drafts. It may emit at most `most` tokens."""
    drafts = method.drafts and state.drafter.can_draft
    policy.begin_round(index, len(state.target.ids), state.drafter.unread if drafts else 0)
    count, length = policy.plan(copied, drafts)
    slots, base = list[Slot](), len(state.drafter.ids)
    if copied is not None:
        proposed = zip(copied.ids[:count], copied.matches, strict=False)
        slots = [Slot(token, (), 1.0, base, match=match) for token, match in proposed]
    return RoundPlan(min(length, most - 1 - count), most, slots)


def _update_policy(policy: DraftPolicy, plan: RoundPlan, result: RoundResult) -> None:
    """Give the policy the outcome of the drafter's draft. A draft after copied ids counts only if these were
    accepted."""
    first, slots = len(plan.copied), [slot for slot in result.slots if slot.match is None]
    if plan.draft_length and (not first or (result.drafted and result.accepted >= first)):
        accepts = result.accept_probs[first : first + len(slots)]
        policy.learn([slot.draft_probs for slot in slots], accepts)
    policy.count(result.drafted, sum(slot.target_id >= 0 for slot in slots))


def make_round(
    context: RoundContext, method: Method, plan: RoundPlan, clock: Clock, backend: Backend | None = None
) -> RoundResult:
    """Draft, verify, accept: the definition of a round. A backend may make the draws and the judgement."""
    target, began = context.target, clock()

    # 1 Draft and 2 translate: memory and the method propose target tokens.
    context.draws = backend.draws(context, plan) if backend is not None else None
    draft = method.propose(context, plan)
    proposal, drafted_at = draft.proposal, clock()
    if context.on_draft is not None:
        shown = context.map.target.shown
        context.on_draft([shown[slot.target_id] for slot in draft.slots if slot.target_id >= 0])

    # 3 Verify: one forward pass of the target over all draft tokens.
    read = target.verify(proposal, context.sampling.temperature)
    verified_at = clock()

    # 4 Accept from the left; correct the first rejection, or add a bonus token.
    judgement = backend.judge(context, method, draft, read) if backend is not None else None
    judged, probs = judgement or _judge_by_method(context, method, draft, read)
    seconds = StageSeconds(drafted_at - began, verified_at - drafted_at, clock() - verified_at)
    return RoundResult(
        draft.slots, judged.accepted, judged.token, judged.rejected, judged.accepts, probs, draft.drafted,
        read.logits, seconds, judged.variation,
    )  # fmt: skip


def _judge_by_method(context: RoundContext, method: Method, draft: Draft, read: Pass) -> Judged:
    """The reference: the method judges the draft by the target's rows, masked and penalised."""
    proposal, penalty, scores = draft.proposal, context.penalty, read.logits
    context.stats = read.stats if penalty is None and context.constraint is None else None
    if context.constraint is not None:
        scores = context.constraint.masked(scores, proposal)
    if penalty is not None:
        scores = context.sampling.penalised(scores, penalty.of_target(context.target.ids, proposal))
    if draft.slots:
        judged = method.accept(context, draft, scores)
    else:
        judged = Acceptance(0, _undrafted_token(context, scores), False, [])
    written = [*proposal[: judged.accepted], *([] if judged.token is None else [judged.token])]
    return judged, target_probs(read, proposal, written)


def _undrafted_token(context: RoundContext, scores: Logits) -> int:
    """The target's own token in a round without a draft."""
    stats, sampling = context.stats, context.sampling
    if sampling.greedy:
        return stats.best()[0] if stats is not None else highest(scores[0])
    return context.rng.draw(
        stats.probs(0) if stats is not None and sampling.plain else sampling.probs(scores[0]),
        context.place(0),
    )


class _Answer:
    """The text of an answer so far, and why it ends."""

    def __init__(self, state: DecodingState, plan: AnswerPlan, end_ids: frozenset[int]) -> None:
        self.state, self.limits, self.vocabulary = state, plan.limits, plan.map
        self.end_ids, self.greedy = end_ids, plan.sampling.greedy
        writes = plan.map.target.writes
        self.text = "".join(state.decoder.decode(writes(token_id)) for token_id in plan.limits.begun)
        self.emitted = 0
        self.reason: FinishReason | None = "context" if state.target.free_positions < 1 else None

    def until_stop(self, result: RoundResult) -> RoundResult:
        """The round, cut after the id that completes a stop string. Later draft tokens are not judged."""
        if not self.limits.stop:
            return result
        text, decoder, ids = self.text, self.state.decoder, result.ids
        before = decoder.getstate()
        for count, token_id in enumerate(ids, 1):
            text += decoder.decode(self.vocabulary.target.writes(token_id))
            if count < len(ids) and any(stop in text for stop in self.limits.stop):
                slots, probs = result.slots[:count], result.accept_probs[:count]
                result = replace(result, slots=slots, accept_probs=probs, accepted=count, next_token=None)
                break
        decoder.setstate(before)
        return result

    def add(self, result: RoundResult, plan: RoundPlan) -> list[Token]:
        """Add a round to the text and decide whether the answer ends. Returns the round's tokens."""
        ids, decoder = result.ids, self.state.decoder
        plain = plan.draft_length == 0 and not plan.copied
        tokens = emitted_tokens(result, self.vocabulary, decoder, self.greedy, plain)
        if not math.isfinite(sum(token.p for token in tokens)):
            raise RuntimeError(
                "the target's numbers are not finite here, so it cannot go on; load it in float32 or choose"
                " another one"
            )
        self.emitted += len(ids)
        self.text += "".join([token.text for token in tokens])
        free = self.state.target.free_positions
        ended = ids[-1] in self.end_ids
        self.reason = "end" if ended else self.limits.finish_reason(self.text, self.emitted, free)
        # bytes that never became a whole character
        if self.reason is not None and (rest := decoder.decode(b"", True)):
            tokens[-1] = replace(tokens[-1], text=tokens[-1].text + rest)
        return tokens


def _context(state: DecodingState, plan: AnswerPlan) -> RoundContext:
    """The `RoundContext` of an answer that begins with this state."""
    target, drafter, vocabulary, sampling = state.target, state.drafter, plan.map, plan.sampling
    end_ids = frozenset((*vocabulary.target.roles.get("end", ()), *plan.limits.stop_ids(vocabulary)))
    # The drafter may have read past the beginning of the answer; its own distribution may depend on that.
    prompt = len(target.ids) - len(plan.limits.begun)
    begin = (prompt, len(drafter.ids)) if sampling.penalty_scope == "answer" else (0, 0)
    penalty = RepetitionPenalty(vocabulary, begin) if sampling.penalises else None
    return RoundContext(
        drafter, vocabulary, plan.ngrams, sampling, plan.rng, end_ids, penalty, prompt=prompt,
        policy=plan.policy, target=target, constraint=plan.constraint, on_draft=plan.on_draft,
    )  # fmt: skip


@dataclass(slots=True, eq=False)
class RoundContext:
    """What a method drafts and accepts with. One object serves a generation. Trie and weights do not change
    within a round."""

    drafter: DrafterContext
    map: VocabularyMap
    ngrams: NgramCache
    sampling: SamplingParams
    rng: Randomness
    end_ids: frozenset[int]
    penalty: RepetitionPenalty | None = None
    start: int = 0  # drafter ids in the text before the round
    # ends a draft before its budget is used up
    policy: DraftPolicy = field(default_factory=lambda: DraftPolicy(0))
    # copied ids before the drafter's draft
    lead: int = field(default=0, kw_only=True)
    target: TargetContext = field(kw_only=True)
    prompt: int = field(default=0, kw_only=True)  # target ids before the answer
    stats: RowStats | None = None  # of the verification rows, if the pass returned them
    draws: Draws | None = None  # draws that a backend made in one rollout
    constraint: Constraint | None = None  # masks the logits before they are judged
    on_draft: OnDraft | None = None

    def logits(self) -> Logits:
        """The drafter's logits [D] for its next token, with the repetition penalty."""
        logits, seen = self.drafter.logits(), self.drafter_seen()
        return logits if seen is None else self.sampling.penalised(logits, seen.there)

    def drafter_seen(self) -> Seen | None:
        """The drafter's ids so far, for the repetition penalty; None without one."""
        return None if self.penalty is None else self.penalty.drafter.hold(self.drafter.ids, self.start)

    def target_seen(self) -> Seen | None:
        """The target's ids so far, likewise."""
        ids = self.target.ids
        return None if self.penalty is None else self.penalty.target.hold(ids, len(ids))

    def masked(self, logit_mask: Logits) -> Logits:
        """The logits [D] plus `logit_mask` [D], which is 0 for tokens that may be drawn and −∞ for others.
        The mask precedes temperature and top-k, so that top-k counts only tokens that may be drawn."""
        return self.logits() + logit_mask

    def probs(self, logit_mask: Logits) -> Probs:
        """The drafter's distribution [D] over what `logit_mask` [D] allows."""
        if self.penalty is None and self.sampling.plain and not self.sampling.greedy:
            return softmax_(self.drafter.logits() + logit_mask, self.sampling.temperature)
        return self.sampling.probs(self.masked(logit_mask))

    def probs_after(self, slot: Slot, path: tuple[int, ...]) -> Probs:
        """The drafter's distribution [D] over `readable` tokens after the slot's base and `path`, cached in
        the slot."""
        probs = slot.distributions.get(path)
        if probs is None:
            self.drafter.rollback(slot.base)
            self.drafter.push(*path)
            probs = self.probs(self.map.readable_logit_mask)
            # not finite: no walk goes on from here
            if not 0.0 < float(probs.sum()) < float("inf"):
                probs = np.zeros_like(probs)
            slot.distributions[path] = probs
        return probs

    def place(self, index: int) -> Place:
        """The position of token `index` of this round, or of the drafter's draft, for the shared noise."""
        return Place(len(self.target.ids) - self.prompt + self.lead + index)

    def draw(
        self, logit_mask: Callable[[], Logits], index: int = 0, path: tuple[int, ...] = (),
        completed: Mapping[int, int] | None = None,
    ) -> tuple[int, float, Probs]:  # fmt: skip
        """Draw the next drafter token among those that `logit_mask()` [D] allows. Returns (token, its
        probability, distribution [D]); at temperature 0 the masked logits and their softmax. A backend's
        rollout may have drawn it already.

        The token belongs to slot `index`, after a `path` of drafter ids. `completed`: drafter id → target id
        for tokens that complete a target token after the path; not needed for an empty path. NotFinite if the
        logits give no distribution."""
        if self.draws is not None and (made := self.draws.pop(self)) is not None:
            drawn, q, probs = made
        elif self.sampling.greedy:
            probs = self.masked(logit_mask())
            drawn = highest(probs)
            q = token_prob(probs, drawn)
        else:
            probs, place = self.probs(logit_mask()), None
            if self.rng.shared:
                ends = completed or {}
                ids = np.array([*ends], np.int64), np.array([*ends.values()], np.int64)
                place = self.place(index)._replace(path=path, known=ids if path else self.map.directly)
            drawn, q = draw_with_prob(self.rng, probs, place)
        if not 0.0 < q <= 2.0:  # NaN, or from infinite logits
            raise NotFinite
        return drawn, q, probs

    def readable_logit_mask(self) -> Logits:
        """[D]: 0 for `readable` drafter tokens, −∞ for the rest."""
        return self.map.readable_logit_mask

    def begin_slot(self, rule: Callable[[RoundContext], ProposalRule], budget: int, index: int = 0) -> None:
        """Announce how the slots from `index` on are drawn, for at most `budget` drafter tokens, so that a
        backend can draw them in one rollout. Optional: it changes only who draws."""
        if self.draws is not None:
            self.draws.fill(self, rule, budget, index)

    def keep_drafting(self, base: int, draft_probs: Sequence[float]) -> bool:
        """Whether to draft another slot after the newest one, which begins after `base` drafter ids. Without
        the drafter's probabilities no stop rule applies, and the draft ends."""
        if not self.policy.watches or not draft_probs:
            return not self.policy.watches
        states: list[State] = []
        if self.policy.reads_states:
            read = [self.drafter.state(base + depth) for depth in range(len(draft_probs))]
            states = [state for state in read if state is not None]
        return self.policy.keep_drafting(draft_probs, states)

    @property
    def noise(self) -> SharedNoise | None:
        """The Gumbel noise that target and drafter share; None without a seed and at temperature 0."""
        return self.rng if isinstance(self.rng, SharedNoise) and not self.sampling.greedy else None

    def upcoming(self, count: int) -> NDArray[np.float64] | None:
        """The next uniform numbers, not yet used up; None if draws use none."""
        return self.rng.peek(count) if isinstance(self.rng, Sampler) and not self.sampling.greedy else None

    def use_up(self, count: int) -> None:
        """Count uniform numbers of `upcoming` as used."""
        if isinstance(self.rng, Sampler) and not self.sampling.greedy:
            self.rng.advance(count)

    def draw_freely(self, budget: int) -> tuple[list[int], list[float], list[Probs]]:
        """Draw and push up to `budget` drafter tokens, or up to an EOS token. Returns their ids,
        probabilities and distributions [D]."""
        drawn: list[int] = []
        q: list[float] = []
        distributions: list[Probs] = []
        while len(drawn) < budget and not (drawn and self.map.targets[drawn[-1]] in self.end_ids):
            self.begin_slot(_freely, budget - len(drawn), len(drawn))
            try:
                token, probability, probs = self.draw(self.readable_logit_mask, len(drawn))
            except NotFinite:
                break
            drawn.append(token)
            q.append(probability)
            distributions.append(probs)
            self.drafter.push(token)
            if not self.keep_drafting(len(self.drafter.ids) - 1, [probability]):
                break
        return drawn, q, distributions


def _freely(context: RoundContext) -> ProposalRule:
    return token_by_token(context.map.readable_logit_mask)
