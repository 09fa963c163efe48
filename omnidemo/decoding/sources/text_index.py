"""An index of a text of ids: where did its newest ids stand before?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from omnidemo.decoding.sources import compiled

CANDIDATES = 16  # newest places with the same last two ids that are compared
LONGEST_MATCH = 32  # most ids that are compared
SPREAD = 0x9E3779B1  # of the hash of two ids
SMALLEST = 1024  # capacity of a new index, in ids
BREAK = -1  # separates two texts; equal to no id


class TextIndex:
    """Target ids in which any two neighbouring ids are found, the newest place first.

    A table of heads [2^n] has, by the hash of two ids, the newest position of the second one; `previous`
    [2^n] has the next older position of the same hash. A full index doubles all three arrays and enters all
    ids again. Positions count from the first id that ever was; those before `begin` have been dropped.
    """

    BYTES = 24  # most memory of an id

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forget everything."""
        self._ids, self._previous, self._heads = _arrays(SMALLEST)
        self._size = self.begin = 0  # how many ids there are; the position of the oldest

    def become(self, other: TextIndex) -> None:
        """Take over the contents of `other`, which is not used afterwards."""
        self.__dict__.update(other.__dict__)

    def __len__(self) -> int:
        return self._size

    @property
    def ids(self) -> memoryview:
        """All ids, as a view that is valid until the next change."""
        return self._ids.data[: self._size]

    @property
    def nbytes(self) -> int:
        return 12 * len(self._ids)

    @property
    def arrays(self) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], int, int]:
        """For compiled code: ids, previous positions and heads, how many ids there are, and `begin`."""
        return self._ids, self._previous, self._heads, self._size, self.begin

    def extend(self, ids: Sequence[int]) -> None:
        """Append ids."""
        size = self._size + len(ids)
        if size > len(self._ids):
            room, before = len(self._ids), np.array(self.ids)
            while room < size:
                room *= 2
            self._ids, self._previous, self._heads = _arrays(room)
            self._size = 0
            self._enter(before)
        self._enter(np.array(ids, np.int32))

    def _enter(self, new: NDArray[np.int32]) -> None:
        if compiled.functions is not None:
            self._size = compiled.functions.enter(self.arrays, new)
            return
        own, previous, heads = self._ids.data, self._previous.data, self._heads.data
        size, last = self._size, len(heads) - 1
        before = own[size - 1] if size else BREAK
        for token in new.tolist():
            place = (before * SPREAD + token * 31) & last
            own[size], previous[size], heads[place] = token, heads[place], self.begin + size
            size, before = size + 1, token
        self._size = size

    def trim(self, length: int) -> None:
        """Keep the first `length` ids."""
        if length >= self._size:
            return
        gone = np.arange(length, self._size)
        before = self._ids[gone - 1].astype(np.int64)
        before[gone == 0] = BREAK
        places = (before * SPREAD + self._ids[gone] * 31) & (len(self._heads) - 1)
        # of several dropped ids with one hash the oldest is written last: it has the position before all of
        # them
        self._heads[places[::-1]] = self._previous[gone[::-1]]
        self._size = length

    def drop(self, count: int) -> None:
        """Drop the oldest `count` ids."""
        kept = self._size - count
        for array in (self._ids, self._previous):
            array[:kept] = array[count : self._size].copy()
        self.begin, self._size = self.begin + count, kept

    def places(self, tail: Sequence[int], own: bool) -> list[tuple[int, int]]:
        """(length, index of the next id) of the newest places where the ids agree with the end of `tail` on
        at least two ids. `own`: `tail` is this text, whose end is no such place."""
        if len(tail) < 2:
            return []
        before, token, ids, previous = tail[-2], tail[-1], self.ids, self._previous.data
        begin, found, candidates = self.begin, list[tuple[int, int]](), CANDIDATES
        most, end = min(LONGEST_MATCH, len(tail)), len(tail) - 1
        at = self._heads.data[(before * SPREAD + token * 31) & (len(self._heads) - 1)] - begin
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


def _arrays(room: int) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]:
    """Ids, previous positions and heads."""
    return np.empty(room, np.int32), np.empty(room, np.int32), np.full(room, -1, np.int32)
