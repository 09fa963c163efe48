"""Several rounds of a target and a drafter in one call of compiled code: the request, the call, and unpacking
its results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from omnidemo.backends import compile_kernels
from omnidemo.backends.call_layout import (
    DRAW,
    NONE,
    ROUND,
    SLOT,
    UNFINISHED,
    Course,
    DrawNumbers,
    Made,
    RoundNumbers,
    Scores,
    Side,
    SlotNumbers,
    Words,
)
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
    # ids that the drafter read before it drew, and draws that it read, discarded ones too (for lab's `watch`)
    reads: tuple[int, int] = (0, 0)


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
    made = Made(
        np.empty(count, ROUND), np.empty(scored, SLOT), np.empty(count * draws, DRAW),
        np.empty(count * (total + 1), np.int64),
    )  # fmt: skip
    grows = order.rule.trie is not no_ngrams(tokens, drafter.runner.device).trie
    sizes = passes.call(
        kernels.rounds, width, few.tasks(1),
        Side(passes.model(target.array), np.array(unread, np.int64), target.length,
            text_of(wanted.seen, wanted.ends)),
        Side(few.model(drafter.array), np.array(given, np.int64), drafter.length,
            text_of(order.seen, wanted.last)),
        Course(count, budget, order.rule.overrun, wanted.left, grows), few.rule(order.rule),
        Words(*wanted.map.tables),
        choice_of(order.sampling, order.uniforms, order.noise, order.position, total + 2),
        stop_of(order.stop_rule or NEVER), draft,
        Scores(logits, np.empty((width, passes.width), np.float32), stats), made,
    )  # fmt: skip
    left_of_last = Rollout([], [], [], draft.distributions, [], draft.rows, draft.states)
    row_stats = RowStats(logits, stats, order.sampling.temperature)
    return _unpack(made, sizes, wanted, len(given), row_stats, left_of_last)


def _unpack(
    made: Made, sizes: Sequence[int], wanted: RoundsRequest, given: int, stats: RowStats, last: Rollout,
) -> list[MadeRound]:  # fmt: skip
    """The rounds that a call has made, as the `sizes` of its arrays say. `given`: ids that the drafter
    read before the first; `stats`: those of all their rows; `last`: what the last round left behind."""
    found, all_slots, all_draws, tokens = (
        part[:size].tolist() for part, size in zip(made, sizes, strict=True)
    )
    rounds: list[MadeRound] = []
    key, budget, left, greedy = wanted.at, wanted.order.left, wanted.left, wanted.order.sampling.greedy
    at = drew = filled = 0
    for done in map(RoundNumbers._make, found):
        drawn, read, accepted, token, spent = done.drawn, done.read, done.accepted, done.written, done.spent
        follows = len(rounds) + 1 < len(found)  # a following round overwrites what is not held
        open_, verified = token == UNFINISHED, done.proposed != UNFINISHED
        size = max(0, done.proposed)
        slots = [*map(SlotNumbers._make, all_slots[filled : filled + size])]
        kept = max(read, slots[-1].end) if slots else read
        drafted, at = tokens[at : at + kept], at + kept
        draws, drew = [*map(DrawNumbers._make, all_draws[drew : drew + drawn])], drew + drawn
        draft_probs = [draw.prob for draw in draws]
        end, rollout, verification, result = slots[accepted - 1].end if accepted else 0, None, None, None
        if not follows:
            places, ids = ([one.place for one in draws], [one.id for one in draws]) if open_ else ([], [])
            rollout = Rollout(
                places, ids, draft_probs, last.distributions[:drawn], drafted[:read], last.rows, last.states
            )
        if verified:
            until = filled + size + 1
            verification = RowStats(stats.rows[filled:until], stats.numbers[filled:until], stats.temperature)
        if verification is not None and not open_:
            written, rejected = None if token == NONE else token, token != NONE and accepted < done.slots
            accepts = [slot.chance for slot in slots[: accepted + (token != NONE)]]
            likely = [*(slot.likely for slot in slots), SlotNumbers._make(all_slots[filled + size]).likely]
            result = RoundResult(
                _slots(slots, draft_probs, drafted, key.draft_len), accepted, written, rejected, accepts,
                likely, drawn, verification.rows, StageSeconds(),
            )  # fmt: skip
        filled += size + verified
        rounds.append(
            MadeRound(  # by position: so many keyword arguments would take as long as all the rest
                key, min(budget, left), result,
                (done.had_drafted - done.began, done.ended - done.had_drafted), spent,
                (accepted, min(read, end)) if follows else (size, read), rollout,
                [slot.target for slot in slots] if verified else None, verification, (given, done.passes),
            )
        )  # fmt: skip
        if follows:
            spelled = wanted.map.spelling(token) or ()
            given, left = end - min(read, end) + len(spelled), left - accepted - 1
            key = replace(
                key, target_len=key.target_len + accepted + 1, draft_len=key.draft_len + end + len(spelled),
                last_id=token, rng_position=key.rng_position + (0 if greedy else spent),
            )  # fmt: skip
    return rounds


def _slots(
    made: Sequence[SlotNumbers], draft_probs: list[float], drafted: list[int], start: int
) -> list[Slot]:
    """The slots of a round that began at `start` drafter ids."""
    slots, base = [], 0
    for target_id, first, end, q, *_ in made:
        probs = draft_probs[first : first + end - base]
        slots.append(Slot(target_id, tuple(drafted[base:end]), q, start + base, draft_probs=probs))
        base = end
    return slots
