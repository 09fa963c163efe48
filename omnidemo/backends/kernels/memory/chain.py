"""`MemorySource` in compiled code: the chain of ids that it proposes, and what it learns from one."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from omnidemo.backends.call_layout import Numbers, Whole
from omnidemo.backends.kernels.memory.copies import EARLIER, KIND, LENGTH, ORIGIN, copy_from
from omnidemo.backends.kernels.rows_kernel import compiled
from omnidemo.decoding.sources import ngram_table
from omnidemo.decoding.sources.copier import CLASSES, FORGET, LEAST, SHARES, SOURCES
from omnidemo.decoding.sources.ngram_table import LONGEST, MEETINGS

follow: Any = njit(cache=True, error_model="numpy", nogil=True)(ngram_table.follow)
FIRST = 3  # column of the first source's offer


@njit(cache=True, error_model="numpy", nogil=True)
def chain(
    own: Any, earlier: Any, known: Any, right: Any, tail: Whole, prompt: int, ends: Whole, made: Whole,
    wholes: Numbers,
) -> int:  # fmt: skip
    """`MemorySource.draft` of at most len(made) ids; returns their number. Each row of `made` [n, 9] is the
    id, match length and origin, and the offer of each source (id, −1 for none, and class). `wholes` [n]: the
    chance that all ids so far are accepted."""
    most, begun = len(made), LONGEST - min(LONGEST, len(tail))
    copies, alive = np.empty((2, 2, most, 4), np.int64), np.zeros(2, np.int64)
    alive[0] = copy_from(own, tail, True, prompt, ends, right, most, copies[0])
    alive[1] = copy_from(earlier, tail, False, prompt, ends, right, most, copies[1])
    ids, shares, kinds = np.full(LONGEST + most, -1), np.empty(most), np.empty(most, np.int64)
    ids[begun:LONGEST] = tail[len(tail) - LONGEST + begun :]
    first, found, whole, step = 0, followed(known, ids, shares, kinds), 1.0, 0
    weight, accepted = right
    while step < most:
        offers = made[step, FIRST:]
        offers[:] = -1
        if step - first < found:
            kind = kinds[step - first]
            at = class_of_continuation(kind, shares[step - first])
            offers[0], offers[1] = ids[LONGEST + step], at
        for source in range(2):
            if step < alive[source]:
                offers[2 + 2 * source] = copies[source, 0, step, 0]
                offers[3 + 2 * source] = copies[source, 0, step, KIND]
        token, best = likeliest(weight, accepted, offers)
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
        made[step, 0], made[step, 1], made[step, 2], wholes[step] = token, length, origin, whole
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
def likeliest(weight: Numbers, accepted: Numbers, offers: Whole) -> tuple[Any, float]:
    """(the id with the highest chance, the first among equals, −1 for none; its chance)."""
    token, best = np.int64(-1), 0.0
    for source in range(SOURCES):
        each = offers[2 * source]
        if each >= 0 and each != token:
            chance = chance_of(weight, accepted, each, offers)
            if chance > best:
                token, best = each, chance
    return token, best


@compiled
def chance_of(weight: Numbers, accepted: Numbers, token: int, offers: Whole) -> float:
    """`memory_source._chance`."""
    surest, all_wrong = 0.0, 1.0
    for source in range(SOURCES):
        if offers[2 * source] == token:
            chance = accepted[offers[2 * source + 1]] / weight[offers[2 * source + 1]]
            surest, all_wrong = max(surest, chance), all_wrong * (1.0 - chance)
    return 1.0 - np.sqrt(all_wrong * (1.0 - surest))


@compiled
def class_of_continuation(kind: int, share: float) -> Any:
    """`copier.class_of_continuation`."""
    column = 0
    while column < len(SHARES) and share >= SHARES[column]:
        column += 1
    return 2 * CLASSES + kind * (len(SHARES) + 1) + column


@njit(cache=True, error_model="numpy", nogil=True)
def learn_chain(right: Any, made: Whole, written: Whole) -> None:
    """`MemorySource.learn` of the rows that `chain` has written."""
    weight, accepted = right
    for step in range(min(len(made), len(written))):
        offers, wanted = made[step, FIRST:], written[step]
        for source in range(SOURCES):
            if offers[2 * source] >= 0:
                at = offers[2 * source + 1]
                weight[at] = FORGET * weight[at] + 1.0
                accepted[at] = FORGET * accepted[at] + (1.0 if offers[2 * source] == wanted else 0.0)
        if made[step, 0] != wanted:
            break
