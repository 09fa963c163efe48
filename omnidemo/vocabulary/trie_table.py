"""The trie of n-grams as a table on a device, so that walks need not ask the host at every step."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import torch
from torch import Tensor

FAR = 1 << 20  # a depth that no budget reaches
NOWHERE = -1  # a node that has no children: whoever is there is not in the trie
SIZES = (65_521, 262_139, 1_048_573, 4_194_301, 16_777_213)  # primes, so that remainders spread
PROBES = 32  # places in which an edge may lie, one after the other; fewer would do at a quarter full
SPREAD = 786_433  # moves the edges of neighbouring tokens apart; its product with a key stays below 2⁶³
EMPTY = -(1 << 62)
TARGET, TOKEN, CHILD, SIBLING = range(4)  # of a node's kin


Ngram = tuple[Sequence[int], int]  # drafter tokens, and the target token that they spell


class TrieTable:
    """A hash table of edges (node, token) → node. Node 0 is the root; the edge in place i leads to node i +
    1.

    keys [size + PROBES] int64 are the edges. info [size + PROBES + 1, 3] int64 says of each node at which
    limit of a walk (in drafter tokens) it is an n-gram (0 or FAR), can be followed (the depth of the nearest
    n-gram at or below), and can be left for a child (the depth of the nearest one below). Node 0 stays FAR in
    all three: `find` gives 0 for what is not found, and a walk ends there. kin [size + PROBES + 1, 4] int64,
    on the host alone, says which target token a node spells, if it is an n-gram, by which drafter token it is
    reached, and chains a node's children: its first one, and the next one after each (0: none; the root's are
    not chained). Keys and info are on the host too, where walks and insertions work on them; on a CPU these
    are the same memory. `upload` brings insertions to another device and costs as much as was inserted; the
    tables keep their addresses until `fill`.
    """

    def __init__(self, tokens: int, device: torch.device | str = "cpu", sizes: Sequence[int] = SIZES) -> None:
        self.tokens, self.device, self.sizes = tokens, torch.device(device), sizes
        self._offsets = torch.arange(PROBES, device=device)
        self._make(sizes[0])

    def _make(self, size: int) -> None:
        self.size = size
        self._keys = np.full(size + PROBES, EMPTY, np.int64)
        self._info = np.full((size + PROBES + 1, 3), FAR, np.int64)
        self.kin = np.zeros((size + PROBES + 1, 4), np.int64)
        self._changed: set[int] = set()  # nodes that the device lacks
        self.keys = torch.from_numpy(self._keys).to(self.device)
        self.info = torch.from_numpy(self._info).to(self.device)

    def find(self, nodes: Tensor, tokens: Tensor) -> Tensor:
        """The children [R] of nodes [R] by tokens [R], 0 where there is none. Shapes and addresses are fixed;
        nothing waits."""
        wanted = torch.add(tokens, nodes, alpha=self.tokens)
        places = (wanted * SPREAD).remainder_(self.size)[:, None] + self._offsets
        hits = self.keys[places] == wanted[:, None]
        return places.add_(1).mul_(hits).amax(-1)

    def child(self, node: int, token: int) -> int:
        """The child of a node by a token, 0 where there is none."""
        place, found = self._place(node, token)
        return place + 1 if found else 0

    def children(self, node: int, limit: int, complete: bool) -> list[int]:
        """The tokens that lead to those children of a node (not the root) that are n-grams and fit into the
        limit; or else (`complete` false) to those that are none but can still become some that fit."""
        found, child = [], int(self.kin[node, CHILD])
        while child:
            if (self.spells(child) >= 0) == complete and self.nearest(child) <= limit:
                found.append(int(self.kin[child, TOKEN]))
            child = int(self.kin[child, SIBLING])
        return found

    def completed(self, node: int, limit: int) -> dict[int, int]:
        """The tokens that complete an n-gram within the limit after a node (not the root), and the target
        token that each spells then."""
        found, child = {}, int(self.kin[node, CHILD])
        while child:
            if self.spells(child) >= 0 and self.nearest(child) <= limit:
                found[int(self.kin[child, TOKEN])] = self.spells(child)
            child = int(self.kin[child, SIBLING])
        return found

    def spells(self, node: int) -> int:
        """The target token that the path to a node spells, −1 where it is no n-gram."""
        return int(self.kin[node, TARGET]) if self._info[node, 0] == 0 else -1

    def nearest(self, node: int) -> int:
        """The depth of the nearest n-gram at or below a node; FAR for none."""
        return int(self._info[node, 1])

    def can_continue(self, node: int, limit: int) -> bool:
        """Whether a walk draws on from a node: some child can still become an n-gram within the limit.
        Depends on trie and budget alone."""
        return bool(self._info[node, 2] <= limit)

    @torch.inference_mode()
    def fill(self, ngrams: Iterable[Ngram]) -> None:
        """Hold these n-grams and no others. The tables move where they have to grow; ValueError where they
        cannot."""
        ngrams = list(ngrams)
        self._keys.fill(EMPTY)
        self._info.fill(FAR)
        self.kin.fill(0)
        while not all(map(self.insert, ngrams)):
            self._make(self._next_size())
        self.keys.copy_(torch.from_numpy(self._keys))
        self.info.copy_(torch.from_numpy(self._info))
        self._changed.clear()

    def insert(self, ngram: Ngram) -> bool:
        """Add an n-gram, on the host until `upload`. False where the table is full; then `fill` it."""
        path, target = ngram
        length, info, parent = len(path), self._info, 0
        for token in path:
            place, found = self._place(parent, token)
            if place < 0:
                return False
            node = place + 1
            if not found:
                self._keys[place] = parent * self.tokens + token
                if parent:
                    self.kin[node, TOKEN] = token
                    self.kin[node, SIBLING] = self.kin[parent, CHILD]
                    self.kin[parent, CHILD] = node
            if length < info[node, 1]:
                info[node, 1] = length
            if parent and length < info[parent, 2]:
                info[parent, 2] = length
            self._changed.add(node)
            parent = node
        if info[parent, 0] == FAR:
            info[parent, 0] = 0
            self.kin[parent, TARGET] = target
        return True

    @torch.inference_mode()
    def upload(self) -> None:
        """Bring what was inserted to the device."""
        if self._changed and self.device.type != "cpu":
            nodes = np.array(list(self._changed))
            keys, info, there = (
                torch.from_numpy(each).to(self.device, non_blocking=True)
                for each in (self._keys[nodes - 1], self._info[nodes], nodes)
            )
            self.keys.index_copy_(0, there - 1, keys)
            self.info.index_copy_(0, there, info)
        self._changed.clear()

    def _next_size(self) -> int:
        larger = [size for size in self.sizes if size > self.size]
        if not larger:
            raise ValueError(
                f"the n-gram cache is too large for a table of {self.size:,} edges; give it a smaller"
                " cache_size"
            )
        return larger[0]

    def _place(self, parent: int, token: int) -> tuple[int, bool]:
        """(where an edge lies or may be put, whether it lies there); −1 where there is no room for it."""
        key = parent * self.tokens + token
        first = key * SPREAD % self.size
        for place in range(first, first + PROBES):
            there = self._keys[place]
            if there in (key, EMPTY):
                return place, bool(there == key)
        return -1, False
