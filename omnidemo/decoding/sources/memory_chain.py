"""What memory proposes, over arrays: ids copied from texts, and the chain of copies and continuations. numba
compiles the functions as they stand here; Python runs them until that is done."""

from __future__ import annotations

from typing import Any

from omnidemo.decoding.sources.copy_chances import AGREEING, CLASSES, FORGET, LEAST, LENGTHS, SHARES
from omnidemo.decoding.sources.ngram_table import LONGEST, MEETINGS, follow
from omnidemo.decoding.sources.text_index import BREAK, CANDIDATES, LONGEST_MATCH, find_places

LEVELS = 2  # longest match lengths for which a draft is made
COPIED = 4  # numbers of a copied id: itself, match length, origin, class
LENGTH, ORIGIN, KIND = 1, 2, 3
PROMPT, ANSWER, EARLIER = 0, 1, 2  # origins
# numbers of a proposed id: itself, match length, origin; of continuations, the conversation and earlier
# answers the id that each offers, −1 for none, and its class
ROW, OFFERS = 9, 3


def chain(
    own: Any, earlier: Any, known: Any, right: Any, tail: Any, prompt: int, ends: Any, ids: Any, shares: Any,
    kinds: Any, made: Any, wholes: Any,
) -> int:  # fmt: skip
    """`MemorySource.draft` of at most len(wholes) ids; returns their number. `own`, `earlier`: see
    `find_places`; `known`: `Continuations.table`; `right`: the weight of each class, and the accepted part of
    it. `ids`: the last LONGEST ids, −1 before the beginning of the text, and room for the draft; `shares` and
    `kinds` have that room, too. Written are ROW numbers of each id to `made`, and to `wholes` the chance that
    all ids so far are accepted."""
    keys, weights, kept, counts, bits = known
    weight, accepted = right
    most = len(wholes)
    copies, alive = [0] * (2 * COPIED * most), [0, 0]
    for source in range(2):
        text = own if source == 0 else earlier
        alive[source] = copy_from(text, tail, source, prompt, ends, right, most, copies)
    first, found, whole, step = 0, follow(keys, weights, kept, counts, bits, ids, shares, kinds), 1.0, 0
    while step < most:
        row, offers = ROW * step, ROW * step + OFFERS
        for place in range(offers, row + ROW):
            made[place] = -1
        if step - first < found:
            made[offers] = ids[LONGEST + step]
            made[offers + 1] = class_of_continuation(kinds[step - first], shares[step - first])
        for source in range(2):
            if step < alive[source]:
                copied = COPIED * (source * most + step)
                made[offers + 2 + 2 * source] = copies[copied]
                made[offers + 3 + 2 * source] = copies[copied + KIND]
        token, best = likeliest(weight, accepted, made, offers)
        whole *= best
        if whole < LEAST:
            break
        follows = token == made[offers]
        length, origin = 0, EARLIER
        if follows:
            length = kinds[step - first] // MEETINGS + 1
        for source in range(2):
            copied = COPIED * (source * most + step)
            if step < alive[source] and copies[copied] == token:
                if copies[copied + LENGTH] >= length:
                    length, origin = copies[copied + LENGTH], copies[copied + ORIGIN]
            else:
                alive[source] = 0
        made[row], made[row + LENGTH], made[row + ORIGIN], wholes[step] = token, length, origin, whole
        ids[LONGEST + step], step = token, step + 1
        if among(ends, token):
            break
        if not follows and step < most:
            first, left = step, most - step
            found = follow(keys, weights, kept, counts, bits, ids[step:], shares[:left], kinds[:left])
    return step


def likeliest(weight: Any, accepted: Any, made: Any, offers: int) -> tuple[int, float]:
    """(the id with the highest chance, the first among equals, −1 for none; its chance). The chance of an id
    is by the surest source that offers it, and by the others as half independent."""
    token, best = -1, 0.0
    for place in range(offers, offers + ROW - OFFERS, 2):
        each = made[place]
        if each >= 0 and each != token:
            surest, all_wrong = 0.0, 1.0
            for other in range(offers, offers + ROW - OFFERS, 2):
                if made[other] == each:
                    chance = accepted[made[other + 1]] / weight[made[other + 1]]
                    surest, all_wrong = max(surest, chance), all_wrong * (1.0 - chance)
            chance = 1.0 - (all_wrong * (1.0 - surest)) ** 0.5
            if chance > best:
                token, best = each, chance
    return token, best


def learn_chain(weight: Any, accepted: Any, made: Any, written: Any) -> int:
    """`MemorySource.learn` of the rows that `chain` has written; returns how many were right."""
    for step in range(min(len(made) // ROW, len(written))):
        row, wanted = ROW * step, written[step]
        for offer in range(row + OFFERS, row + ROW, 2):
            if made[offer] >= 0:
                kind = made[offer + 1]
                weight[kind] = FORGET * weight[kind] + 1.0
                accepted[kind] = FORGET * accepted[kind] + (1.0 if made[offer] == wanted else 0.0)
        if made[row] != wanted:
            return step
    return min(len(made) // ROW, len(written))


def copy_from(
    text: Any, tail: Any, source: int, prompt: int, ends: Any, right: Any, most: int, made: Any
) -> int:
    """Write COPIED numbers of each id of the better copied draft to the source's part of `made`; returns how
    many ids. `source`: 0 for the conversation, which ends with `tail` and begins with `prompt` ids of the
    prompt, 1 for earlier answers."""
    begin = COPIED * most * source
    lengths, places, trial = [0] * CANDIDATES, [0] * CANDIDATES, [0] * (COPIED * most)
    count = find_places(text, tail, source == 0, lengths, places)
    best, size, before = 0.0, 0, LONGEST_MATCH + 1
    for _ in range(LEVELS):
        shortest = 0
        for place in range(count):
            if lengths[place] < before:
                shortest = max(shortest, lengths[place])
        if shortest == 0:
            break
        before, kept = shortest, 0
        some, where = [0] * CANDIDATES, [0] * CANDIDATES
        for place in range(count):
            if lengths[place] >= shortest:
                some[kept], where[kept] = lengths[place], places[place]
                kept += 1
        tried, expected = what_follows(text, some, where, kept, source, prompt, ends, right, most, trial)
        if expected > best:
            best, size = expected, tried
            for place in range(COPIED * size):
                made[begin + place] = trial[place]
    return size


def what_follows(
    text: Any, lengths: Any, places: Any, count: int, source: int, prompt: int, ends: Any, right: Any,
    most: int, made: Any,
) -> tuple[int, float]:  # fmt: skip
    """Write the ids that follow most of the places, one by one; the newest place decides among equals.
    Returns (number of ids, expected number of accepted ids)."""
    ids, size, (weight, accepted) = text[0], text[3], right
    first, longest, step, chance, expected = 0, 0, 0, 1.0, 0.0
    for place in range(count):
        longest = max(longest, lengths[place])
    while step < most:
        while first < count and places[first] + step >= size:
            first += 1
        if first == count:
            break
        token, agreeing = most_say(ids, places, first, count, step)
        every = count - first
        if agreeing != every:
            longest, kept = 0, 0
            for place in range(first, count):
                if ids[places[place] + step] == token:
                    lengths[kept], places[kept] = lengths[place], places[place]
                    longest, kept = max(longest, lengths[kept]), kept + 1
            first, count = 0, kept
        if token == BREAK:
            break
        kind = class_of_copy(longest + step, agreeing, every, source)
        chance *= accepted[kind] / weight[kind]
        if chance < LEAST:
            break
        at, origin = COPIED * step, EARLIER
        if source == 0:
            origin = ANSWER if places[first] + step >= prompt else PROMPT
        made[at], made[at + LENGTH], made[at + ORIGIN], made[at + KIND] = token, longest + step, origin, kind
        expected, step = expected + chance, step + 1
        if among(ends, token):
            break
    return step, expected


def most_say(ids: Any, places: Any, first: int, count: int, step: int) -> tuple[int, int]:
    """(the id that stands `step` behind most of the places, the first among equals; the number of these)."""
    best, most = BREAK, 0
    for place in range(first, count):
        if most >= count - place:
            break
        token, said = ids[places[place] + step], 0
        for other in range(first, count):
            if ids[places[other] + step] == token:
                said += 1
        if said > most:
            best, most = token, said
    return best, most


def among(ends: Any, token: int) -> bool:
    for end in ends:  # noqa: SIM110 — numba compiles no generator
        if end == token:
            return True
    return False


def class_of_copy(length: int, places: int, every: int, source: int) -> int:
    """The class of a copied id: the source (0 or 1), the number of newest ids that agree with the place
    (earlier ids of the same draft included), and how far several places agree."""
    agreeing = 0 if every == 1 else 1 if places == every else 2 if 2 * places > every else 3
    row = 0
    while row < len(LENGTHS) and length >= LENGTHS[row]:
        row += 1
    return CLASSES * source + AGREEING * row + agreeing


def class_of_continuation(kind: int, share: float) -> int:
    """The class of an id from `Continuations`."""
    column = 0
    while column < len(SHARES) and share >= SHARES[column]:
        column += 1
    return 2 * CLASSES + kind * (len(SHARES) + 1) + column
