"""The two functions that read and write the table of `Continuations`. numba compiles them as they stand here;
they call no other function of this project."""

from __future__ import annotations

from typing import Any

LONGEST = 4  # ids of a context
KEPT = 4  # ids that a context remembers as its continuation
WAYS = 4  # contexts of a bucket
DECAY = 0.8  # of a context's older observations with each new one
BEHIND = 0.4  # observations that all shorter contexts are worth together
LITTLE = 0.1  # shorter contexts with a smaller share are not read
UNLIKELY = 0.05  # a continuation ends where its probability falls below
TWICE, MORE = 1.5, 2.0  # least weights of a context that was met twice, and more often
MEETINGS = 3  # once, twice, more often
PRIME, FIRST, SECOND = (1 << 31) - 1, 1_664_525_119, 1_103_515_247  # of the two halves of a context's hash


def follow(
    keys: Any, weights: Any, kept: Any, counts: Any, bits: int, found: Any, shares: Any, kinds: Any
) -> int:
    """`Continuations.follow`: write ids after the first LONGEST of `found`, which are −1 before the beginning
    of the text; returns their number."""
    made, whole = 0, 1.0
    places, names, sums = [0] * LONGEST, [0] * (LONGEST * KEPT), [0.0] * (LONGEST * KEPT)
    while made < len(shares):
        one, two, known = 0, 0, 0
        while known < LONGEST:
            token = found[LONGEST + made - 1 - known]
            if token < 0:
                break
            one = (one + token + 1) * FIRST % PRIME
            two = (two + token + 1) * SECOND % PRIME
            key, at = one << 31 | two, (one >> (31 - bits)) * WAYS
            last = at + WAYS
            while at < last and keys[at] != key:
                at += 1
            if at == last:
                break
            places[known] = at
            known += 1
        if known == 0:
            break
        rest, size = 1.0, 0
        for depth in range(known - 1, -1, -1):
            at = places[depth]
            share = rest / (weights[at] + BEHIND)
            for place in range(at * KEPT, at * KEPT + KEPT):
                if counts[place] > 0.0:
                    name = 0
                    while name < size and names[name] != kept[place]:
                        name += 1
                    if name == size:
                        names[name], sums[name] = kept[place], 0.0
                        size += 1
                    sums[name] += share * counts[place]
            rest = share * BEHIND
            if rest < LITTLE:
                break
        best = 0
        for name in range(1, size):
            if sums[name] > sums[best]:
                best = name
        whole *= sums[best]
        if whole < UNLIKELY:
            break
        weight = weights[places[known - 1]]
        met = 0 if weight < TWICE else 1 if weight < MORE else 2
        found[LONGEST + made], shares[made], kinds[made] = (
            names[best],
            sums[best],
            MEETINGS * known - MEETINGS + met,
        )
        made += 1
    return made


def count(
    keys: Any, weights: Any, ages: Any, kept: Any, counts: Any, bits: int, text: Any, first: int, clock: int
) -> int:
    """`Continuations.learn` of the ids of a text from place `first` on; returns the number of new
    contexts."""
    new = 0
    for end in range(first, len(text)):
        one, two = 0, 0
        for depth in range(min(LONGEST, end)):
            token = text[end - 1 - depth]
            one = (one + token + 1) * FIRST % PRIME
            two = (two + token + 1) * SECOND % PRIME
            key, start = one << 31 | two, (one >> (31 - bits)) * WAYS
            at, oldest = start, start
            while at < start + WAYS and keys[at] != key:
                if ages[at] < ages[oldest]:
                    oldest = at
                at += 1
            begins = at == start + WAYS
            if begins:
                at = oldest
                new += keys[at] == 0
                keys[at], weights[at] = key, 0.0
            ages[at], weights[at] = clock + end - first + 1, DECAY * weights[at] + 1.0
            base, least = at * KEPT, at * KEPT
            same = -1
            for slot in range(base, base + KEPT):
                counts[slot] = 0.0 if begins else DECAY * counts[slot]
                if counts[slot] > 0.0 and kept[slot] == text[end]:
                    same = slot
                elif counts[slot] < counts[least]:
                    least = slot
            if same >= 0:
                counts[same] += 1.0
            else:
                kept[least], counts[least] = text[end], 1.0
    return new
