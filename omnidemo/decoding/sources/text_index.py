"""A text of ids, in which the places where its newest ids stood before are found."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

import numpy as np

CANDIDATES = 16  # newest places with the same last two ids that are looked at
LONGEST_MATCH = 32  # ids that are compared before a place
SPREAD = 0x9E3779B1  # of the hash of two ids
AT_ONCE = 256  # new ids above which they are entered by numpy
SMALLEST = 1024  # heads of the first table, of which each holds as many ids as it has heads
GROWTH = 4  # times, from table to table
BREAK = -1  # stands between two texts, and is equal to nothing


class TextIndex:
    """Target ids in which the places of any two neighbouring ids are found, the newest first.

    Tables of heads [2^n] hold, by the hash of two ids, the newest position of the second one; `previous`
    [ids] the next older position of the same hash in the same table. A table that is full stays as it is, and
    a larger one takes what comes after: nothing is entered twice, so that no id ever waits for many others.
    Positions count from the first id that ever was; what is older than `begin` has been dropped.
    """

    BYTES = 30  # of memory at most, for each id, beyond what little an empty one takes

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forget everything."""
        self.ids, self.previous = array("i"), array("i")
        self.tables = [array("i", [-1]) * SMALLEST]
        self.firsts = [0]  # position from which on a table holds the ids
        self.begin = 0  # position of the oldest id

    def become(self, other: TextIndex) -> None:
        """Hold what `other` does, which is not used any more."""
        self.__dict__.update(other.__dict__)

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def nbytes(self) -> int:
        return 4 * (len(self.ids) + len(self.previous) + sum(map(len, self.tables)))

    def extend(self, ids: Sequence[int]) -> None:
        """Append ids."""
        if len(self.ids) + len(ids) > len(self.tables[-1]):
            size = len(self.tables[-1])
            while size < len(self.ids) + len(ids):
                size *= GROWTH
            if self.firsts[-1] == self.begin + len(self.ids):  # nothing is in the last one
                del self.tables[-1], self.firsts[-1]
            self.tables.append(array("i", [-1]) * size)
            self.firsts.append(self.begin + len(self.ids))
        if len(ids) > AT_ONCE:
            self._enter(ids)
            return
        own, heads, previous = self.ids, self.tables[-1], self.previous
        last = len(heads) - 1
        position, before = self.begin + len(own), own[-1] if own else BREAK
        for token in ids:
            place = (before * SPREAD + token * 31) & last
            own.append(token)
            previous.append(heads[place])
            heads[place] = position
            position, before = position + 1, token

    def _enter(self, new: Sequence[int]) -> None:
        """Append many ids."""
        first = len(self.ids)
        ids = np.array([self.ids[-1] if first else BREAK, *new], np.int64)
        places = (ids[:-1] * SPREAD + ids[1:] * 31) & (len(self.tables[-1]) - 1)
        order = np.argsort(places, kind="stable")
        sorted_places, positions = places[order], order + (self.begin + first)
        opens = np.concatenate([[True], sorted_places[1:] != sorted_places[:-1]])  # the oldest of each hash
        heads = np.frombuffer(self.tables[-1], np.int32)
        older = np.where(opens, heads[sorted_places], np.concatenate([[0], positions[:-1]]))
        previous = np.empty(len(new), np.int32)
        previous[order] = older
        self.ids.extend(new)
        self.previous.frombytes(previous.tobytes())
        closes = np.concatenate([opens[1:], [True]])
        heads[sorted_places[closes]] = positions[closes]

    def trim(self, length: int) -> None:
        """Keep the first `length` ids."""
        while len(self.ids) > length:
            token = self.ids.pop()
            if self.begin + len(self.ids) < self.firsts[-1]:
                del self.tables[-1], self.firsts[-1]
            heads = self.tables[-1]
            heads[((self.ids[-1] if self.ids else BREAK) * SPREAD + token * 31) & (len(heads) - 1)] = (
                self.previous.pop()
            )

    def drop(self, count: int) -> None:
        """Forget the oldest `count` ids."""
        del self.ids[:count], self.previous[:count]
        self.begin += count
        while len(self.firsts) > 1 and self.firsts[1] <= self.begin:
            del self.tables[0], self.firsts[0]

    def places(self, tail: Sequence[int], own: bool) -> list[tuple[int, int]]:
        """(length, index of the id behind) of the newest places at which ids stand as they do at the end of
        `tail`: how many agree, at least two. `own`: `tail` is this text itself, whose end is no such
        place."""
        if len(tail) < 2:
            return []
        before, token, ids, previous = tail[-2], tail[-1], self.ids, self.previous
        begin, found, candidates = self.begin, list[tuple[int, int]](), CANDIDATES
        most, end, hashed = min(LONGEST_MATCH, len(tail)), len(tail) - 1, before * SPREAD + token * 31
        for heads in reversed(self.tables):
            at = heads[hashed & (len(heads) - 1)] - begin
            if own and at == len(ids) - 1:
                at = previous[at] - begin
            while at >= 1 and candidates:
                candidates -= 1
                if ids[at] == token and ids[at - 1] == before and at + 1 < len(ids):
                    length, reach = 2, min(most, at + 1)
                    while length < reach and ids[at - length] == tail[end - length]:
                        length += 1
                    found.append((length, at + 1))
                at = previous[at] - begin
        return found
