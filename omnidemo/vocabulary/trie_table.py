"""The trie of n-grams as a table, which compiled code walks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

FAR = 1 << 20  # a depth that no budget reaches
SIZES = (65_521, 262_139, 1_048_573, 4_194_301, 16_777_213)  # primes, so that remainders spread
PROBES = 32  # consecutive places in which an edge may lie
SPREAD = 786_433  # separates the edges of neighbouring tokens; its product with a key stays below 2⁶³
EMPTY = -(1 << 62)
TARGET, TOKEN, CHILD, SIBLING = range(4)  # of a node's kin


Ngram = tuple[Sequence[int], int]  # drafter tokens, and the target token that they spell


class TrieTable:
    """A hash table of edges (node, token) → node. Node 0 is the root; the edge in place i leads to node i +
    1.

    All are int64. `keys` [size + PROBES] are the edges. `info` [size + PROBES + 1, 3] has, for each node, the
    limit of a walk (in drafter tokens) at which it is an n-gram (0 or FAR), can be entered (the depth of the
    nearest n-gram at or below it), and can be left for a child (the depth of the nearest n-gram below it).
    Node 0 stays FAR in all three: a missing edge leads to it, and a walk ends there. `kin` [size +
    PROBES + 1, 4] has the target token that a node spells if it is an n-gram, the drafter
    token that leads to it, and the chain of its children: the first child, and each child's next sibling (0:
    none; the root's children have no chain).

    The tables keep their addresses until `fill`.
    """

    def __init__(self, tokens: int, sizes: Sequence[int] = SIZES) -> None:
        self.tokens, self.sizes = tokens, sizes
        self._make(sizes[0])

    def _make(self, size: int) -> None:
        self.size = size
        self.keys = np.full(size + PROBES, EMPTY, np.int64)
        self.info = np.full((size + PROBES + 1, 3), FAR, np.int64)
        self.kin = np.zeros((size + PROBES + 1, 4), np.int64)

    def child(self, node: int, token: int) -> int:
        """The child of a node by a token, 0 for none."""
        place, found = self._place(node, token)
        return place + 1 if found else 0

    def children(self, node: int, limit: int, complete: bool) -> list[int]:
        """The tokens that lead from a node (not the root) to children within the limit: n-grams (`complete`),
        or nodes that are no n-gram but can become one."""
        return [
            int(self.kin[child, TOKEN])
            for child in self._within(node, limit)
            if (self.spells(child) >= 0) == complete
        ]

    def completed(self, node: int, limit: int) -> dict[int, int]:
        """Drafter token → target token, for the tokens that complete an n-gram within the limit after a node
        (not the root)."""
        children = [child for child in self._within(node, limit) if self.spells(child) >= 0]
        return {int(self.kin[child, TOKEN]): self.spells(child) for child in children}

    def _within(self, node: int, limit: int) -> Iterator[int]:
        """The children of a node that are or can become n-grams within the limit."""
        child = int(self.kin[node, CHILD])
        while child:
            if self.nearest(child) <= limit:
                yield child
            child = int(self.kin[child, SIBLING])

    def spells(self, node: int) -> int:
        """The target token that the path to a node spells, −1 if it is no n-gram."""
        return int(self.kin[node, TARGET]) if self.info[node, 0] == 0 else -1

    def nearest(self, node: int) -> int:
        """The depth of the nearest n-gram at or below a node; FAR for none."""
        return int(self.info[node, 1])

    def can_continue(self, node: int, limit: int) -> bool:
        """Whether a walk draws on from a node: a child can become an n-gram within the limit. Depends on trie
        and budget alone."""
        return bool(self.info[node, 2] <= limit)

    def fill(self, ngrams: Iterable[Ngram]) -> None:
        """Hold exactly these n-grams. The tables move if they have to grow. ValueError where they cannot
        grow."""
        ngrams = list(ngrams)
        self.keys.fill(EMPTY)
        self.info.fill(FAR)
        self.kin.fill(0)
        while not all(map(self.insert, ngrams)):
            self._make(self._next_size())

    def insert(self, ngram: Ngram) -> bool:
        """Add an n-gram. False where the table is full; then `fill` it."""
        path, target = ngram
        length, info, parent = len(path), self.info, 0
        for token in path:
            place, found = self._place(parent, token)
            if place < 0:
                return False
            node = place + 1
            if not found:
                self.keys[place] = parent * self.tokens + token
                if parent:
                    self.kin[node, TOKEN] = token
                    self.kin[node, SIBLING] = self.kin[parent, CHILD]
                    self.kin[parent, CHILD] = node
            if length < info[node, 1]:
                info[node, 1] = length
            if parent and length < info[parent, 2]:
                info[parent, 2] = length
            parent = node
        if info[parent, 0] == FAR:
            info[parent, 0] = 0
            self.kin[parent, TARGET] = target
        return True

    def _next_size(self) -> int:
        larger = [size for size in self.sizes if size > self.size]
        if not larger:
            raise ValueError(
                f"the n-gram cache is too large for a table of {self.size:,} edges; give it a smaller"
                " cache_size"
            )
        return larger[0]

    def _place(self, parent: int, token: int) -> tuple[int, bool]:
        """(the place of an edge, whether the edge is there); −1 where there is no room for it."""
        key = parent * self.tokens + token
        first = key * SPREAD % self.size
        for place in range(first, first + PROBES):
            there = self.keys[place]
            if there in (key, EMPTY):
                return place, bool(there == key)
        return -1, False
