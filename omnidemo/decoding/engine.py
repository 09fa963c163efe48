"""prompt → draft → translate → verify → accept, correct → record: the loop of a generation, one `Round` at a
time."""

from __future__ import annotations

import codecs
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from omnidemo.core.offers import Offer
from omnidemo.core.records import STAGES, FinishReason, Round, Token
from omnidemo.decoding.backend import Backend, Clock, RoundPlan, RoundResult, Slot
from omnidemo.decoding.draft_policy import DraftPolicy
from omnidemo.decoding.method import Method
from omnidemo.decoding.randomness import Randomness
from omnidemo.decoding.render import discarded_tokens, emitted_tokens, new_ngrams
from omnidemo.decoding.round import RoundContext, reference_round
from omnidemo.decoding.sampling import RepetitionPenalty, SamplingParams
from omnidemo.decoding.sources.copier import CopiedDraft
from omnidemo.decoding.sources.memory_source import Source
from omnidemo.decoding.state import DecodingState
from omnidemo.decoding.tracing import Tracer
from omnidemo.vocabulary.ngram_cache import NgramCache
from omnidemo.vocabulary.vocabulary_map import VocabularyMap


@dataclass(slots=True)
class Limits:
    """When a generation ends. `stop`: strings that end it after the token that completes one; the text keeps
    them. `cancelled` is called after each round. `begun`: ids of the answer that the prompt ends with: a stop
    string or a character may begin in them."""

    max_new_tokens: int
    stop: tuple[str, ...] = ()
    cancelled: Callable[[], bool] = lambda: False
    begun: Sequence[int] = ()

    def stop_ids(self, vocabulary: VocabularyMap) -> list[int]:
        """The control tokens whose names are stop strings. They write no text."""
        return [vocabulary.target.control[stop] for stop in self.stop if stop in vocabulary.target.control]

    def until_stop(
        self, ids: list[int], text: str, vocabulary: VocabularyMap, decoder: codecs.IncrementalDecoder
    ) -> int:
        """How many of the ids that follow `text` stay: up to the one that completes a stop string. The
        decoder's state is restored."""
        state = decoder.getstate()
        count = len(ids)
        for position, token_id in enumerate(ids):
            text += decoder.decode(vocabulary.target.writes(token_id))
            if any(stop in text for stop in self.stop):
                count = position + 1
                break
        decoder.setstate(state)
        return count

    def finish_reason(self, text: str, emitted: int, free_positions: int) -> FinishReason | None:
        """Why the generation ends after `emitted` tokens with this text; None while it goes on.
        `free_positions`: tokens that still fit into the target's window."""
        if any(stop in text for stop in self.stop):
            return "stop"
        return "length" if emitted >= self.max_new_tokens else "context" if free_positions < 1 else None


@dataclass(slots=True)
class AnswerPlan:
    """The parts of one answer's decoding. `policy` sets a round's drafter tokens (0 is plain decoding) and
    ends drafts. `ngrams` is only read: each round names the n-grams to insert, and the caller inserts them
    before the next round. `clock` returns seconds. `backend` draws and judges faster. `copier` proposes ids
    from memory."""

    method: Method
    map: VocabularyMap
    ngrams: NgramCache
    sampling: SamplingParams
    rng: Randomness
    limits: Limits
    policy: DraftPolicy
    tracer: Tracer | None = None
    clock: Clock = lambda: 0.0
    backend: Backend | None = None
    copier: Source | None = None


def decode(state: DecodingState, plan: AnswerPlan) -> Iterator[Round]:
    """Decode until an end token, a stop string or a limit, from a state that has been started with its
    prompt."""
    method, policy, limits, copier = plan.method, plan.policy, plan.limits, plan.copier
    backend, clock, tracer = plan.backend, plan.clock, plan.tracer
    context = _context(state, plan)
    answer = _Answer(state, plan, context.end_ids)
    index = 0

    while answer.reason is None:
        began = clock()
        most = min(limits.max_new_tokens - answer.emitted, state.target.free_positions)
        copied = copier.draft(state.target.ids, most - 1) if copier is not None else None
        ahead = _plan(policy, state, method, most, index, copied)
        context.start = len(context.drafter.ids)
        planned = clock()
        result = reference_round(context, method, ahead, clock, backend)
        made = clock()

        written = answer.until_stop(result)
        _teach(policy, ahead, result)
        if copier is not None and copied is not None:
            copier.learn(copied, written.ids)
        state.commit(context.start, written.result, written.ids, written.accepted)
        committed = clock()

        tokens = answer.add(written, ahead)
        if tracer is not None:
            copies = [token.source == "copied" for token in tokens]
            tracer.add(result.logits[: len(written.ids)], written.ids, written.accepted, copies)
        draft, verify, accept = result.seconds
        stages = (planned - began + draft, verify, committed - made + accept, clock() - committed)
        yield _record(index, ahead, written, tokens, stages, answer.reason, context, policy.offers())
        index += 1
        if answer.reason is None and limits.cancelled():
            answer.reason = "cancelled"


def _context(state: DecodingState, plan: AnswerPlan) -> RoundContext:
    """What the method works with, from the state at the beginning of the answer."""
    target, drafter, vocabulary, sampling = state.target, state.drafter, plan.map, plan.sampling
    end_ids = frozenset((*vocabulary.target.roles.get("end", ()), *plan.limits.stop_ids(vocabulary)))
    # The drafter may have read past the beginning of the answer; its own distribution may depend on that.
    prompt = len(target.ids) - len(plan.limits.begun)
    begin = (prompt, len(drafter.ids)) if sampling.penalty_scope == "answer" else (0, 0)
    penalty = RepetitionPenalty(vocabulary, begin) if sampling.penalises else None
    return RoundContext(
        drafter, vocabulary, plan.ngrams, sampling, plan.rng, end_ids, penalty, prompt=prompt,
        policy=plan.policy, target=target,
    )  # fmt: skip


class _Written(NamedTuple):
    """The output of a round: `ids`, of which the first `accepted` were proposed; `own` is the target's own
    token after these, None where there is none. A stop string also cuts `result`."""

    result: RoundResult
    ids: list[int]
    accepted: int
    own: int | None


class _Answer:
    """The text of an answer so far, and why it ends."""

    def __init__(self, state: DecodingState, plan: AnswerPlan, end_ids: frozenset[int]) -> None:
        self.state, self.limits, self.vocabulary = state, plan.limits, plan.map
        self.end_ids, self.greedy = end_ids, plan.sampling.greedy
        writes = plan.map.target.writes
        self.text = "".join(state.decoder.decode(writes(token_id)) for token_id in plan.limits.begun)
        self.emitted = 0
        self.reason: FinishReason | None = "context" if state.target.free_positions < 1 else None

    def until_stop(self, result: RoundResult) -> _Written:
        """The output of a round, cut after a stop string."""
        accepted, own = result.accepted, result.next_token
        ids = [slot.target_id for slot in result.slots[:accepted]]
        ids += [own] if own is not None else []
        count = len(ids)
        if self.limits.stop:
            count = self.limits.until_stop(ids, self.text, self.vocabulary, self.state.decoder)
        if count == len(ids):
            return _Written(result, ids, accepted, own)
        # proposals after the stop were neither accepted nor rejected
        slots, probs = result.slots[:count], result.accept_probs[:count]
        return _Written(replace(result, slots=slots, accept_probs=probs), ids[:count], count, None)

    def add(self, written: _Written, plan: RoundPlan) -> list[Token]:
        """Add the output of a round, and decide whether the answer ends; returns the tokens."""
        result, ids, accepted, _ = written
        decoder, plain = self.state.decoder, plan.draft_length == 0 and not plan.copied
        tokens = emitted_tokens(result, ids, accepted, self.vocabulary, decoder, self.greedy, plain)
        probs = [token.p for token in tokens]
        if not math.isfinite(sum(probs)):
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


def _record(
    index: int, plan: RoundPlan, written: _Written, tokens: Sequence[Token], stages: Sequence[float],
    reason: FinishReason | None, context: RoundContext, offers: tuple[Offer, ...]
) -> Round:  # fmt: skip
    result, _, accepted, own = written
    kept, greedy = result.slots[:accepted], context.sampling.greedy
    return Round(
        index=index,
        tokens=tuple(tokens),
        discarded=tuple(discarded_tokens(result, accepted, context.map, greedy)),
        draft_length=plan.draft_length or len(plan.copied),
        drafted=result.drafted,
        proposed=sum(slot.target_id >= 0 for slot in result.slots),
        accepted=accepted,
        judged=len(result.accept_probs),
        ngram_hits=sum(len(slot.draft_ids) != 1 and slot.match is None for slot in kept),
        seconds={**dict(zip(STAGES, stages, strict=True)), "total": sum(stages)},
        inserts=new_ngrams(own, context.map, context.ngrams),
        finish_reason=reason,
        variation=result.variation,
        offers=offers,
    )


def _plan(
    policy: DraftPolicy, state: DecodingState, method: Method, most: int, index: int,
    copied: CopiedDraft | None
) -> RoundPlan:  # fmt: skip
    """The plan of the next round, which may emit `most` tokens."""
    drafts = method.drafts and state.drafter.can_draft
    policy.begin_round(index, len(state.target.ids), state.drafter.unread if drafts else 0)
    if copied is not None and (count := policy.copies(index, copied, drafts)):
        behind = min(policy.budget_behind(index), most - 1 - count) if drafts else 0
        base, proposed = len(state.drafter.ids), zip(copied.ids[:count], copied.matches, strict=False)
        slots = [Slot(token, (), 1.0, base, match=match) for token, match in proposed]
        return RoundPlan(behind, most, slots)
    return RoundPlan(min(policy.budget(index), most - 1) if drafts else 0, most)


def _teach(policy: DraftPolicy, plan: RoundPlan, result: RoundResult) -> None:
    """Tell the policy the outcome of the drafter's draft. A draft behind copied ids counts where these were
    accepted."""
    first, slots = len(plan.copied), [slot for slot in result.slots if slot.match is None]
    if plan.draft_length and (not first or (result.drafted and result.accepted >= first)):
        accepts = result.accept_probs[first : first + len(slots)]
        policy.learn([slot.draft_probs for slot in slots], accepts)
    policy.count(result.drafted, sum(slot.target_id >= 0 for slot in slots))
