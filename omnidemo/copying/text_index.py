"""A text of ids, in which the places where its newest ids stood before are found."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

import numpy as np

CANDIDATES = 16  # newest places with the same last two ids that are looked at
LONGEST_MATCH = 32  # ids that are compared before a place
SPREAD = 0x9E3779B1  # of the hash of two ids
AT_ONCE = 256  # new ids above which they are entered by numpy
BREAK = -1  # stands between two texts, and is equal to nothing


class TextIndex:
    """Target ids in which the places of any two neighbouring ids are found, the newest first.

    `heads` [2^n]: by the hash of two ids the newest position of the second one; `previous` [ids]: the next older position of the same hash.
    Positions count from the first id that ever was; what is older than `begin` has been dropped. Adding an id costs O(1).
    """

    BYTES = 18  # of memory at most, for each id, beyond what little an empty one takes

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forget everything."""
        self.ids, self.previous = array("i"), array("i")
        self.heads = array("i", [-1]) * 64
        self.begin = 0  # position of the oldest id

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def nbytes(self) -> int:
        return 4 * (len(self.ids) + len(self.previous) + len(self.heads))

    def extend(self, ids: Sequence[int]) -> None:
        """Append ids."""
        if len(self.ids) + len(ids) > len(self.heads):
            self._grow(len(self.ids) + len(ids))
        if len(ids) > AT_ONCE:
            first = len(self.ids)
            self.ids.extend(ids)
            self._enter(first)
            return
        own, heads, previous, last = self.ids, self.heads, self.previous, len(self.heads) - 1
        position, before = self.begin + len(own), own[-1] if own else BREAK
        for token in ids:
            place = (before * SPREAD + token * 31) & last
            own.append(token)
            previous.append(heads[place])
            heads[place] = position
            position, before = position + 1, token

    def trim(self, length: int) -> None:
        """Keep the first `length` ids."""
        last = len(self.heads) - 1
        while len(self.ids) > length:
            token = self.ids.pop()
            self.heads[((self.ids[-1] if self.ids else BREAK) * SPREAD + token * 31) & last] = self.previous.pop()

    def drop(self, count: int) -> None:
        """Forget the oldest `count` ids."""
        del self.ids[:count], self.previous[:count]
        self.begin += count

    def _grow(self, ids: int) -> None:
        self.heads = array("i", [-1]) * (1 << ids.bit_length())
        self.previous = array("i")
        self._enter(0)

    def _enter(self, first: int) -> None:
        """Enter all ids from the index `first` on."""
        ids = np.frombuffer(self.ids, np.int32)[max(0, first - 1) :].astype(np.int64)
        if not len(ids):
            return
        before = np.concatenate([[BREAK], ids[:-1]]) if first == 0 else ids[:-1]
        ids = ids if first == 0 else ids[1:]
        places = (before * SPREAD + ids * 31) & (len(self.heads) - 1)
        order = np.argsort(places, kind="stable")
        sorted_places, positions = places[order], order + (self.begin + first)
        opens = np.concatenate([[True], sorted_places[1:] != sorted_places[:-1]])  # the oldest of each hash
        heads = np.frombuffer(self.heads, np.int32)
        older = np.where(opens, heads[sorted_places], np.concatenate([[0], positions[:-1]]))
        previous = np.empty(len(ids), np.int32)
        previous[order] = older
        self.previous.frombytes(previous.tobytes())
        closes = np.concatenate([opens[1:], [True]])
        heads[sorted_places[closes]] = positions[closes]

    def places(self, tail: Sequence[int], own: bool) -> list[tuple[int, int]]:
        """(length, index of the id behind) of the newest places at which ids stand as they do at the end of `tail`: how many agree, at
        least two. `own`: `tail` is this text itself, whose end is no such place."""
        if len(tail) < 2:
            return []
        before, token, ids, previous = tail[-2], tail[-1], self.ids, self.previous
        begin, found = self.begin, list[tuple[int, int]]()
        at = self.heads[(before * SPREAD + token * 31) & (len(self.heads) - 1)] - begin
        if own and at == len(ids) - 1:
            at = previous[at] - begin
        most, end = min(LONGEST_MATCH, len(tail)), len(tail) - 1
        for _ in range(CANDIDATES):
            if at < 1:
                break
            if ids[at] == token and ids[at - 1] == before and at + 1 < len(ids):
                length, reach = 2, min(most, at + 1)
                while length < reach and ids[at - length] == tail[end - length]:
                    length += 1
                found.append((length, at + 1))
            at = previous[at] - begin
        return found
