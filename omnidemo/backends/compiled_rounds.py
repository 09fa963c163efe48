"""RoundsRequest of a target and a drafter in one call of compiled code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from omnidemo.backends import compile_kernels
from omnidemo.backends.compiled_passes import CHUNK, NOTHING, STRIDES
from omnidemo.backends.round_layout import FACTS, HOST, NONE
from omnidemo.decoding.draft_policy import NEVER
from omnidemo.decoding.rollout import DRAWS, FEW, Rollout, RolloutRequest
from omnidemo.decoding.row_ops import RowStats
from omnidemo.decoding.sampling import as_array
from omnidemo.vocab.trie_table import no_ngrams
from omnidemo.vocab.vocabulary_map import LONGEST, VocabularyMap

if TYPE_CHECKING:
    from omnidemo.backends.fused_cache import FusedCache

MOST = 2 * STRIDES  # rounds in one call: each begins in cold caches, and takes as long for the host as three of them
ROOM = 900_000  # logits in one call, unless a round needs more: memory for 4 MB comes by pages of 2 MB, each of which takes half a round


@dataclass(slots=True)
class RoundsRequest:
    """What a target and a drafter are asked for together: at most `most` rounds, whose drafts are as in `order`, which is that of the
    first, with numbers for everything. At most `left` target tokens are proposed or written in all, one fewer than are wanted, and nothing
    follows the target's tokens `ends`, which are `last` for the drafter."""

    order: RolloutRequest
    most: int
    left: int
    map: VocabularyMap
    ends: NDArray[np.int64]
    last: NDArray[np.int64]


@dataclass(slots=True)
class MadeRound:
    """What came of one round.

    Of its draft: the `rollout`, None where another round follows; the drafter's probabilities of all that it drew (`sure`); the tokens that
    are left of its walks (`drafted`), how many of them it has `read`, and how many others in `vain`; and of each slot that proposes
    something its first draw, the number of tokens up to its end, and q (`firsts`, `stops`, `bounds`). Then the `proposal` and what can be
    told of its rows (`stats`), None where it was not verified; what is `written`, None where only the host can tell, which then is the last
    round; how many proposals are `accepted`, each one's acceptance probability as far as they were judged (`accepts`), whether what follows
    them is a correction (`rejected`), and the target's probabilities before temperature of each proposal and of what follows (`likely`).
    `spent`: numbers used in the round.

    `budget`: drafter tokens that it might use. `given`: what the drafter read before it drew. `used`: numbers used before the round.
    `lengths`: ids that the target and the drafter have before it, beyond those before the first round. `held`: of how many proposals and
    drafted tokens the caches hold what was read. `seconds`: of drafting, and of all that followed.
    """

    rollout: Rollout | None
    sure: list[float]
    drafted: list[int]
    read: int
    vain: int
    firsts: list[int]
    stops: list[int]
    bounds: list[float]
    proposal: list[int] | None
    stats: RowStats | None
    written: list[int] | None
    accepted: int
    accepts: list[float]
    rejected: bool
    likely: list[float]
    spent: int
    budget: int
    given: Sequence[int]
    used: int
    lengths: tuple[int, int]
    held: tuple[int, int]
    seconds: tuple[float, float]


def make_rounds(
    target: FusedCache, drafter: FusedCache, wanted: RoundsRequest, unread: Sequence[int], given: Sequence[int], row: Any, state: Any
) -> list[MadeRound] | None:
    """Have the target read `unread` and the drafter `given`, and make rounds; where nothing is given, from the drafter's newest logits
    `row` [D] and hidden `state` [H]. The caches' lengths stay as they are. None as long as there is no compiled code, where more than a
    temperature is asked for, and where several threads had better read first what has not been read."""
    order = wanted.order
    kernels, passes, few = compile_kernels.kernels(), target.runner.passes, drafter.runner.passes
    if kernels is None or passes is None or few is None or not order.warp.plain or len(unread) > FEW or len(given) > FEW:
        return None
    budget, total, heat = order.left, order.left + order.rule.overrun, order.warp.temperature
    count = target.rounds_that_fit(len(unread), budget + 1, min(wanted.most, MOST if passes.steps_per_call > 1 else 1))
    count = drafter.rounds_that_fit(len(given), total + LONGEST, count)
    if count < 1:
        return None
    draws, tokens, width = min(DRAWS, 3 * total), drafter.runner.rows, budget + 1
    rows, states = np.empty((total + 1, tokens), np.float32), np.empty((total + 1, few.width), np.float32)
    if row is not None:
        rows[0], states[0] = as_array(row), state
    scored = max(width, min(count * width, ROOM // target.runner.rows))
    laws, logits = np.empty((draws, tokens), np.float32), np.empty((scored, target.runner.rows), np.float32)
    hidden, peaks = np.empty((width, passes.width), np.float32), np.empty((scored, 4), np.float32)
    facts = np.empty(count * (FACTS + 3 * width + total + 1 + 2 * draws), np.int64)
    numbers = np.empty(count * (4 + 3 * width + draws))
    until, grows = order.until or NEVER, order.rule.trie is not no_ngrams(tokens, drafter.runner.device)
    made, told, counted = passes.share(
        kernels.rounds, width, few.pieces(1), CHUNK, few.model(drafter.array), np.array(given, np.int64), drafter.length,
        passes.model(target.array), np.array(unread, np.int64), target.length, count, budget, order.rule.overrun, wanted.left,
        few.tables(order.rule) + wanted.map.tables, heat, order.uniforms if order.uniforms is not None else NOTHING, until.reach,
        until.least, until.price, until.lines, wanted.ends, wanted.last, grows, rows, states, laws, logits, hidden, peaks, facts, numbers,
    )  # fmt: skip
    left_of_last = Rollout([], [], [], laws, [], rows, states)
    return _turns(made, facts[:told].tolist(), numbers[:counted].tolist(), wanted, given, RowStats(logits, peaks, heat), left_of_last)


def _turns(
    made: int, fact: list[int], number: list[float], wanted: RoundsRequest, given: Sequence[int], peaks: RowStats, last: Rollout
) -> list[MadeRound]:
    """The rounds that were told as `runtime.facts` says. `peaks` are those of all their rows, `last` holds what is left of the last one."""
    turns: list[MadeRound] = []
    budget, left, lengths = wanted.order.left, wanted.left, (0, 0)
    at = place = filled = 0
    for turn in range(made):
        drawn, read, passes, slots, proposed, accepted, token, used, spent = fact[at : at + FACTS]
        follows, open_, verified = turn + 1 < made, token == HOST, proposed != HOST  # who follows has written over what is not held
        size, at = max(0, proposed), at + FACTS
        proposal, firsts, stops = fact[at : at + size], fact[at + size : at + 2 * size], fact[at + 2 * size : at + 3 * size]
        kept, at = max(read, stops[-1]) if stops else read, at + 3 * size
        drafted, at = fact[at : at + kept], at + kept
        began, then, ended = number[place : place + 3]
        judged, place = min(size, accepted + (token != NONE)), place + 3
        accepts, place = number[place : place + judged], place + judged
        likely, place = number[place : place + size + 1], place + size + 1
        bounds, place = number[place : place + size], place + size
        sure, place = number[place : place + drawn], place + drawn
        end, rollout, told = stops[accepted - 1] if accepted else 0, None, None
        if not follows:
            places, ids = (fact[at : at + drawn], fact[at + drawn : at + 2 * drawn]) if open_ else ([], [])
            rollout = Rollout(places, ids, sure, last.laws[:drawn], drafted[:read], last.rows, last.states)
        if verified:
            told = RowStats(peaks.rows[filled : filled + size + 1], peaks.numbers[filled : filled + size + 1], peaks.heat)
            filled += size + 1
        written = None if open_ else proposal[:accepted] if token == NONE else [*proposal[:accepted], token]
        rejected, held = token != NONE and accepted < slots, (accepted, min(read, end)) if follows else (size, read)
        turns.append(
            MadeRound(  # by position, for so many names take as long as all the rest
                rollout, sure, drafted, read, passes - read, firsts, stops, bounds, proposal if verified else None, told, written, accepted,
                accepts, rejected, likely, spent, min(budget, left), given, used, lengths, held, (then - began, ended - then),
            )
        )  # fmt: skip
        if follows:
            spelled = wanted.map.spelling(token) or ()
            given = [*drafted[min(read, end) : end], *spelled]
            lengths, left = (lengths[0] + accepted + 1, lengths[1] + end + len(spelled)), left - accepted - 1
    return turns
