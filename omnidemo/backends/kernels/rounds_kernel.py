"""Whole rounds without coming back in between: draft, verify, accept, correct, and again.

Everything is as `decoding.round.reference_round` does it with a method that has a `ProposalRule`, number for number. It stops where only
the host can go on.
"""

from __future__ import annotations

import os
import time
from typing import Any

import numpy as np
from numba import njit, types

from omnidemo.backends.kernels.draft import follow, read_on, roll_out
from omnidemo.backends.kernels.filters_kernel import Numbers, Sampling, Seen, Whole, distribution, mark, mark_all, plain
from omnidemo.backends.kernels.forward import Model, forward
from omnidemo.backends.kernels.gemm import Array
from omnidemo.backends.kernels.noise_kernel import Shared, is_shared, race, row_at
from omnidemo.backends.kernels.residual import SPARE, Tables, children_mass, correct, is_ngram, rest_of
from omnidemo.backends.kernels.rows_kernel import BLOCK, append, block_sums, compiled, highest, int64, inverse_cdf_by, softmax_given
from omnidemo.backends.round_layout import ACCEPTED, DRAWN, HEADER, NONE, PASSES, PROPOSED, READ, SLOTS, SPENT, UNFINISHED, USED, WRITTEN
from omnidemo.backends.thread_pool import Queue
from omnidemo.vocab.trie_table import TARGET

POSIX = os.name == "posix"
MONOTONIC = getattr(time, "CLOCK_MONOTONIC", 0)
_clock: Any = types.ExternalFunction(
    "clock_gettime" if POSIX else "QueryPerformanceCounter", types.int32(types.int32, types.intp) if POSIX else types.int32(types.intp)
)


@njit(cache=True, error_model="numpy", nogil=True)
def rounds(
    queue: Queue, tasks: int, few: int, chunk: int, drafter: Model, given: Whole, start: int, target: Model, unread: Whole, begin: int,
    most: int, budget: int, overrun: int, left: int, tables: Tables, sampling: Sampling, target_seen: Seen, drafter_seen: Seen,
    uniforms: Numbers, noise: Shared, cumulative: float, min_prob: float, price: float, segments: Numbers, ends: Whole, last: Whole,
    grows: bool, rows: Array, states: Array, distributions: Array, logits: Array, hidden: Array, all_stats: Array, ints: Whole,
    floats: Numbers,
) -> tuple[int, int, int]:  # fmt: skip
    """Make at most `most` rounds, one at least: (how many were, lengths of the ints and of the floats).

    The `drafter`, by `few` tasks of a product, first reads the `given` tokens at positions start… (if there are none, rows[0] are its
    logits), the `target` the `unread` ones at positions begin…. A round drafts at most `budget` drafter tokens, and at most `left` target
    tokens are proposed or written in all, one fewer than are wanted. `sampling` to `segments`: see `roll_out`; with `noise` a proposal is
    accepted where it is what the target draws by it; nothing follows the
    target's tokens `ends`, of which the drafter's are `last`. `grows`: whether the host puts n-grams into the trie that it lacks. Written
    are, of one round after another as long as there is room for a whole one, the target's `logits` [R, T] and `all_stats` [R, 4], and what
    `round_layout` describes; and `rows`, `states` and `distributions` as in `roll_out`, which are left of the last one. `hidden`
    [1 + budget, H] is where the target works.
    """
    first, inside, alone, keys, info, kin, targets, _, _, spelled = tables
    draws, width, at, int_at, float_at, filled = len(distributions), len(hidden), 0, int64(0), int64(0), 0
    read, own = np.empty(len(unread) + width, np.int64), np.empty(len(rows) + spelled.shape[1], np.int64)
    notes, slots, draft_probs = np.empty((3, max(draws, len(rows))), np.int64), np.empty((draws, 4), np.int64), np.empty(draws)
    bounds, accept_probs, target_probs, times = np.empty(draws), np.empty(width), np.empty(width), np.empty(3)
    vocabulary = logits.shape[1]
    probs, sums = np.empty(vocabulary, np.float32), np.empty((vocabulary + BLOCK - 1) // BLOCK)
    drawing = sampling[0] > 0.0 and not is_shared(noise)  # by uniform numbers
    tokens, out, temperature, before = notes[2], np.empty(HEADER, np.int64), sampling[0], drafter_seen[1][0]
    times[2] = now()
    for made in range(most):
        wanted, known, accepted, written, proposed, used = min(budget, left), len(unread), 0, UNFINISHED, 0, at
        times[0] = times[2]
        out[DRAWN], out[READ], count, out[PASSES] = roll_out(
            queue, few, drafter, given, start, rows, states, first, inside, alone, keys, info, wanted + overrun, wanted, sampling,
            drafter_seen, uniforms[at:], noise, targets, kin, cumulative, min_prob, price, segments, last, notes, draft_probs,
            distributions, slots, bounds,
        )  # fmt: skip
        times[1] = now()
        if count > 0:
            start += len(given)
            at += out[DRAWN] if drawing else 0
            append(read, int64(0), unread)
            while proposed < count and slots[proposed, 1] > base_of(slots, proposed):
                read[known + proposed] = target_of(slots, proposed, tokens, targets, kin)
                proposed += 1
            scores, stats = logits[filled : filled + proposed + 1], all_stats[filled : filled + proposed + 1]
            proposal, filled = read[known : known + proposed], filled + proposed + 1
            divisor = temperature if temperature > 0.0 else 1.0
            forward(queue, tasks, chunk, target, read[: known + proposed], begin, scores, hidden[: proposed + 1], divisor, stats)
            if temperature == 0.0:
                accepted, written = judge_greedy(proposal, scores, stats, sampling, target_seen, ends, accept_probs, probs)
            elif is_shared(noise):
                accepted, written = judge_equal(proposal, scores, stats, sampling, target_seen, noise, ends, accept_probs, probs)
            else:
                for slot in range(proposed):
                    if slots[slot, 3] >= 0:
                        bounds[slot] *= rest_of(children_mass(distributions[slots[slot, 3]], slots[slot, 2], info, kin))
                accepted, written, at = judge(
                    proposal, bounds, scores, stats, sampling, target_seen, uniforms, at, ends, accept_probs, probs
                )
                if written == UNFINISHED:
                    if plain(sampling):
                        softmax_given(scores[accepted], stats[accepted, 1], 1.0 / temperature, stats[accepted, 3], probs)
                    block_sums(probs, sums)
                    if accepted == count:
                        written, at = inverse_cdf_by(probs, sums, uniforms[at]), at + 1
                    else:
                        base, drawn = base_of(slots, accepted), slots[accepted, 0]
                        rest = slots[accepted + 1, 0] if accepted + 1 < count else out[DRAWN]
                        follow(drafter_seen, before, tokens[:base])
                        written, at, walked = correct(
                            probs, sums, wanted + overrun - base, notes[1, drawn:rest], distributions[drawn:rest],
                            (queue, few, drafter, start + base, sampling, drafter_seen, drafter_seen[1][0]), tables, uniforms, at,
                        )  # fmt: skip
                        out[PASSES] += walked
                        if walked > 0 and written == UNFINISHED:
                            read_on(queue, few, drafter, tokens, start, base, out[READ], rows, states)
                        elif walked > 0:
                            out[READ] = min(out[READ], base)
            for place in range(proposed):
                target_probs[place] = likelihood(scores[place], stats[place], proposal[place])
            target_probs[proposed] = likelihood(scores[accepted], stats[accepted], written) if written >= 0 else 0.0
        times[2] = now()
        judged = min(proposed, accepted + (written != NONE))
        out[SLOTS], out[PROPOSED], out[ACCEPTED], out[WRITTEN] = count, proposed if count > 0 else UNFINISHED, accepted, written
        out[USED], out[SPENT] = used, at - used
        int_at = append(ints, int_at, out)
        int_at = append(ints, int_at, read[known : known + proposed])
        int_at = append(ints, int_at, slots[:proposed, 0])
        int_at = append(ints, int_at, slots[:proposed, 1])
        int_at = append(ints, int_at, tokens[: max(out[READ], base_of(slots, proposed))])
        if written == UNFINISHED:
            int_at = append(ints, int_at, notes[0, : out[DRAWN]])
            int_at = append(ints, int_at, notes[1, : out[DRAWN]])
        float_at = append(floats, float_at, times)
        float_at = append(floats, float_at, accept_probs[:judged])
        float_at = append(floats, float_at, target_probs[: proposed + 1])
        float_at = append(floats, float_at, bounds[:proposed])
        float_at = append(floats, float_at, draft_probs[: out[DRAWN]])
        left -= accepted + 1
        if is_shared(noise):
            noise[2][1] += accepted + 1
        if written < 0 or np.any(ends == written) or left < 1 or filled + width > len(logits):
            return made + 1, int_at, float_at
        if drawing and at + draws + width + SPARE > len(uniforms):
            return made + 1, int_at, float_at
        length = spelled[written, 0]
        spelling = spelled[written, 1 : 1 + length]
        if length < 1 or (grows and length > 1 and not is_ngram(spelling, len(first), keys, info)):
            return made + 1, int_at, float_at
        end = base_of(slots, accepted)
        there = min(out[READ], end)
        follow(drafter_seen, before, tokens[:end])
        mark_all(drafter_seen, spelling)
        mark(target_seen, written)
        before = drafter_seen[1][0]
        given = own[: append(own, append(own, int64(0), tokens[there:end]), spelling)]
        start += there
        begin += known + accepted
        unread = np.full(1, written)
    return most, int_at, float_at


@compiled
def now() -> Any:
    """Seconds on a clock that only goes forward."""
    time = np.zeros(2, np.int64)
    if POSIX:
        _clock(np.int32(MONOTONIC), time.ctypes.data)
        return time[0] + 1e-9 * time[1]
    _clock(time.ctypes.data)
    return 1e-7 * time[0]  # Windows counts ten million a second


@compiled
def base_of(slots: Whole, slot: int) -> Any:
    """The place where a slot begins."""
    return slots[slot - 1, 1] if slot else 0


@compiled
def target_of(slots: Whole, slot: int, tokens: Whole, targets: Whole, kin: Whole) -> Any:
    """The target token that a slot proposes."""
    base = base_of(slots, slot)
    return targets[tokens[base]] if slots[slot, 1] == base + 1 else kin[slots[slot, 2], TARGET]


@compiled
def likelihood(row: Array, stats: Array, token: int) -> Any:
    """The probability of a token under logits [V] of which the `RowStats` are known."""
    return np.exp(np.float64(row[token]) - np.float64(stats[1])) / np.float64(stats[2])


@compiled
def judge_greedy(
    proposal: Whole, scores: Array, stats: Array, sampling: Sampling, seen: Seen, ends: Whole, accept_probs: Numbers, probs: Array
) -> tuple[int, Any]:  # fmt: skip
    """(how many are accepted, the token after them). `probs` [T] is where the rows to which a penalty belongs are worked on."""
    for place in range(len(proposal) + 1):
        best = np.int64(stats[place, 0])
        if not plain(sampling):
            append(probs, int64(0), scores[place])
            distribution(probs, sampling, seen)
            best = highest(probs)
        if place == len(proposal) or proposal[place] != best:
            break
        accept_probs[place] = 1.0
        mark(seen, best)
        if np.any(ends == best):
            return place + 1, NONE
    if place < len(proposal):
        accept_probs[place] = 0.0
    return place, best


@compiled
def judge_equal(
    proposal: Whole, scores: Array, stats: Array, sampling: Sampling, seen: Seen, noise: Shared, ends: Whole, accept_probs: Numbers,
    probs: Array,
) -> tuple[int, Any]:  # fmt: skip
    """(how many are accepted, the token after them), where the target draws its own token at every place up to the first other one. `probs`
    [T] is where rows become distributions."""
    for place in range(len(proposal) + 1):
        if plain(sampling):
            softmax_given(scores[place], stats[place, 1], 1.0 / sampling[0], stats[place, 3], probs)
        else:
            append(probs, int64(0), scores[place])
            distribution(probs, sampling, seen)
        token = np.int64(race(probs, row_at(noise, place)[: len(probs)]))
        if place == len(proposal) or proposal[place] != token:
            break
        accept_probs[place] = 1.0
        mark(seen, token)
        if np.any(ends == token):
            return place + 1, NONE
    if place < len(proposal):
        accept_probs[place] = 0.0
    return place, token


@compiled
def judge(
    proposal: Whole, bounds: Numbers, scores: Array, stats: Array, sampling: Sampling, seen: Seen, uniforms: Numbers, at: int,
    ends: Whole, accept_probs: Numbers, probs: Array,
) -> tuple[int, int, int]:  # fmt: skip
    """(how many are accepted, UNFINISHED or NONE for the token after them, uniform numbers used so far). With a filter or a penalty `probs`
    [T] become the distribution of the last row that was looked at; those behind the first rejection are never filtered."""
    simple, temperature = plain(sampling), sampling[0]
    for place in range(len(proposal) + 1):
        if not simple:
            append(probs, int64(0), scores[place])
            distribution(probs, sampling, seen)
        if place == len(proposal):
            break
        token, q = proposal[place], bounds[place]
        if simple:
            p = np.exp((np.float64(scores[place, token]) - np.float64(stats[place, 1])) / temperature) / np.float64(stats[place, 3])
        else:
            p = np.float64(probs[token])
        chance = p / q if q > 0.0 else 1.0 if p > 0.0 else 0.0
        accept_probs[place] = min(1.0, chance)
        if chance < 1.0:
            at += 1
            if uniforms[at - 1] >= chance:
                return place, UNFINISHED, at
        mark(seen, token)
        if np.any(ends == token):
            return place + 1, NONE, at
    return len(proposal), UNFINISHED, at
