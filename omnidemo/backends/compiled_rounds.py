"""Several rounds of a target and a drafter in one call of compiled code: the request, the call, and unpacking
its results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from omnidemo.backends import compile_kernels
from omnidemo.backends.call_layout import HEADER, NONE, UNFINISHED, Course, Scores, Side, Words
from omnidemo.backends.compiled_passes import STRIDES, choice_of, room_for, stop_of, text_of
from omnidemo.decoding.backend import RoundResult, Slot, StageSeconds, StateKey
from omnidemo.decoding.draft_policy import NEVER
from omnidemo.decoding.rollout import FEW, Rollout, RolloutRequest
from omnidemo.decoding.row_ops import RowStats
from omnidemo.decoding.sampling import Seen, as_array
from omnidemo.vocabulary.ngram_cache import no_ngrams
from omnidemo.vocabulary.vocabulary_map import LONGEST, VocabularyMap

if TYPE_CHECKING:
    from omnidemo.backends.fused_cache import FusedCache

# most rounds of one call; a call begins in cold caches and costs the host as much as three rounds
MOST = 2 * STRIDES
# of one call, unless a round needs more: 4 MB and more are allocated in pages of 2 MB, and each costs half a
# round
MOST_LOGITS = 900_000


@dataclass(slots=True)
class RoundsRequest:
    """Several rounds of a target and a drafter in one call."""

    # how each round drafts; its uniform numbers serve all rounds of the call
    order: RolloutRequest
    most: int  # rounds
    left: int  # target tokens that may be proposed or written in all, one fewer than are wanted
    map: VocabularyMap
    ends: NDArray[np.int64]  # end tokens of the target
    last: NDArray[np.int64]  # the same as drafter tokens
    at: StateKey  # the state before the first round
    seen: Seen | None = None  # the target's seen tokens, for the penalty; `order` has the drafter's


@dataclass(slots=True)
class MadeRound:
    """A computed round, and the state in which it is valid."""

    key: StateKey
    budget: int  # drafter tokens that it might use
    # None where the host has to finish the round, the last one of its call
    result: RoundResult | None
    seconds: tuple[float, float]  # of drafting, and of everything after it
    spent: int  # uniform numbers used in the round
    held: tuple[int, int] = (0, 0)  # proposals and drafted tokens in the caches
    # the draft in the drafter's cache; None where a later round of the call overwrote it
    rollout: Rollout | None = None
    proposal: list[int] | None = None  # target tokens; None where they were not verified
    stats: RowStats | None = None  # of the verification rows; None likewise
    # for `lab/races/watch.py` and tests
    given: Sequence[int] = ()  # ids that the drafter read before it drew
    drafted: Sequence[int] = ()  # kept drafter tokens of the draft
    read: int = 0  # those of them that the drafter has read
    vain: int = 0  # further tokens that it read and discarded


def make_rounds(
    target: FusedCache,
    drafter: FusedCache,
    wanted: RoundsRequest,
    unread: Sequence[int],
    given: Sequence[int],
    row: Any,
    state: Any,
) -> list[MadeRound] | None:
    """Read `unread` (target ids) and `given` (drafter ids), and compute rounds; without `given`, from the
    drafter's newest logits `row` [D] and hidden `state` [H]. The caches' lengths do not change. None, and
    nothing has changed, without compiled code, with more than FEW unread ids (a pass of their own uses more
    threads), and where no round fits into the windows."""
    order = wanted.order
    kernels, passes, few = compile_kernels.kernels(), target.runner.passes, drafter.runner.passes
    if kernels is None or passes is None or few is None or len(unread) > FEW or len(given) > FEW:
        return None
    budget, total = order.left, order.left + order.rule.overrun
    count = target.rounds_that_fit(
        len(unread), budget + 1, min(wanted.most, MOST if passes.steps_per_call > 1 else 1)
    )
    count = drafter.rounds_that_fit(len(given), total + LONGEST, count)
    if count < 1:
        return None
    tokens, width = drafter.runner.rows, budget + 1
    draft = room_for(total, tokens, few.width)
    draws = len(draft.probs)
    if row is not None:
        draft.rows[0], draft.states[0] = as_array(row), state
    scored = max(width, min(count * width, MOST_LOGITS // target.runner.rows))
    logits, stats = np.empty((scored, target.runner.rows), np.float32), np.empty((scored, 4), np.float32)
    ints = np.empty(count * (HEADER + 3 * width + total + 1 + 2 * draws), np.int64)
    floats = np.empty(count * (4 + 3 * width + draws))
    grows = order.rule.trie is not no_ngrams(tokens, drafter.runner.device).trie
    made, int_at, float_at = passes.call(
        kernels.rounds, width, few.tasks(1),
        Side(passes.model(target.array), np.array(unread, np.int64), target.length,
            text_of(wanted.seen, wanted.ends)),
        Side(few.model(drafter.array), np.array(given, np.int64), drafter.length,
            text_of(order.seen, wanted.last)),
        Course(count, budget, order.rule.overrun, wanted.left, grows), few.rule(order.rule),
        Words(*wanted.map.tables),
        choice_of(order.sampling, order.uniforms, order.noise, order.position, total + 2),
        stop_of(order.stop_rule or NEVER), draft,
        Scores(logits, np.empty((width, passes.width), np.float32), stats), ints, floats,
    )  # fmt: skip
    left_of_last = Rollout([], [], [], draft.distributions, [], draft.rows, draft.states)
    return _unpack(
        made, ints[:int_at].tolist(), floats[:float_at].tolist(), wanted, given,
        RowStats(logits, stats, order.sampling.temperature),
        left_of_last,
    )  # fmt: skip


def _unpack(
    made: int, fact: list[int], number: list[float], wanted: RoundsRequest, given: Sequence[int],
    stats: RowStats, last: Rollout,
) -> list[MadeRound]:  # fmt: skip
    """Unpack the rounds from the format of `call_layout.py`. `stats`: of all their rows; `last`: the draft of
    the last round."""
    rounds: list[MadeRound] = []
    key, budget, left, greedy = wanted.at, wanted.order.left, wanted.left, wanted.order.sampling.greedy
    at = place = filled = 0
    for index in range(made):
        drawn, read, passes, count, proposed, accepted, token, _, spent = fact[at : at + HEADER]
        follows = index + 1 < made  # a following round overwrites what is not held
        open_, verified = token == UNFINISHED, proposed != UNFINISHED
        size, at = max(0, proposed), at + HEADER
        proposal, firsts = fact[at : at + size], fact[at + size : at + 2 * size]
        stops = fact[at + 2 * size : at + 3 * size]
        kept, at = max(read, stops[-1]) if stops else read, at + 3 * size
        drafted, at = fact[at : at + kept], at + kept
        began, then, ended = number[place : place + 3]
        judged, place = min(size, accepted + (token != NONE)), place + 3
        accepts, place = number[place : place + judged], place + judged
        likely, place = number[place : place + size + 1], place + size + 1
        bounds, place = number[place : place + size], place + size
        draft_probs, place = number[place : place + drawn], place + drawn
        end, rollout, verification, result = stops[accepted - 1] if accepted else 0, None, None, None
        if not follows:
            places, ids = (fact[at : at + drawn], fact[at + drawn : at + 2 * drawn]) if open_ else ([], [])
            rollout = Rollout(
                places, ids, draft_probs, last.distributions[:drawn], drafted[:read], last.rows, last.states
            )
        if verified:
            until = filled + size + 1
            verification = RowStats(stats.rows[filled:until], stats.numbers[filled:until], stats.temperature)
            filled = until
        if verification is not None and not open_:
            slots = _slots(proposal, firsts, stops, bounds, draft_probs, drafted, key.draft_len)
            written, rejected = None if token == NONE else token, token != NONE and accepted < count
            result = RoundResult(
                slots, accepted, written, rejected, accepts, likely, drawn, verification.rows, StageSeconds()
            )
        rounds.append(
            MadeRound(  # by position: so many keyword arguments would take as long as all the rest
                key, min(budget, left), result, (then - began, ended - then), spent,
                (accepted, min(read, end)) if follows else (size, read), rollout,
                proposal if verified else None, verification, given, drafted, read, passes - read,
            )
        )  # fmt: skip
        if follows:
            spelled = wanted.map.spelling(token) or ()
            given, left = [*drafted[min(read, end) : end], *spelled], left - accepted - 1
            key = replace(
                key, target_len=key.target_len + accepted + 1, draft_len=key.draft_len + end + len(spelled),
                last_id=token, rng_position=key.rng_position + (0 if greedy else spent),
            )  # fmt: skip
    return rounds


def _slots(
    proposal: list[int], firsts: list[int], stops: list[int], bounds: list[float], draft_probs: list[float],
    drafted: list[int], start: int,
) -> list[Slot]:  # fmt: skip
    """The slots of a round that began at `start` drafter ids, from each one's target token, first draw, end
    in drafter tokens, and q."""
    slots, base = [], 0
    for target_id, first, stop, q in zip(proposal, firsts, stops, bounds, strict=True):
        probs = draft_probs[first : first + stop - base]
        slots.append(Slot(target_id, tuple(drafted[base:stop]), q, start + base, draft_probs=probs))
        base = stop
    return slots
