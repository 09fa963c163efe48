"""What followed short contexts in earlier answers: a memory that knows a phrase again wherever it stands."""

from __future__ import annotations

import math
from collections.abc import Sequence
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from omnidemo.decoding.sources.ngram_table import KEPT, LONGEST, WAYS, count, follow

BYTES = 16 + 8 * KEPT  # of a context: its key, weight and age; the ids behind it and their counts
SMALLEST = 8  # bits of the number of a bucket in a first table
_compiled: Any = None  # `follow` and `count` for arrays; see `backends/kernels/entry_points.py`


def use_compiled(compiled: ModuleType) -> None:
    """Use these compiled functions from now on; they take a twentieth of the time."""
    global _compiled
    _compiled = compiled


class Continuations:
    """Contexts of 1 to LONGEST target ids; of each the weight of what was seen behind it, and the KEPT ids
    with the greatest counts.

    A table [buckets, WAYS] with open addressing inside a bucket, whose number is in the first bits of a
    context's hash. Where a bucket is full, the context goes that was met the longest time ago. So nothing
    ever moves, but where the table grows, up to `most` bytes.
    """

    def __init__(self, most: int) -> None:
        self.most_bits = max(SMALLEST, int(math.log2(max(1, most // (BYTES * WAYS)))))
        self.clear()

    def clear(self) -> None:
        """Forget everything."""
        self.bits, self.contexts, self.clock = SMALLEST, 0, 0
        size = WAYS << SMALLEST
        # keys, weights, ages [contexts]; ids and counts [contexts · KEPT]
        self.arrays: list[NDArray[Any]] = [np.zeros(size, kind) for kind in (np.int64, np.float32, np.int32)]
        self.arrays += [np.zeros(size * KEPT, kind) for kind in (np.int32, np.float32)]

    def become(self, other: Continuations) -> None:
        """Hold what `other` does, which is not used any more."""
        self.__dict__.update(other.__dict__)

    @property
    def room(self) -> int:
        """Ids of text, at least, whose contexts it may hold."""
        return (WAYS << self.most_bits) // (2 * LONGEST)

    @property
    def nbytes(self) -> int:
        """Of the tables; 0 where nothing is known."""
        return sum(array.nbytes for array in self.arrays) if self.contexts else 0

    @property
    def table(self) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any], int]:
        """For compiled code: keys, weights, ids and counts, and the bits of the number of a bucket."""
        keys, weights, _, kept, counts = self.arrays
        return keys, weights, kept, counts, self.bits

    def follow(self, ids: Sequence[int], most: int) -> list[tuple[int, float, int]]:
        """What follows `ids` most often, at most so many: of each the id, its share, and its kind: three
        times the length of the longest context that is known there, less three, plus 0 where that was met
        once, 1 for twice, 2 for more often. What shorter contexts say counts as much as the longer ones leave
        of it, which is the less the more often these were met."""
        if not self.contexts or most < 1:
            return []
        found = np.full(LONGEST + most, -1, np.int64)
        tail = ids[-LONGEST:]
        found[LONGEST - len(tail) : LONGEST] = tail
        shares, kinds = np.empty(most), np.empty(most, np.int64)
        made = _call(follow, *self.table, found, shares, kinds)
        return [
            *zip(
                found[LONGEST : LONGEST + made].tolist(), shares[:made].tolist(), kinds[:made].tolist(),
                strict=True,
            )
        ]  # fmt: skip

    def learn(self, ids: Sequence[int], first: int = 0) -> None:
        """Take a text, of which the ids from place `first` on are new."""
        self._make_room(LONGEST * (len(ids) - first))
        text = np.array(ids, np.int64)
        self.contexts += _call(count, *self.arrays, self.bits, text, first, self.clock)
        self.clock += len(ids) - first

    def learn_newest(self, texts: Sequence[Sequence[int]]) -> None:
        """Take texts, the oldest first; the newest of them, as far as there is room."""
        first, left = len(texts), self.room
        while first and (left := left - len(texts[first - 1])) >= 0:
            first -= 1
        for text in texts[first:]:
            self.learn(text)

    def _make_room(self, more: int) -> None:
        """Double the table until so many contexts more would fill half of it, as far as it may grow."""
        while self.bits < self.most_bits and 2 * (self.contexts + more) > WAYS << self.bits:
            keys, *rest = (array.reshape(1 << self.bits, WAYS, -1).repeat(2, axis=0) for array in self.arrays)
            bit = keys >> (61 - self.bits) & 1  # the next one of the number of a bucket
            stays = bit[..., 0] == (np.arange(len(keys)) & 1)[:, None]
            moved = ((array * stays[..., None]).astype(array.dtype) for array in (keys, *rest))
            self.arrays, self.bits = [array.reshape(-1) for array in moved], self.bits + 1


def _call(function: Any, *given: Any) -> int:
    """Call the function as it is compiled; else with views of the arrays, whose numbers are read in a third
    of the time."""
    if _compiled is not None:
        return int(getattr(_compiled, function.__name__)(*given))
    return int(function(*(one.data if isinstance(one, np.ndarray) else one for one in given)))
