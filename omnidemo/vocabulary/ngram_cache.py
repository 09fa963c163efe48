"""OmniDraft's n-gram cache (3.1): runs of drafter tokens that spell one target token of a pair."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from hashlib import blake2b
from itertools import islice
from secrets import token_hex
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from omnidemo.core.records import NgramEntry
from omnidemo.vocabulary.trie_table import FAR, SIZES, TrieTable


class NgramCache:
    """A trie of n-grams (n ≥ 2) with counters and a limit. One n-gram per target id, one target id per path.

    Lookup and insertion are O(n). Only an eviction or a larger table visits all entries. An eviction removes
    a tenth of the cache, so the cost per insertion is constant on average. `size` 0 refuses every n-gram.
    """

    def __init__(
        self,
        drafter_tokens: int,
        size: int = 20_000,
        policy: Literal["lfu", "lru"] = "lfu",
        sizes: Sequence[int] = SIZES,
    ) -> None:
        """sizes: possible sizes of the trie's table, primes."""
        self.trie = TrieTable(drafter_tokens, sizes)
        self.size, self.policy = size, policy
        self.clock = 0  # requests of the pair so far
        # nearest[d]: fewest drafter tokens of an n-gram that begins with d
        self.nearest = np.full(drafter_tokens, FAR, np.int32)
        # values computed from the trie; every change empties it
        self.derived: dict[Any, Any] = {}
        # changes with every removal; until then the numbers of `since` stay valid
        self.epoch = token_hex(8)
        self._sum = 0  # of the hashes of all n-grams
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
        """The target ids of all n-grams."""
        return list(self._entries)

    def since(self, number: int) -> tuple[tuple[int, tuple[int, ...]], ...]:
        """The n-grams from number `number` (from 0) on, as (target id, drafter ids)."""
        return tuple(
            (entry.target_id, entry.drafter_ids) for entry in islice(self._entries.values(), number, None)
        )

    @property
    def digest(self) -> str:
        """Eight hexadecimal digits of the contents, whatever their order."""
        return f"{self._sum % 2**32:08x}"

    @property
    def nbytes(self) -> int:
        """Bytes of the entries: four per drafter token, twenty for the target id and the counters."""
        return sum(4 * len(entry.drafter_ids) + 20 for entry in list(self._entries.values()))

    def path(self, target_id: int) -> tuple[int, ...] | None:
        entry = self._entries.get(target_id)
        return entry.drafter_ids if entry else None

    def insert(self, target_id: int, drafter_ids: Sequence[int]) -> bool:
        """Add an n-gram. False where it exists, is too short, its path spells another target id, or the cache
        has size 0."""
        return self._put(NgramEntry(target_id, tuple(drafter_ids), 0, 0, self.clock, self.clock), mark=True)

    def load(self, entries: Iterable[NgramEntry]) -> None:
        """Add stored entries with their counters."""
        for entry in entries:
            self._put(replace(entry), mark=False)
            self.clock = max(self.clock, entry.last_used)

    def as_of(self, clock: int) -> NgramCache:
        """The n-grams inserted before this time of `clock`: itself if there are no later ones, else a
        copy."""
        entries = list(self._entries.values())
        return self if all(entry.inserted_at < clock for entry in entries) else self.copy_as_of(clock)

    def copy_as_of(self, clock: int) -> NgramCache:
        """A copy of the n-grams inserted before this time of `clock`. Visits all entries."""
        then = NgramCache(len(self.nearest), self.size, self.policy)
        then.load(entry for entry in list(self._entries.values()) if entry.inserted_at < clock)
        then.clock = clock
        return then

    def longest(self, ids: Sequence[int], start: int = 0) -> tuple[int, int] | None:
        """(target id, n) of the longest n-gram in `ids` from `start` on, or None."""
        node, found = 0, None
        for position in range(start, len(ids)):
            node = self.trie.child(node, ids[position])
            if not node:
                break
            if (target_id := self.trie.spells(node)) >= 0:
                found = (target_id, position + 1 - start)
        return found

    def begins(self, limit: int) -> NDArray[np.bool_]:
        """[D] bool: drafter ids that begin an n-gram of at most `limit` tokens."""
        return self.nearest <= limit

    def touch(self, target_id: int, accepted: bool) -> None:
        """Count a judged proposal of the n-gram (`hits`), and whether it was accepted (`accepts`)."""
        entry = self._entries.get(target_id)
        if entry is not None:
            entry.hits += 1
            entry.accepts += accepted
            entry.last_used = self.clock
            self._changed.add(target_id)

    def clear(self) -> None:
        self._removed |= set(self._entries)
        self._entries.clear()
        self._sum = 0
        self._changed.clear()
        self._refill()

    def take_changes(self) -> tuple[list[NgramEntry], list[int]]:
        """(changed entries, removed target ids) since the last call, for the store."""
        changed = [
            replace(self._entries[target_id]) for target_id in self._changed if target_id in self._entries
        ]
        removed = [target_id for target_id in self._removed if target_id not in self._entries]
        self._changed, self._removed = set(), set()
        return changed, removed

    def _put(self, new: NgramEntry, mark: bool) -> bool:
        ids = new.drafter_ids
        known = self.longest(ids)
        if (
            len(ids) < 2
            or self.size == 0
            or new.target_id in self._entries
            or (known is not None and known[1] == len(ids))
        ):
            return False
        if len(self._entries) >= self.size:
            self._evict()
        self._entries[new.target_id] = new
        self._sum += _hash(new)
        if not self.trie.insert((ids, new.target_id)):
            self._fill()
        self.nearest[ids[0]] = self.trie.nearest(self.trie.child(0, ids[0]))
        self.derived.clear()
        if mark:
            self._changed.add(new.target_id)
        return True

    def _evict(self) -> None:
        """Remove a tenth of the entries (at least one): "lfu" those with the fewest `hits`, "lru" those used
        longest ago. Ties go by the other criterion, then by the earlier insertion."""

        def worth(entry: NgramEntry) -> tuple[int, int, int]:
            use = (entry.hits, entry.last_used) if self.policy == "lfu" else (entry.last_used, entry.hits)
            return (*use, entry.inserted_at)

        for entry in sorted(self._entries.values(), key=worth)[: max(1, self.size // 10)]:
            del self._entries[entry.target_id]
            self._sum -= _hash(entry)
            self._removed.add(entry.target_id)
        self._refill()

    def _refill(self) -> None:
        """Update everything after entries were removed."""
        self._fill()
        self.nearest[:] = FAR
        for entry in self._entries.values():
            first = entry.drafter_ids[0]
            self.nearest[first] = min(self.nearest[first], len(entry.drafter_ids))
        self.derived.clear()
        self.epoch = token_hex(8)

    def _fill(self) -> None:
        self.trie.fill((entry.drafter_ids, entry.target_id) for entry in self._entries.values())


def _hash(entry: NgramEntry) -> int:
    ids = np.array([entry.target_id, *entry.drafter_ids], "<i8")
    return int.from_bytes(blake2b(ids.tobytes(), digest_size=8).digest(), "little")


@cache
def no_ngrams(tokens: int) -> NgramCache:
    """An empty cache for methods without n-grams; never written to."""
    return NgramCache(tokens, 0, sizes=(1,))
