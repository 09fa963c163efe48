"""Several rounds in one call: draft, verify, accept, correct, and again.

Every number is that of `decoding.round.reference_round` with a method that has a `ProposalRule`. The call
ends where only the host can go on.
"""

from __future__ import annotations

import os
import time
from typing import Any

import numpy as np
from numba import njit, types

from omnidemo.backends.call_layout import (
    UNFINISHED,
    Choice,
    Course,
    Draft,
    Made,
    Rule,
    Scores,
    Side,
    Stop,
    Whole,
    Words,
    Workers,
)
from omnidemo.backends.kernels.acceptance_kernel import judge, judge_own, likelihood
from omnidemo.backends.kernels.draft import follow, make_draft, read_on
from omnidemo.backends.kernels.filters_kernel import mark, mark_all, plain
from omnidemo.backends.kernels.forward import run_pass
from omnidemo.backends.kernels.noise_kernel import is_shared
from omnidemo.backends.kernels.residual import SPARE, Reader, Walk, children_mass, is_ngram, replace, rest_of
from omnidemo.backends.kernels.rows_kernel import (
    BLOCK,
    append,
    block_sums,
    compiled,
    int64,
    inverse_cdf_by,
    softmax_given,
)
from omnidemo.vocabulary.trie_table import TARGET

POSIX = os.name == "posix"
MONOTONIC = getattr(time, "CLOCK_MONOTONIC", 0)
_clock: Any = types.ExternalFunction(
    "clock_gettime" if POSIX else "QueryPerformanceCounter",
    types.int32(types.int32, types.intp) if POSIX else types.int32(types.intp),
)


@njit(cache=True, error_model="numpy", nogil=True)
def rounds(
    workers: Workers, few: int, target: Side, drafter: Side, course: Course, rule: Rule, words: Words,
    choice: Choice, stop: Stop,
    draft: Draft, scores: Scores, made: Made,
) -> tuple[int, int, int, int]:  # fmt: skip
    """Make at least one round and at most those of the `course`. Returns how many rounds, slots, draws and
    tokens were `made`.

    `few` is the number of tasks of a drafter product. Without unread drafter ids, draft.rows[0] are the
    drafter's logits. With shared noise a proposal is accepted where the target draws it itself. Each round
    appends the target's rows to scores.logits [R, T] and scores.stats [R, 4]; no round begins that might not
    fit. `draft` holds the last round's draft. scores.states [1 + budget, H] is scratch space.
    """
    first, _, _, keys, info, kin = rule
    sampling, uniforms, noise = choice
    logits, hidden, all_stats = scores
    rows, states, notes, draft_probs, distributions, slots, bounds = draft
    targets, spelled, left = words.targets, words.spelled, course.left
    draws, width, at, told = len(draft_probs), len(hidden), int64(0), int64(0)
    filled = drew = 0
    most_read = len(target.unread) + width
    read, own = np.empty(most_read, np.int64), np.empty(len(rows) + spelled.shape[1], np.int64)
    accept_probs, ended = np.empty(width), now()
    vocabulary = logits.shape[1]
    probs, sums = np.empty(vocabulary, np.float32), np.empty((vocabulary + BLOCK - 1) // BLOCK)
    temperature, drafting = sampling.temperature, Workers(workers.queue, few, workers.chunk)
    # what is accepted is the target's own token, and no uniform number is used
    own_tokens = temperature == 0.0 or is_shared(noise)
    tokens, before = notes[2], drafter.text.seen.ids[0]
    for number in range(course.rounds):
        done = made.rounds[number]
        wanted, unread, used, begin = min(course.budget, left), len(target.unread), at, filled
        accepted, written, proposed = 0, UNFINISHED, 0
        done.began = ended
        done.drawn, done.read, count, done.passes = make_draft(
            drafting, drafter, rule, wanted + course.overrun, wanted, Choice(sampling, uniforms[at:], noise),
            targets, stop, draft,
        )  # fmt: skip
        done.had_drafted = now()
        if count > 0:
            start = drafter.start + len(drafter.unread)
            at += 0 if own_tokens else done.drawn
            append(read, int64(0), target.unread)
            while proposed < count and slots[proposed, 1] > base_of(slots, proposed):
                read[unread + proposed] = target_of(slots, proposed, tokens, targets, kin)
                proposed += 1
            verified = Scores(
                logits[filled : filled + proposed + 1],
                hidden[: proposed + 1],
                all_stats[filled : filled + proposed + 1],
            )
            proposal, filled = read[unread : unread + proposed], filled + proposed + 1
            divisor = temperature if temperature > 0.0 else 1.0
            run_pass(workers, target.model, read[: unread + proposed], target.start, verified, divisor)
            if own_tokens:
                accepted, written = judge_own(proposal, verified, choice, target.text, accept_probs, probs)
            else:
                for slot in range(proposed):
                    if slots[slot, 3] >= 0:
                        bounds[slot] *= rest_of(
                            children_mass(distributions[slots[slot, 3]], slots[slot, 2], info, kin)
                        )
                accepted, written, at = judge(
                    proposal, bounds, verified, choice, target.text, at, accept_probs, probs
                )
                if written == UNFINISHED:
                    if plain(sampling):
                        stats = verified.stats[accepted]
                        softmax_given(verified.logits[accepted], stats[1], 1.0 / temperature, stats[3], probs)
                    block_sums(probs, sums)
                    if accepted == count:
                        written, at = inverse_cdf_by(probs, sums, uniforms[at]), at + 1
                    else:
                        base, drawn = base_of(slots, accepted), slots[accepted, 0]
                        rest = slots[accepted + 1, 0] if accepted + 1 < count else done.drawn
                        follow(drafter.text.seen, before, tokens[:base])
                        side = Side(drafter.model, drafter.unread, start + base, drafter.text)
                        reader = Reader(
                            drafting, side, rule, choice, np.empty((1, rows.shape[1]), np.float32)
                        )
                        walk = Walk(notes[1, drawn:rest], distributions[drawn:rest])
                        written, at, walked = replace(
                            probs, sums, wanted + course.overrun - base, walk, reader, words, at
                        )
                        done.passes += walked
                        if walked > 0 and written == UNFINISHED:
                            read_on(drafting, drafter.model, tokens, start, base, done.read, rows, states)
                        elif walked > 0:
                            done.read = min(done.read, base)
            for place in range(proposed):
                slot = made.slots[begin + place]
                slot.target, slot.first, slot.end = proposal[place], slots[place, 0], slots[place, 1]
                slot.q, slot.chance = bounds[place], accept_probs[place]
                slot.likely = likelihood(verified, place, proposal[place])
            slot = made.slots[begin + proposed]
            slot.likely = likelihood(verified, accepted, written) if written >= 0 else 0.0
        ended = now()
        done.ended = ended
        done.slots, done.proposed = count, proposed if count > 0 else UNFINISHED
        done.accepted, done.written, done.spent = accepted, written, at - used
        told = append(made.tokens, told, tokens[: max(done.read, base_of(slots, proposed))])
        for place in range(done.drawn):
            draw = made.draws[drew + place]
            draw.place, draw.id, draw.prob = notes[0, place], notes[1, place], draft_probs[place]
        drew += done.drawn
        left -= accepted + 1
        if is_shared(noise):
            noise.place[1] += accepted + 1
        if written < 0 or np.any(target.text.ends == written) or left < 1 or filled + width > len(logits):
            return number + 1, filled, drew, told
        if not own_tokens and at + draws + width + SPARE > len(uniforms):
            return number + 1, filled, drew, told
        length = spelled[written, 0]
        spelling = spelled[written, 1 : 1 + length]
        if length < 1 or (course.grows and length > 1 and not is_ngram(spelling, len(first), keys, info)):
            return number + 1, filled, drew, told
        end = base_of(slots, accepted)
        there = min(done.read, end)
        follow(drafter.text.seen, before, tokens[:end])
        mark_all(drafter.text.seen, spelling)
        mark(target.text.seen, written)
        before = drafter.text.seen.ids[0]
        given = own[: append(own, append(own, int64(0), tokens[there:end]), spelling)]
        drafter = Side(drafter.model, given, drafter.start + len(drafter.unread) + there, drafter.text)
        target = Side(target.model, np.full(1, written), target.start + unread + accepted, target.text)
    return course.rounds, filled, drew, told


@compiled
def now() -> Any:
    """Seconds of a monotonic clock."""
    time = np.zeros(2, np.int64)
    if POSIX:
        _clock(np.int32(MONOTONIC), time.ctypes.data)
        return time[0] + 1e-9 * time[1]
    _clock(time.ctypes.data)
    return 1e-7 * time[0]  # Windows counts ten million a second


@compiled
def base_of(slots: Whole, slot: int) -> Any:
    """The drafter tokens before a slot."""
    return slots[slot - 1, 1] if slot else 0


@compiled
def target_of(slots: Whole, slot: int, tokens: Whole, targets: Whole, kin: Whole) -> Any:
    """The target token that a slot proposes."""
    base = base_of(slots, slot)
    return targets[tokens[base]] if slots[slot, 1] == base + 1 else kin[slots[slot, 2], TARGET]
