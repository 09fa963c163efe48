"""The n-gram cache of a (drafter, target) pair: runs of drafter tokens that spell one target token (OmniDraft 3.1)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from secrets import token_hex
from typing import Literal

import torch
from torch import Tensor

from omnidemo.records import NgramEntry
from omnidemo.vocab.trie_table import FAR, SIZES, TrieTable


class Node:
    """A trie node. `target` is the target id that the path to here spells, or −1; `nearest_ngram` the depth of the nearest
    complete n-gram at or below this node, `nearest_below` of the nearest one below it (FAR: none)."""

    __slots__ = ("children", "depth", "nearest_below", "nearest_ngram", "target")

    def __init__(self, depth: int) -> None:
        self.children: dict[int, Node] = {}
        self.depth = depth
        self.target = -1
        self.nearest_ngram = self.nearest_below = FAR


class NgramCache:
    """A trie of n-grams (n ≥ 2) with counters and a limit. One n-gram per target id, one target id per path.

    Lookup and insertion cost O(n), whatever the size; only an eviction scans (a tenth of the cache leaves at once, so its
    cost per insertion stays constant). `size` 0 refuses every n-gram.
    """

    def __init__(
        self,
        drafter_tokens: int,
        size: int = 20_000,
        policy: Literal["lfu", "lru"] = "lfu",
        device: torch.device | str = "cpu",
        sizes: Sequence[int] = SIZES,
    ) -> None:
        """sizes: those that the table on the device may take, primes."""
        self.root = Node(0)
        self.size, self.policy = size, policy
        self.clock = 0  # requests of the pair so far
        self.version = 0  # changes with every change of the trie
        # nearest[d]: fewest drafter tokens of an n-gram that begins with d; the mask of first draws compares it to the budget.
        self.nearest: Tensor = torch.full((drafter_tokens,), FAR, dtype=torch.int32, device=device)
        self._begins: tuple[int, dict[int, Tensor]] = (0, {})  # version, and the masks of `begins` by length
        self.epoch = token_hex(8)  # another one after anything was removed: until then entries have numbers, in the order of insertion
        self._sizes = sizes
        self._mirror: TrieTable | None = None  # made when it is first asked for
        self._unmirrored: list[tuple[tuple[int, ...], int]] | None = None  # n-grams that it lacks; None: it has to be filled anew
        self._entries: dict[int, NgramEntry] = {}  # by target id
        self._changed: set[int] = set()
        self._removed: set[int] = set()

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, target_id: int) -> bool:
        return target_id in self._entries

    def __iter__(self) -> Iterator[NgramEntry]:
        return map(replace, list(self._entries.values()))

    @property
    def target_ids(self) -> list[int]:
        """Of all n-grams."""
        return list(self._entries)

    def since(self, number: int) -> tuple[tuple[int, tuple[int, ...]], ...]:
        """The n-grams with this number (from 0) and later ones, as (target id, drafter ids)."""
        return tuple((entry.target_id, entry.drafter_ids) for entry in islice(self._entries.values(), number, None))

    @property
    def nbytes(self) -> int:
        """Bytes of the entries' payload: four per drafter token, twenty for the target id and the counters."""
        return sum(4 * len(entry.drafter_ids) + 20 for entry in list(self._entries.values()))

    def path(self, target_id: int) -> tuple[int, ...] | None:
        entry = self._entries.get(target_id)
        return entry.drafter_ids if entry else None

    def insert(self, target_id: int, drafter_ids: Sequence[int]) -> bool:
        """Add an n-gram; False when it is there already, too short, or its path spells another target id."""
        return self._put(NgramEntry(target_id, tuple(drafter_ids), 0, 0, self.clock, self.clock), mark=True)

    def load(self, entries: Iterable[NgramEntry]) -> None:
        """Take entries with their counters from the store."""
        for entry in entries:
            self._put(replace(entry), mark=False)
            self.clock = max(self.clock, entry.last_used)

    def longest(self, ids: Sequence[int], start: int = 0) -> tuple[int, int] | None:
        """(target id, n) of the longest n-gram that `ids` holds from `start` on, or None."""
        node, found = self.root, None
        for position in range(start, len(ids)):
            child = node.children.get(ids[position])
            if child is None:
                break
            node = child
            if node.target >= 0:
                found = (node.target, node.depth)
        return found

    def begins(self, limit: int) -> Tensor:
        """[D] bool: drafter ids with which an n-gram of at most `limit` tokens begins. Not to be written to."""
        if self._begins[0] != self.version:
            self._begins = (self.version, {})
        masks = self._begins[1]
        if limit not in masks:
            masks[limit] = self.nearest <= limit
        return masks[limit]

    def on_device(self) -> TrieTable:
        """The trie as a table on the cache's device, up to date. Costs what was inserted since the last call; all of it where something
        was removed or the table is full."""
        if self._mirror is None:
            self._mirror = TrieTable(len(self.nearest), self.nearest.device, self._sizes)
        new = self._unmirrored
        if new is not None and all(map(self._mirror.insert, new)):
            self._mirror.upload()
        else:
            self._mirror.fill((entry.drafter_ids, entry.target_id) for entry in self._entries.values())
        self._unmirrored = []
        return self._mirror

    def touch(self, target_id: int, accepted: bool) -> None:
        """Count a proposal of the n-gram that the target judged (`hits`), and whether it was accepted (`accepts`)."""
        entry = self._entries.get(target_id)
        if entry is not None:
            entry.hits += 1
            entry.accepts += accepted
            entry.last_used = self.clock
            self._changed.add(target_id)

    def clear(self) -> None:
        self.root = Node(0)
        self.nearest.fill_(FAR)
        self._removed |= set(self._entries)
        self._entries.clear()
        self._changed.clear()
        self._unmirrored = None
        self.version += 1
        self.epoch = token_hex(8)

    def forget_saved(self) -> None:
        """Count every entry as changed: what was written of them is gone."""
        self._changed = set(self._entries)

    def take_changes(self) -> tuple[list[NgramEntry], list[int]]:
        """Entries that changed and target ids that left since the last call, for the store."""
        changed = [replace(self._entries[target_id]) for target_id in self._changed if target_id in self._entries]
        removed = [target_id for target_id in self._removed if target_id not in self._entries]
        self._changed, self._removed = set(), set()
        return changed, removed

    def _put(self, new: NgramEntry, mark: bool) -> bool:
        ids = new.drafter_ids
        if len(ids) < 2 or self.size == 0 or new.target_id in self._entries:
            return False
        node = self.root
        for drafter_id in ids:
            child = node.children.get(drafter_id)
            node = child if child is not None else node.children.setdefault(drafter_id, Node(node.depth + 1))
        if node.target >= 0:
            return False
        if len(self._entries) >= self.size:
            # Evicting may prune the nodes just walked, so it comes first and the walk is repeated.
            self._evict()
            return self._put(new, mark)
        node.target = new.target_id
        node = self.root
        for drafter_id in ids:
            node.nearest_below = min(node.nearest_below, len(ids))
            node = node.children[drafter_id]
            node.nearest_ngram = min(node.nearest_ngram, len(ids))
        self.nearest[ids[0]] = self.root.children[ids[0]].nearest_ngram  # not read from the tensor: on a GPU that waits
        self._entries[new.target_id] = new
        if self._unmirrored is not None:
            self._unmirrored.append((ids, new.target_id))
        self.version += 1
        if mark:
            self._changed.add(new.target_id)
        return True

    def _evict(self) -> None:
        """Let a tenth of the entries (at least one) go: "lfu" those with the fewest `hits`, "lru" those used longest ago. Equals: the other
        of the two decides, then the earlier inserted goes. This is the only place that evicts."""

        def worth(entry: NgramEntry) -> tuple[int, int, int]:
            use = (entry.hits, entry.last_used) if self.policy == "lfu" else (entry.last_used, entry.hits)
            return (*use, entry.inserted_at)

        for entry in sorted(self._entries.values(), key=worth)[: max(1, self.size // 10)]:
            self._remove(entry.target_id)

    def _remove(self, target_id: int) -> None:
        ids = self._entries.pop(target_id).drafter_ids
        nodes = [self.root]
        for drafter_id in ids:
            nodes.append(nodes[-1].children[drafter_id])
        nodes[-1].target = -1
        for depth in range(len(ids), 0, -1):
            node, parent = nodes[depth], nodes[depth - 1]
            node.nearest_below = min((child.nearest_ngram for child in node.children.values()), default=FAR)
            node.nearest_ngram = node.depth if node.target >= 0 else node.nearest_below
            if not node.children and node.target < 0:
                del parent.children[ids[depth - 1]]
        first = self.root.children.get(ids[0])
        self.nearest[ids[0]] = first.nearest_ngram if first is not None else FAR
        self._removed.add(target_id)
        self._unmirrored = None
        self.version += 1
        self.epoch = token_hex(8)
