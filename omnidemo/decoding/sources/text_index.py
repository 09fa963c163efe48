"""An index of a text of ids: where did its newest ids stand before?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from omnidemo.decoding.sources.compiled import call

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
        """Ids, previous positions and heads, how many ids there are, and `begin`."""
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
        self._size = call(enter, self.arrays, new)

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


# numba compiles these two as they stand here.


def enter(text: Any, new: Any) -> int:
    """Append ids to a text (`TextIndex.arrays`) that has room for them; returns the new size."""
    ids, previous, heads, size, begin = text
    before = ids[size - 1] if size > 0 else BREAK
    for token in new:
        place = (before * SPREAD + token * 31) & (len(heads) - 1)
        ids[size], previous[size], heads[place] = token, heads[place], begin + size
        size, before = size + 1, token
    return size


def find_places(text: Any, tail: Any, own: bool, lengths: Any, places: Any) -> int:
    """The newest places of a text where the ids agree with the end of `tail` on at least two ids: how many
    agree, and the index of the next id. `own`: whether `tail` is this text, whose end is no such place.
    Returns the number of places."""
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
            lengths[count], places[count] = length, at + 1
            count += 1
        at = previous[at] - begin
    return count


def _arrays(room: int) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]:
    """Ids, previous positions and heads."""
    return np.empty(room, np.int32), np.empty(room, np.int32), np.full(room, -1, np.int32)
