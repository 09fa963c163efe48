"""An n-gram language model of earlier answers: which ids followed the newest 1 to 4 ids."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from omnidemo.decoding.sources.compiled import call
from omnidemo.decoding.sources.ngram_table import FIRST, KEPT, LONGEST, PRIME, SECOND, WAYS, count, follow

BYTES = 16 + 8 * KEPT  # of a context: key, weight and age; next ids and their counts
SMALLEST = 8  # bits of the number of a bucket in a first table


class Continuations:
    """Contexts of 1 to LONGEST target ids. For each: the weight of its observations, and the KEPT next ids
    with the greatest counts.

    A table [buckets, WAYS] with open addressing inside a bucket; the bucket's number is the first bits of the
    context's hash. A full bucket drops the context that was met the longest time ago. Entries move only when
    the table grows, up to `most` bytes.
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

    @classmethod
    def of(
        cls, contexts: NDArray[Any], weights: NDArray[Any], ids: NDArray[Any], counts: NDArray[Any]
    ) -> Continuations:
        """The table of contexts [n, LONGEST], the newest id last and −1 before the first, with the weight,
        the next ids [n, KEPT] and the counts of each. In a full bucket the greatest weights stay."""
        made = cls(len(weights) * 4 * BYTES)
        one, two = np.zeros((2, len(weights)), np.int64)
        made._make_room(len(weights))
        for token in contexts.T[::-1].astype(np.int64):
            there = token >= 0
            one = np.where(there, (one + token + 1) * FIRST % PRIME, one)
            two = np.where(there, (two + token + 1) * SECOND % PRIME, two)
        bucket = one >> (31 - made.bits)
        order = np.lexsort((-weights, bucket))
        sorted_ = bucket[order]
        place = np.arange(len(order)) - np.searchsorted(sorted_, sorted_)
        order, at = order[place < WAYS], (sorted_ * WAYS + place)[place < WAYS]
        tables = made.arrays
        tables[0][at], tables[1][at], tables[2][at] = (one << 31 | two)[order], weights[order], 1
        tables[3].reshape(-1, KEPT)[at], tables[4].reshape(-1, KEPT)[at] = ids[order], counts[order]
        made.contexts = len(at)
        return made

    def become(self, other: Continuations) -> None:
        """Move the contents of `other` here."""
        self.__dict__.update(other.__dict__)

    @property
    def room(self) -> int:
        """Ids of text whose contexts fit at least."""
        return (WAYS << self.most_bits) // (2 * LONGEST)

    @property
    def nbytes(self) -> int:
        """Bytes of the tables; 0 for an empty memory."""
        return sum(array.nbytes for array in self.arrays) if self.contexts else 0

    @property
    def table(self) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any], int]:
        """For compiled code: keys, weights, ids and counts, and the bits of a bucket's number."""
        keys, weights, _, kept, counts = self.arrays
        return keys, weights, kept, counts, self.bits

    def follow(self, ids: Sequence[int], most: int) -> list[tuple[int, float, int]]:
        """The ids that follow `ids` most often, at most `most`: for each the id, its share, and its kind. The
        kind is 3 · (length of the longest known context − 1), plus 0 where that context was met once, 1 for
        twice, 2 for more often. Shorter contexts share what the longer ones leave, which is less the more
        often the longer ones were met."""
        if not self.contexts or most < 1:
            return []
        found = np.full(LONGEST + most, -1, np.int64)
        tail = ids[-LONGEST:]
        found[LONGEST - len(tail) : LONGEST] = tail
        shares, kinds = np.empty(most), np.empty(most, np.int64)
        made = call(follow, *self.table, found, shares, kinds)
        return [
            *zip(
                found[LONGEST : LONGEST + made].tolist(), shares[:made].tolist(), kinds[:made].tolist(),
                strict=True,
            )
        ]  # fmt: skip

    def learn(self, ids: Sequence[int], first: int = 0) -> None:
        """Learn from a text, of which the ids from place `first` on are new."""
        self._make_room(LONGEST * (len(ids) - first))
        text = np.array(ids, np.int64)
        self.contexts += call(count, *self.arrays, self.bits, text, first, self.clock)
        self.clock += len(ids) - first

    def learn_newest(self, texts: Sequence[Sequence[int]]) -> None:
        """Learn from texts, the oldest first; from the newest ones as far as there is room."""
        first, left = len(texts), self.room
        while first and (left := left - len(texts[first - 1])) >= 0:
            first -= 1
        for text in texts[first:]:
            self.learn(text)

    def _make_room(self, more: int) -> None:
        """Double the table until `more` contexts would fill half of it, as far as it may grow."""
        while self.bits < self.most_bits and 2 * (self.contexts + more) > WAYS << self.bits:
            keys, *rest = (array.reshape(1 << self.bits, WAYS, -1).repeat(2, axis=0) for array in self.arrays)
            bit = keys >> (61 - self.bits) & 1  # the next one of the number of a bucket
            stays = bit[..., 0] == (np.arange(len(keys)) & 1)[:, None]
            moved = ((array * stays[..., None]).astype(array.dtype) for array in (keys, *rest))
            self.arrays, self.bits = [array.reshape(-1) for array in moved], self.bits + 1
