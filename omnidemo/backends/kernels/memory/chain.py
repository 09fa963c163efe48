"""`MemorySource` in compiled code: the chain of ids that it proposes, and what it learns from one."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from omnidemo.backends.call_layout import Numbers, Whole
from omnidemo.backends.kernels.memory.copies import EARLIER, KIND, LENGTH, ORIGIN, copy_from
from omnidemo.backends.kernels.rows_kernel import compiled
from omnidemo.decoding.sources import ngram_table
from omnidemo.decoding.sources.agreement import MOST, RATE, SOURCES
from omnidemo.decoding.sources.copier import CLASSES, FORGET, LEAST, SHARES
from omnidemo.decoding.sources.ngram_table import LONGEST, MEETINGS

follow: Any = njit(cache=True, error_model="numpy", nogil=True)(ngram_table.follow)
FIRST = 3  # column of the first source's offer


@njit(cache=True, error_model="numpy", nogil=True)
def chain(
    own: Any, earlier: Any, known: Any, right: Any, weights: Numbers, tail: Whole, prompt: int, ends: Whole,
    made: Whole, numbers: Numbers,
) -> int:  # fmt: skip
    """`MemorySource.draft` of at most len(made) ids; returns their number. Each row of `made` [n, 9] is the
    id, match length and origin, and the offer of each source (id, −1 for none, and class). Each row of
    `numbers` [n, 4] is the chance that all ids so far are accepted, and the log odds of each source."""
    most, begun = len(made), LONGEST - min(LONGEST, len(tail))
    copies, alive = np.empty((2, 2, most, 4), np.int64), np.zeros(2, np.int64)
    alive[0] = copy_from(own, tail, True, prompt, ends, right, most, copies[0])
    alive[1] = copy_from(earlier, tail, False, prompt, ends, right, most, copies[1])
    ids, shares, kinds = np.full(LONGEST + most, -1), np.empty(most), np.empty(most, np.int64)
    ids[begun:LONGEST] = tail[len(tail) - LONGEST + begun :]
    first, found, whole, step = 0, followed(known, ids, shares, kinds), 1.0, 0
    while step < most:
        offers, odds = made[step, FIRST:], numbers[step, 1:]
        offers[:] = -1
        if step - first < found:
            kind = kinds[step - first]
            at = class_of_continuation(kind, shares[step - first])
            offers[0], offers[1], odds[0] = ids[LONGEST + step], at, log_odds(right, at)
        for source in range(2):
            if step < alive[source]:
                at = copies[source, 0, step, KIND]
                offers[2 + 2 * source], offers[3 + 2 * source] = copies[source, 0, step, 0], at
                odds[1 + source] = log_odds(right, at)
        token, best = likeliest(weights, offers, odds, step > 0)
        whole *= best
        if whole < LEAST:
            break
        follows = token == offers[0]
        length, origin = kinds[step - first] // MEETINGS + 1 if follows else 0, EARLIER
        for source in range(2):
            if step < alive[source] and copies[source, 0, step, 0] == token:
                if copies[source, 0, step, LENGTH] >= length:
                    length, origin = copies[source, 0, step, LENGTH], copies[source, 0, step, ORIGIN]
            else:
                alive[source] = 0
        made[step, 0], made[step, 1], made[step, 2], numbers[step, 0] = token, length, origin, whole
        ids[LONGEST + step], step = token, step + 1
        if np.any(ends == token):
            break
        if not follows and step < most:
            first, left = step, most - step
            found = followed(known, ids[step:], shares[:left], kinds[:left])
    return step


@compiled
def followed(known: Any, ids: Whole, shares: Numbers, kinds: Whole) -> Any:
    """`Continuations.follow` of the first LONGEST ids; returns how many ids it wrote after them."""
    keys, weights, kept, counts, bits = known
    return follow(keys, weights, kept, counts, bits, ids, shares, kinds)


@compiled
def likeliest(weights: Numbers, offers: Whole, odds: Numbers, later: bool) -> tuple[Any, float]:
    """(the id with the highest chance, the first among equals, −1 for none; its chance)."""
    token, best = np.int64(-1), 0.0
    for source in range(SOURCES):
        each = offers[2 * source]
        if each >= 0 and each != token:
            chance = chance_of(weights, each, offers, odds, later)
            if chance > best:
                token, best = each, chance
    return token, best


@compiled
def chance_of(weights: Numbers, token: int, offers: Whole, odds: Numbers, later: bool) -> float:
    """`Agreement.chance`."""
    total = weights[0] + weights[1] if later else weights[0]
    for source in range(SOURCES):
        if offers[2 * source] >= 0:
            place = 4 * source + (2 if offers[2 * source] == token else 4)
            total += weights[place] * odds[source] + weights[place + 1]
    return 1.0 / (1.0 + np.exp(-total))


@compiled
def log_odds(right: Any, at: int) -> float:
    """`agreement.log_odds` of the chance of a class."""
    weight, accepted = right
    chance = accepted[at] / weight[at]
    if not 0.0 < chance < 1.0:
        return MOST if chance > 0.0 else -MOST
    return min(max(np.log(chance / (1.0 - chance)), -MOST), MOST)


@compiled
def class_of_continuation(kind: int, share: float) -> Any:
    """`copier.class_of_continuation`."""
    column = 0
    while column < len(SHARES) and share >= SHARES[column]:
        column += 1
    return 2 * CLASSES + kind * (len(SHARES) + 1) + column


@njit(cache=True, error_model="numpy", nogil=True)
def learn_chain(
    right: Any, weights: Numbers, squares: Numbers, made: Whole, numbers: Numbers, written: Whole
) -> None:
    """`MemorySource.learn` of the rows that `chain` has written."""
    weight, accepted = right
    for step in range(min(len(made), len(written))):
        offers, odds, wanted = made[step, FIRST:], numbers[step, 1:], written[step]
        for source in range(SOURCES):
            if offers[2 * source] >= 0:
                at = offers[2 * source + 1]
                weight[at] = FORGET * weight[at] + 1.0
                accepted[at] = FORGET * accepted[at] + (1.0 if offers[2 * source] == wanted else 0.0)
        for source in range(SOURCES):
            each, known = offers[2 * source], False
            for before in range(source):
                known |= offers[2 * before] == each
            if each >= 0 and not known:
                agree(weights, squares, each, offers, odds, step > 0, each == wanted)
        if made[step, 0] != wanted:
            break


@compiled
def agree(
    weights: Numbers, squares: Numbers, token: int, offers: Whole, odds: Numbers, later: bool, right: bool
) -> None:
    """`Agreement.learn`."""
    off = chance_of(weights, token, offers, odds, later) - (1.0 if right else 0.0)
    shift(weights, squares, 0, off)
    if later:
        shift(weights, squares, 1, off)
    for source in range(SOURCES):
        if offers[2 * source] >= 0:
            place = 4 * source + (2 if offers[2 * source] == token else 4)
            shift(weights, squares, place, off * odds[source])
            shift(weights, squares, place + 1, off)


@compiled
def shift(weights: Numbers, squares: Numbers, place: int, slope: float) -> None:
    squares[place] += slope * slope
    weights[place] -= RATE * slope / np.sqrt(squares[place])
