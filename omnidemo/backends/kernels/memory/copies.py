"""`TextIndex` in compiled code, and the part of `Copier` that reads one."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from omnidemo.backends.call_layout import Whole
from omnidemo.backends.kernels.rows_kernel import compiled, int64
from omnidemo.decoding.sources.copier import AGREEING, CLASSES, LEAST, LENGTHS, LEVELS
from omnidemo.decoding.sources.text_index import BREAK, CANDIDATES, LONGEST_MATCH, SPREAD

LENGTH, ORIGIN, KIND = 1, 2, 3  # columns of a copied id, behind the id itself
PROMPT, ANSWER, EARLIER = 0, 1, 2  # origins


@njit(cache=True, error_model="numpy", nogil=True)
def enter(text: Any, new: NDArray[np.int32]) -> int:
    """Append ids to a text that has room for them; returns the new length."""
    ids, previous, heads, size, begin = text
    before = int64(ids[size - 1]) if size > 0 else int64(BREAK)
    for token in new:
        place = (before * SPREAD + int64(token) * 31) & (len(heads) - 1)
        ids[size], previous[size], heads[place] = token, heads[place], begin + size
        size, before = size + 1, int64(token)
    return size


@compiled
def find_places(text: Any, tail: Whole, own: bool, found: Whole) -> Any:
    """`TextIndex.places`, written to `found` [CANDIDATES, 2]; returns their number."""
    ids, previous, heads, size, begin = text
    end, count = len(tail) - 1, 0
    if end < 1 or size < 2:
        return count
    before, token = tail[end - 1], tail[end]
    at = heads[(before * SPREAD + token * 31) & (len(heads) - 1)] - begin
    if own and at == size - 1:
        at = previous[at] - begin
    for _ in range(CANDIDATES):
        if at < 1:
            break
        if ids[at] == token and ids[at - 1] == before and at + 1 < size:
            length, reach = 2, min(min(LONGEST_MATCH, len(tail)), at + 1)
            while length < reach and ids[at - length] == tail[end - length]:
                length += 1
            found[count, 0], found[count, 1] = length, at + 1
            count += 1
        at = previous[at] - begin
    return count


@compiled
def copy_from(
    text: Any, tail: Whole, own: bool, prompt: int, ends: Whole, right: Any, most: int, made: Whole
) -> Any:
    """`Copier._from`: write the ids, match lengths, origins and classes of the better draft to `made` [2,
    most, 4], first part; returns their number."""
    found = np.empty((CANDIDATES, 2), np.int64)
    count = find_places(text, tail, own, found)
    best, length, before = 0.0, 0, int64(LONGEST_MATCH + 1)
    for _ in range(LEVELS):
        shortest = int64(0)
        for place in range(count):
            if found[place, 0] < before:
                shortest = max(shortest, found[place, 0])
        if shortest == 0:
            break
        before = shortest
        chosen, kept = np.empty((CANDIDATES, 2), np.int64), 0
        for place in range(count):
            if found[place, 0] >= shortest:
                chosen[kept, 0], chosen[kept, 1] = found[place, 0], found[place, 1]
                kept += 1
        size, expected = stands_behind(text, chosen[:kept], own, prompt, ends, right, made[1, :most])
        if expected > best:
            best, length = expected, size
            for step in range(size):
                for column in range(4):
                    made[0, step, column] = made[1, step, column]
    return length


@compiled
def stands_behind(
    text: Any, places: Whole, own: bool, prompt: int, ends: Whole, right: Any, made: Whole
) -> tuple[int, float]:
    """`Copier._follow`: (number of ids, expected number of accepted ids). `right`: the weight of each class,
    and the accepted part of it."""
    ids, size, (weight, accepted) = text[0], text[3], right
    first, count, longest, step = 0, len(places), int64(0), 0
    chance, expected = 1.0, 0.0
    for place in range(count):
        longest = max(longest, places[place, 0])
    while step < len(made):
        while first < count and places[first, 1] + step >= size:
            first += 1
        if first == count:
            break
        token, agreeing = most_say(ids, places[first:count], step)
        every = count - first
        if agreeing != every:
            longest, kept = int64(0), 0
            for place in range(first, count):
                if ids[places[place, 1] + step] == token:
                    places[kept, 0], places[kept, 1] = places[place, 0], places[place, 1]
                    longest, kept = max(longest, places[kept, 0]), kept + 1
            first, count = 0, kept
        if token == BREAK:
            break
        kind = class_of(longest + step, agreeing, every, not own)
        chance *= accepted[kind] / weight[kind]
        if chance < LEAST:
            break
        origin = ANSWER if places[first, 1] + step >= prompt else PROMPT
        made[step, 0], made[step, LENGTH] = token, longest + step
        made[step, ORIGIN], made[step, KIND] = origin if own else EARLIER, kind
        expected, step = expected + chance, step + 1
        if np.any(ends == token):
            break
    return step, expected


@compiled
def most_say(ids: NDArray[np.int32], places: Whole, step: int) -> tuple[int, int]:
    """(the id that follows most places, the first among equals; the number of these places)."""
    best, most = int64(BREAK), 0
    for place in range(len(places)):
        token, count = ids[places[place, 1] + step], 0
        for other in range(len(places)):
            count += ids[places[other, 1] + step] == token
        if count > most:
            best, most = int64(token), count
    return best, most


@compiled
def class_of(length: int, places: int, every: int, earlier: bool) -> Any:
    """`copier._class_of`."""
    agreeing = 0 if every == 1 else 1 if places == every else 2 if 2 * places > every else 3
    row = 0
    while row < len(LENGTHS) and length >= LENGTHS[row]:
        row += 1
    return (CLASSES if earlier else 0) + AGREEING * row + agreeing
