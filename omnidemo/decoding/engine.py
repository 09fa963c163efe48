"""prompt → draft → translate → verify → accept, correct → record: the loop of a generation, one `Round` at a
time."""

from __future__ import annotations

import codecs
import math
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from omnidemo.copying.copier import CopiedDraft, Copier
from omnidemo.decoding.backend import Backend, Clock, RoundPlan, Slot
from omnidemo.decoding.draft_policy import LOOK, DraftPolicy
from omnidemo.decoding.method import Method
from omnidemo.decoding.randomness import Randomness
from omnidemo.decoding.render import discarded_tokens, emitted_tokens, new_ngrams
from omnidemo.decoding.round import RoundContext, reference_round
from omnidemo.decoding.round_times import Look, ReplayedAcceptance
from omnidemo.decoding.sampling import RepetitionPenalty, SamplingParams
from omnidemo.decoding.state import DecodingState
from omnidemo.decoding.tracing import Tracer
from omnidemo.records import STAGES, FinishReason, Round
from omnidemo.vocab.ngram_cache import NgramCache
from omnidemo.vocab.vocabulary_map import VocabularyMap


@dataclass(slots=True)
class Limits:
    """When a generation ends. `stop`: strings that end it after the token that completes one; the text keeps
    them. `cancelled` is called after each round. `begun`: ids of the answer that were written before, at the
    end of the prompt: a stop string or a character may begin in them."""

    max_new_tokens: int
    stop: tuple[str, ...] = ()
    cancelled: Callable[[], bool] = lambda: False
    begun: Sequence[int] = ()

    def stop_ids(self, vocabulary: VocabularyMap) -> list[int]:
        """The control tokens whose names are stop strings; they write no text in which to find them."""
        return [vocabulary.target.control[stop] for stop in self.stop if stop in vocabulary.target.control]

    def until_stop(
        self, ids: list[int], text: str, vocabulary: VocabularyMap, decoder: codecs.IncrementalDecoder
    ) -> int:
        """How many of the ids that follow `text` stay: up to the one that completes a stop string. The
        decoder is left as it was."""
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
        `free_positions`: what the target's window still holds."""
        if any(stop in text for stop in self.stop):
            return "stop"
        return "length" if emitted >= self.max_new_tokens else "context" if free_positions < 1 else None


def decode(
    state: DecodingState,
    method: Method,
    vocabulary: VocabularyMap,
    ngrams: NgramCache,
    sampling: SamplingParams,
    rng: Randomness,
    limits: Limits,
    policy: DraftPolicy,
    tracer: Tracer | None = None,
    clock: Clock = lambda: 0.0,
    backend: Backend | None = None,
    copier: Copier | None = None,
) -> Iterator[Round]:
    """Decode until an end token, a stop string or a limit, from a state that has been started with its
    prompt.

    `policy` decides how many drafter tokens a round may use (0 is plain decoding) and when a draft ends
    earlier. `ngrams` is only read: each round carries what it would insert, and the caller inserts it before
    the next round. `backend`: computes rounds faster; the reference computes those that it declines. `clock`:
    returns seconds; times of rounds are its differences. `copier`: makes drafts by copying, which the policy
    may prefer; None: there are none.
    """
    target, drafter = state.target, state.drafter
    end_ids = frozenset((*vocabulary.target.roles.get("end", ()), *limits.stop_ids(vocabulary)))
    # What the drafter has read may be later than where the answer began, which its own distribution may
    # depend on.
    prompt = len(target.ids) - len(limits.begun)
    begin = (prompt, len(drafter.ids)) if sampling.penalty_scope == "answer" else (0, 0)
    penalty = RepetitionPenalty(vocabulary, begin) if sampling.penalises else None
    context = RoundContext(
        drafter,
        vocabulary,
        ngrams,
        sampling,
        rng,
        end_ids,
        penalty,
        prompt=prompt,
        policy=policy,
        target=target,
    )
    recent: deque[float] = deque(maxlen=LOOK)  # the target's probabilities of the newest tokens
    look = partial(_look, state, recent, sampling.greedy, clock)
    text = "".join(state.decoder.decode(vocabulary.target.writes(token_id)) for token_id in limits.begun)
    emitted, index = 0, 0
    reason: FinishReason | None = "context" if target.free_positions < 1 else None

    while reason is None:
        began = clock()
        most = min(limits.max_new_tokens - emitted, target.free_positions)
        copied = copier.draft(target.ids, most - 1) if copier is not None else None
        plan = _plan(policy, state, method, most, index, look, copied)
        context.start = len(drafter.ids)
        planned = clock()
        result = backend.run_round(context, method, plan) if backend is not None else None
        if result is None:
            result = reference_round(context, method, plan, clock)
        made = clock()

        if plan.draft_length:
            policy.learn([slot.draft_probs for slot in result.slots], result.accept_probs)
        accepted, written = result.accepted, result.next_token
        copies = len(plan.copied)
        if copies and copier is not None and copied is not None:
            copier.learn(copied, result.accept_probs)
        ids = [slot.target_id for slot in result.slots[:accepted]]
        ids += [written] if written is not None else []
        if limits.stop and (count := limits.until_stop(ids, text, vocabulary, state.decoder)) < len(ids):
            del ids[count:]
            # what stands behind the stop is neither a right guess nor a wrong one
            accepted, written = count, None
            result = replace(result, slots=result.slots[:count], accept_probs=result.accept_probs[:count])
        if copier is not None and copied is not None and not copies:
            copier.learn_from(copied, ids)
        state.commit(context.start, result, ids, accepted)
        committed = clock()

        plain = plan.draft_length == 0 and not copies
        tokens = emitted_tokens(result, ids, accepted, vocabulary, state.decoder, sampling.greedy, plain)
        probs = [token.p for token in tokens]
        if not math.isfinite(sum(probs)):
            raise RuntimeError(
                "the target's numbers are not finite here, so it cannot go on; load it in float32 or choose"
                " another one"
            )
        recent.extend(probs)
        emitted += len(ids)
        text += "".join([token.text for token in tokens])
        reason = "end" if ids[-1] in end_ids else limits.finish_reason(text, emitted, target.free_positions)
        # bytes that never became a whole character
        if reason is not None and (rest := state.decoder.decode(b"", True)):
            tokens[-1] = replace(tokens[-1], text=tokens[-1].text + rest)
        if tracer is not None:
            tracer.add(
                result.logits[: len(ids)], ids, accepted, [token.source == "copied" for token in tokens]
            )
        spent = result.seconds
        stages = (
            planned - began + spent.draft,
            spent.verify,
            committed - made + spent.accept,
            clock() - committed,
        )
        yield Round(
            index=index,
            tokens=tuple(tokens),
            discarded=tuple(discarded_tokens(result, accepted, vocabulary, sampling.greedy)),
            draft_length=plan.draft_length or copies,
            drafted=result.drafted,
            proposed=sum(slot.target_id >= 0 for slot in result.slots),
            accepted=accepted,
            judged=len(result.accept_probs),
            ngram_hits=sum(
                len(slot.draft_ids) != 1 and slot.match is None for slot in result.slots[:accepted]
            ),
            seconds={**dict(zip(STAGES, stages, strict=True)), "total": sum(stages)},
            inserts=new_ngrams(written, vocabulary, ngrams),
            finish_reason=reason,
            variation=result.variation,
        )
        index += 1
        if reason is None and limits.cancelled():
            reason = "cancelled"


def _plan(
    policy: DraftPolicy, state: DecodingState, method: Method, most: int, index: int, look: Look,
    copied: CopiedDraft | None
) -> RoundPlan:  # fmt: skip
    """The limits of the next round, which may emit `most` tokens. The first one has no lookahead: its token
    must come at once."""
    drafts = method.drafts and state.drafter.can_draft
    if copied is not None and (count := policy.copies(index, copied, drafts)):
        base, proposed = len(state.drafter.ids), zip(copied.ids[:count], copied.matches, strict=False)
        return RoundPlan(0, most, 0, [Slot(token, (), 1.0, base, match=match) for token, match in proposed])
    if not method.drafts:
        return RoundPlan(0, most, most - 1 if index else 0)
    if not state.drafter.can_draft:
        return RoundPlan(0, most, 0)
    length = min(policy.budget(index, look), most - 1)
    return RoundPlan(
        length,
        most,
        (policy.draft_lookahead() if length else min(policy.plain_lookahead(), most - 1)) if index else 0,
    )


def _look(
    state: DecodingState, target_probs: Sequence[float], greedy: bool, clock: Clock
) -> tuple[ReplayedAcceptance, float]:
    """The acceptance of drafts replayed on the newest tokens, and the seconds that this took."""
    began = clock()
    return state.replayed_acceptance(target_probs, greedy), clock() - began
