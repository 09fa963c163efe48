"""The trie of n-grams as a table on a device, so that walks need not ask the host at every step."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache

import numpy as np
import torch
from torch import Tensor

FAR = 1 << 20  # a depth that no budget reaches
NOWHERE = -1  # a node that has no children: whoever is there is not in the trie
SIZES = (65_521, 262_139, 1_048_573, 4_194_301, 16_777_213)  # primes, so that remainders spread
PROBES = 32  # places in which an edge may lie, one after the other; fewer would do at a quarter full
SPREAD = 786_433  # moves the edges of neighbouring tokens apart; its product with a key stays below 2⁶³
EMPTY = -(1 << 62)
FEW = 16  # nodes that are written sooner one by one, where that can be done
TARGET, TOKEN, CHILD, SIBLING = range(4)  # of a node's kin


Ngram = tuple[Sequence[int], int]  # drafter tokens, and the target token that they spell


class TrieTable:
    """A hash table of edges (node, token) → node. Node 0 is the root; the edge in place i leads to node i + 1.

    keys [size + PROBES] int64 are the edges. info [size + PROBES + 1, 3] int64 says of each node at which limit of a walk (in drafter
    tokens) it is an n-gram (0 or FAR), can be followed (the depth of the nearest n-gram at or below), and can be left for a child (the
    same below it). Node 0 can do nothing there, since `find` also gives 0 for what is not found.
    kin [size + PROBES + 1, 4] int64, on the host alone, says which target token a node spells, if it is an n-gram, by which drafter token
    it is reached, and chains a node's children: its first one, and the next one after each (0: none; the root's are not chained).
    Insertions are uploaded with `upload`, which costs as much as was inserted; the tables keep their addresses until `fill`.
    """

    def __init__(self, tokens: int, device: torch.device | str = "cpu", sizes: Sequence[int] = SIZES) -> None:
        self.tokens, self.device, self.sizes = tokens, torch.device(device), sizes
        self._offsets = torch.arange(PROBES, device=device)
        self._make(sizes[0])

    def _make(self, size: int) -> None:
        self.size = size
        self._forget()
        self.keys = torch.full((size + PROBES,), EMPTY, dtype=torch.int64, device=self.device)
        self.info = torch.full((size + PROBES + 1, 3), FAR, dtype=torch.int64, device=self.device)
        self.kin = np.zeros((size + PROBES + 1 if self.device.type == "cpu" else 0, 4), np.int64)
        self._host = (self.keys.numpy(), self.info.numpy()) if self.device.type == "cpu" else None

    def _forget(self) -> None:
        self._keys = [EMPTY] * (self.size + PROBES)
        self._info = [FAR] * (3 * (self.size + PROBES + 1))
        self._changed: set[int] = set()  # nodes

    def find(self, nodes: Tensor, tokens: Tensor) -> Tensor:
        """The children [R] of nodes [R] by tokens [R], 0 where there is none. Shapes and addresses are fixed; nothing waits."""
        wanted = torch.add(tokens, nodes, alpha=self.tokens)
        places = (wanted * SPREAD).remainder_(self.size)[:, None] + self._offsets
        hits = self.keys[places] == wanted[:, None]
        return places.add_(1).mul_(hits).amax(-1)

    @torch.inference_mode()
    def fill(self, ngrams: Iterable[Ngram]) -> None:
        """Hold these n-grams and no others. The tables move where they have to grow; ValueError where they cannot."""
        ngrams = list(ngrams)
        self._forget()
        self.kin[:] = 0
        while not all(map(self.insert, ngrams)):
            self._make(self._next_size())
        self.keys.fill_(EMPTY)
        self.info.fill_(FAR)
        self.upload()

    def insert(self, ngram: Ngram) -> bool:
        """Add an n-gram, on the host until `upload`. False where the table is full; then `fill` it."""
        path, target = ngram
        parent = 0
        for depth, token in enumerate(path, 1):
            node = self._child(parent, token)
            if node == 0:
                return False
            if parent and len(self.kin) and self._info[3 * node + 1] == FAR:  # it is new
                self.kin[node, [TOKEN, SIBLING]] = token, self.kin[parent, CHILD]
                self.kin[parent, CHILD] = node
            self._info[3 * node + 1] = min(self._info[3 * node + 1], len(path))
            if parent:
                self._info[3 * parent + 2] = min(self._info[3 * parent + 2], len(path))
            if depth == len(path) and self._info[3 * node] == FAR:
                self._info[3 * node] = 0
                if len(self.kin):
                    self.kin[node, TARGET] = target
            self._changed.add(node)
            parent = node
        return True

    @torch.inference_mode()
    def upload(self) -> None:
        """Bring what was inserted to the device."""
        if self._changed:
            nodes = list(self._changed)
            self._changed.clear()
            if self._host is not None and len(nodes) <= FEW:
                for node in nodes:
                    self._host[0][node - 1] = self._keys[node - 1]
                    self._host[1][node] = self._info[3 * node : 3 * node + 3]
                return
            keys = torch.tensor([self._keys[node - 1] for node in nodes]).to(self.device, non_blocking=True)
            info = torch.tensor([self._info[3 * node : 3 * node + 3] for node in nodes]).to(self.device, non_blocking=True)
            there = torch.tensor(nodes).to(self.device, non_blocking=True)
            self.keys.index_copy_(0, there - 1, keys)
            self.info.index_copy_(0, there, info)

    def _next_size(self) -> int:
        larger = [size for size in self.sizes if size > self.size]
        if not larger:
            raise ValueError(f"the n-gram cache is too large for a table of {self.size:,} edges; give it a smaller cache_size")
        return larger[0]

    def _child(self, parent: int, token: int) -> int:
        """The node at the end of an edge, which is made where there is none; 0 where it has no room."""
        key = parent * self.tokens + token
        first = key * SPREAD % self.size
        for place in range(first, first + PROBES):
            if self._keys[place] == key:
                return place + 1
            if self._keys[place] == EMPTY:
                self._keys[place] = key
                return place + 1
        return 0


@cache
def no_ngrams(tokens: int, device: torch.device) -> TrieTable:
    """The trie of methods that know no n-grams; never written to."""
    return TrieTable(tokens, device, (1,))
