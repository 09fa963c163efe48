"""The data path: prompt → draft → translate → verify → correct → record. One `Round` per turn of the loop."""

from __future__ import annotations

import codecs
import math
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from operator import sub
from time import perf_counter

import torch
from torch import Tensor

from omnidemo.core.ahead import DRAWS, Order, Turn, anything
from omnidemo.core.contexts import DrafterContext, TargetContext
from omnidemo.core.draft_length import ENOUGH, LOOK, DraftLength
from omnidemo.core.knowledge import Hindsight
from omnidemo.core.ngrams import NgramCache
from omnidemo.core.peaks import Peaks
from omnidemo.core.sampling import Chooser, Law, Sampler, Warp, as_array, as_tensor, highest, on_host
from omnidemo.core.shares import share
from omnidemo.core.tandem import Tandem
from omnidemo.core.tracing import Tracer
from omnidemo.core.vocabulary import VocabularyMap
from omnidemo.methods import Draft, Hand, Method, Settlement, Slot
from omnidemo.records import FinishReason, Round, Source, Token

STAGES = ("draft", "verify", "settle", "other")  # of a round, whose times are taken


@dataclass(slots=True)
class Limits:
    """When a generation ends. `stop` strings end it after the token that completes one; the text keeps them."""

    max_new_tokens: int
    stop: tuple[str, ...] = ()
    cancelled: Callable[[], bool] = lambda: False


@dataclass(slots=True)
class Conversation:
    """All state of one generation: two contexts of the same text. Kept from turn to turn, so that a prompt is read once."""

    target: TargetContext
    drafter: DrafterContext | None = None
    domain: str = "default"  # the adapter line whose drafter reads
    decoder: codecs.IncrementalDecoder = field(default_factory=lambda: codecs.getincrementaldecoder("utf-8")("replace"))

    def start(self, prompt: Sequence[int]) -> None:
        kept = self.target.start(prompt)
        if self.drafter is not None:
            self.drafter.start(prompt, kept)
        self.decoder = codecs.getincrementaldecoder("utf-8")("replace")


def decode(
    talk: Conversation,
    method: Method,
    vocabulary: VocabularyMap,
    ngrams: NgramCache,
    warp: Warp,
    chooser: Chooser,
    limits: Limits,
    draft_length: DraftLength,
    tracer: Tracer | None = None,
    clock: Callable[[], float] = perf_counter,
) -> Iterator[Round]:
    """Decode until an end token, a stop string or a limit, from a conversation that has been started with its prompt.

    `draft_length` says how many drafter tokens a round may use (0 is plain decoding) and when a draft ends earlier. `ngrams` is read
    only here: each round carries what it would insert, and the owner applies that before the next round is asked for. `clock` tells the
    seconds by which rounds are timed.
    """
    target, drafter = talk.target, talk.drafter
    end_ids = frozenset(vocabulary.target.roles.get("end", ()))
    emitted, text, index = 0, "", 0
    seen = _Seen(talk, vocabulary) if warp.penalises else None
    chances: deque[float] = deque(maxlen=LOOK)  # of the newest tokens, the target's
    look = partial(_look_back, drafter, chances, warp.greedy, clock)
    tandem = Tandem(target, drafter, vocabulary, tuple(end_ids)) if drafter is not None and warp.plain and not warp.penalises else None
    reason: FinishReason | None = "context" if target.room < 1 else "length" if limits.max_new_tokens < 1 else None

    while reason is None:
        times = [clock()]
        # 1 Draft, and 2 translate: the method proposes target tokens for a budget of drafter tokens.
        hand: Hand | None = None
        turn: Turn | None = None  # where all of the round is known already
        draft, budget, start = Draft(), 0, len(drafter.ids) if drafter is not None else 0
        left = min(limits.max_new_tokens - emitted, target.room) - 1
        rest = 0 if method.drafts and drafter is not None else left  # rounds after this one without a draft, as far as one can tell
        if drafter is not None and method.drafts and drafter.can_draft:
            budget = min(draft_length.budget(index, look), left)
            rest = draft_length.resting() if budget == 0 else 0
            if budget > 0:
                hand = Hand(drafter, vocabulary, ngrams, warp, chooser, end_ids, seen.of_drafter() if seen else None, start, draft_length)
                course = method.course(hand) if tandem is not None else None
                if tandem is not None and course is not None:
                    tandem.left, tandem.alone = left, index == 0  # the first token waits for no other
                    turn = hand.in_advance(tandem, course, budget)
                draft = hand.take(turn) if turn is not None else method.draft(hand, budget)
                del draft.slots[left:]  # one drafter token may spell several of the target's
        times.append(clock())

        # 3 Verify: one target pass over everything that was proposed. Where nothing will be for a while, it goes on writing by itself.
        proposal = draft.proposal
        if budget == 0 and index and rest and not target.foresees:
            _write_on(target, 1 + min(left, rest), warp, chooser, vocabulary, end_ids, clock)
        logits = target.verify(proposal, warp.temperature)
        peaks = target.peaks
        times.append(clock())

        # 4 Correct: accept from the left, correct the first rejection or add a bonus token.
        scores = warp.penalised(logits, seen.of_target(proposal)) if seen else logits
        if hand is not None and (draft.slots or turn is not None):
            hand.peaks = peaks if seen is None else None
            settled = _settled(turn) if turn is not None else method.settle(hand, draft, scores)
            draft_length.learn([slot.sure for slot in draft.slots], settled.accepts)
        else:
            settled = Settlement(0, _alone(target, scores, peaks if seen is None else None, warp, chooser), False, [])
        ids = [slot.target_id for slot in draft.slots[: settled.accepted]]
        ids += [settled.token] if settled.token is not None else []
        if limits.stop and (count := _until_stop(ids, text, limits.stop, vocabulary, talk.decoder)) < len(ids):
            del ids[count:]
            settled = replace(settled, accepted=min(settled.accepted, count), token=None)
        accepted = settled.accepted
        target.append(ids)
        if drafter is not None:
            drafter.commit(start, _kept(draft, accepted), ids)
        times.append(clock())

        # 5 Record.
        if target.drawn is not None and hand is None and warp.temperature in (0.0, 1.0):
            shown = _Shown([target.drawn[1]], [], [])
        else:
            shown = _probabilities(draft, hand, proposal, ids, accepted, logits, peaks, turn)
        if not math.isfinite(sum(shown.emitted)):
            raise RuntimeError("the target's numbers are not finite here, so it cannot go on; load it in float32 or choose another one")
        tokens = _tokens(draft, settled, ids, shown, vocabulary, talk.decoder, plain=budget == 0)
        chances.extend(shown.emitted)
        emitted += len(ids)
        text += "".join([token.text for token in tokens])
        reason = _finish(ids, end_ids, text, emitted, limits, target.room)
        if reason is not None:
            tokens[-1] = _with_rest(tokens[-1], talk.decoder.decode(b"", True))
        if tracer is not None and drafter is not None:
            tracer.add(logits[: len(ids)], ids, accepted)
        times.append(clock())
        seconds = dict(zip(STAGES, map(sub, times[1:], times), strict=False))
        seconds["verify"] -= target.lead
        if tandem is not None:
            seconds["draft"] -= tandem.lead
            tandem.lead = 0.0
        seconds["total"] = sum(seconds.values())
        yield Round(
            index=index,
            tokens=tuple(tokens),
            discarded=tuple(_discarded(draft, settled, shown, vocabulary)),
            draft_length=budget,
            drafted=draft.drafted,
            proposed=len(proposal),
            accepted=accepted,
            judged=len(settled.accepts),
            ngram_hits=sum(len(slot.pieces) != 1 for slot in draft.slots[:accepted]),
            seconds=seconds,
            inserts=_inserts(settled.token, vocabulary, ngrams),
            finish_reason=reason,
        )
        index += 1
        if reason is None and limits.cancelled():
            reason = "cancelled"


def _write_on(
    target: TargetContext, most: int, warp: Warp, chooser: Chooser, vocabulary: VocabularyMap, end_ids: frozenset[int],
    clock: Callable[[], float],
) -> None:  # fmt: skip
    """Have the target write up to so many tokens in one go, where that saves time and their draws depend on nothing but numbers."""
    count = min(most, target.strides)
    if count > 1 and warp.plain and not warp.penalises and (warp.greedy or isinstance(chooser, Sampler)):
        uniforms = chooser.look_ahead(DRAWS) if isinstance(chooser, Sampler) and not warp.greedy else None
        course = anything(len(vocabulary.to_drafter), vocabulary.to_drafter.device)
        target.write_on(Order(course, warp, count, uniforms, ends=tuple(end_ids)), clock)


def _settled(turn: Turn) -> Settlement:
    """As it is known already."""
    token = turn.written[-1] if turn.written and len(turn.written) > turn.accepted else None
    return Settlement(turn.accepted, token, turn.rejected, turn.accepts)


def _alone(target: TargetContext, scores: Law, peaks: Peaks | None, warp: Warp, chooser: Chooser) -> int:
    """The token of a round without a draft."""
    if target.drawn is not None:
        if isinstance(chooser, Sampler) and not warp.greedy:
            chooser.uniform()  # the number that it was drawn with
        return target.drawn[0]
    if warp.greedy:
        return peaks.best()[0] if peaks is not None else highest(scores[0])
    return chooser.draw(peaks.law(0) if peaks is not None and warp.plain else warp.law(scores[0]))


def _look_back(drafter: DrafterContext | None, chances: deque[float], greedy: bool, clock: Callable[[], float]) -> tuple[Hindsight, float]:
    """How drafts would have done on the newest tokens, and the seconds that it took to find out: the acceptance of what the target wrote,
    min(1, q/p), is on average that of what the drafter would have."""
    if drafter is None or len(chances) < ENOUGH:
        return [], 0.0
    began = clock()
    found = drafter.hindsight(ENOUGH, len(chances), greedy)[::-1]
    # A drafter whose numbers are not finite would have guessed nothing.
    products = [product if q and math.isfinite(product := math.prod(q)) else 0.0 for q in found]
    each = [(len(q), min(1.0, product / max(p, 1e-30))) for q, product, p in zip(found, products, reversed(chances), strict=False)]
    return each[::-1], clock() - began


class _Seen:
    """Which tokens the text holds, for a repetition penalty: kept up with the contexts, never counted anew."""

    def __init__(self, talk: Conversation, vocabulary: VocabularyMap) -> None:
        self.talk, self.device = talk, vocabulary.to_drafter.device
        self._target = torch.zeros(len(vocabulary.to_drafter), dtype=torch.bool, device=self.device)
        self._drafter = torch.zeros(len(vocabulary.to_target), dtype=torch.bool, device=self.device)
        self._read = [0, 0]

    def _follow(self, side: int, seen: Tensor, ids: Sequence[int]) -> Tensor:
        seen[torch.tensor(ids[self._read[side] :], dtype=torch.long, device=self.device)] = True
        self._read[side] = len(ids)
        return seen

    def of_drafter(self) -> Tensor:
        """[D] bool."""
        assert self.talk.drafter is not None
        return self._follow(1, self._drafter, self.talk.drafter.ids)

    def of_target(self, proposal: Sequence[int]) -> Tensor:
        """[m + 1, T] bool: what each row of a verification has before it, which grows with the proposal."""
        rows = self._follow(0, self._target, self.talk.target.ids).repeat(len(proposal) + 1, 1)
        for position, token_id in enumerate(proposal):
            rows[position + 1 :, token_id] = True
        return rows


def _kept(draft: Draft, accepted: int) -> list[int]:
    """Drafter ids of each accepted token, up to the last one that ends where a drafter token ends: those stay in the drafter's context.
    0 for a token that ends inside one."""
    while accepted and not draft.slots[accepted - 1].pieces:
        accepted -= 1
    return [len(slot.pieces) for slot in draft.slots[:accepted]]


@dataclass(slots=True)
class _Shown:
    """Probabilities for display, before temperature and top-p: the target's of emitted and proposed tokens, the drafter's of proposals."""

    emitted: list[float]
    proposed: list[float]
    q: list[float | None]


def _probabilities(
    draft: Draft,
    hand: Hand | None,
    proposal: list[int],
    ids: list[int],
    accepted: int,
    logits: Law,
    peaks: Peaks | None,
    turn: Turn | None,
) -> _Shown:
    if turn is not None:
        emitted, proposed = [*turn.likely[:accepted], turn.likely[-1]][: len(ids)], turn.likely
    elif peaks is not None:
        emitted = peaks.shares(ids)
        proposed = emitted[:accepted] + peaks.shares(proposal[accepted:], accepted)
    elif not on_host(logits):
        emitted, proposed = _probabilities_elsewhere(proposal, ids, as_tensor(logits))
    else:
        rows = as_array(logits)
        emitted = [share(rows[place], token_id) for place, token_id in enumerate(ids)]
        proposed = emitted[:accepted] + [share(rows[place], proposal[place]) for place in range(accepted, len(proposal))]
    return _Shown(emitted, proposed, [_of_drafter(slot, hand) for slot in draft.slots])


def _of_drafter(slot: Slot, hand: Hand | None) -> float | None:
    """The drafter's probability of a slot, where its own tokens spell it."""
    if hand is not None and hand.warp.greedy:  # the law is a point then; what it would be at temperature 1 says more
        return math.prod(slot.sure) if slot.sure else None
    return slot.q if slot.pieces else None


def _probabilities_elsewhere(proposal: list[int], ids: list[int], logits: Tensor) -> tuple[list[float], list[float]]:
    """Those of emitted and proposed tokens with one wait for the device."""
    rows = torch.arange(len(ids) + len(proposal), device=logits.device)
    rows[len(ids) :] -= len(ids)
    wanted = torch.tensor(ids + proposal).to(logits.device, non_blocking=True)
    found: list[float] = logits.softmax(-1)[rows, wanted].tolist()  # several times as fast as logsumexp
    return found[: len(ids)], found[len(ids) :]


def _tokens(
    draft: Draft,
    settled: Settlement,
    ids: list[int],
    shown: _Shown,
    vocabulary: VocabularyMap,
    decoder: codecs.IncrementalDecoder,
    plain: bool,
) -> list[Token]:
    tokens, texts, whole = [], vocabulary.target.shown, not decoder.getstate()[0]
    for position, token_id in enumerate(ids):
        text = texts[token_id]
        if not whole or "\ufffd" in text:  # a part of a character, before it or in it
            text = decoder.decode(vocabulary.target.writes(token_id))
            whole = not decoder.getstate()[0]
        if position < settled.accepted:
            pieces = draft.slots[position].pieces
            source: Source = "direct" if len(pieces) == 1 else "ngram"
            q, accept = shown.q[position], settled.accepts[position]
        else:
            pieces = vocabulary.spelling(token_id) or ()
            source = "plain" if plain else "corrected" if settled.rejected else "bonus"
            q = accept = None
        tokens.append(Token(token_id, text, source, shown.emitted[position], q, accept, pieces, _piece_texts(pieces, vocabulary)))
    return tokens


def _discarded(draft: Draft, settled: Settlement, shown: _Shown, vocabulary: VocabularyMap) -> Iterator[Token]:
    for position, slot in enumerate(draft.slots):
        if position >= settled.accepted and slot.target_id >= 0:
            text = vocabulary.target.shown[slot.target_id]
            accept = settled.accepts[position] if position < len(settled.accepts) else None
            source: Source = "direct" if len(slot.pieces) == 1 else "ngram"
            p, q = shown.proposed[position], shown.q[position]
            yield Token(slot.target_id, text, source, p, q, accept, slot.pieces, _piece_texts(slot.pieces, vocabulary))


def _piece_texts(pieces: Sequence[int], vocabulary: VocabularyMap) -> tuple[str, ...]:
    shown = vocabulary.drafter.shown
    return tuple([shown[piece] for piece in pieces])


def _with_rest(token: Token, rest: str) -> Token:
    """The last token also shows the bytes that never became a whole character."""
    return replace(token, text=token.text + rest) if rest else token


def _inserts(token_id: int | None, vocabulary: VocabularyMap, ngrams: NgramCache) -> tuple[tuple[int, tuple[int, ...]], ...]:
    """The n-gram of a token that the target wrote itself, if the cache does not know it (OmniDraft 3.1)."""
    if token_id is None or token_id in ngrams:
        return ()
    spelled = vocabulary.ngram(token_id)
    return ((token_id, spelled),) if spelled else ()


def _until_stop(ids: list[int], text: str, stops: Sequence[str], vocabulary: VocabularyMap, decoder: codecs.IncrementalDecoder) -> int:
    """How many of the ids stay: up to the one that completes a stop string. The decoder is left as it was."""
    state = decoder.getstate()
    count = len(ids)
    for position, token_id in enumerate(ids):
        text += decoder.decode(vocabulary.target.writes(token_id))
        if any(stop in text for stop in stops):
            count = position + 1
            break
    decoder.setstate(state)
    return count


def _finish(ids: list[int], end_ids: frozenset[int], text: str, emitted: int, limits: Limits, room: int) -> FinishReason | None:
    if ids[-1] in end_ids:
        return "end"
    if any(stop in text for stop in limits.stop):
        return "stop"
    if emitted >= limits.max_new_tokens:
        return "length"
    return "context" if room < 1 else None
