"""The n-gram caches of a pair: the shared one, which is stored, and those of visitors."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence

from omnidemo.core.records import Round
from omnidemo.storage.store import Store
from omnidemo.storage.visitor_state import VisitorNgrams
from omnidemo.vocabulary.ngram_cache import NgramCache
from omnidemo.vocabulary.vocabulary_map import VocabularyMap


class NgramMemory:
    """`cache`: returns the shared n-grams, which the pair may replace. `names`: of target and drafter, the
    key in the store. `lock`: the pair's, held while the trie changes."""

    def __init__(
        self, cache: Callable[[], NgramCache], vocabulary_map: VocabularyMap, names: tuple[str, str],
        lock: threading.Lock,
    ) -> None:  # fmt: skip
        self._shared, self._map, self._names, self._lock = cache, vocabulary_map, names, lock
        self._own = VisitorNgrams()
        self._store: Store | None = None

    def of(self, domain: str) -> NgramCache:
        """The n-grams of a domain. The lock is held."""
        return self._own.of(domain, self._shared())

    def forget(self, domain: str) -> None:
        """Drop a visitor's own n-grams. The lock is held."""
        self._own.forget(domain)

    def attach(self, store: Store) -> None:
        self._store = store
        with self._lock:
            # Models of these names may have had other tokenizers.
            stored, rows = store.load_ngrams(*self._names), len(self._map.drafters)
            here = (entry for entry in stored if entry.target_id < rows)
            self._shared().load(
                entry for entry in here if self._map.ngram(entry.target_id) == entry.drafter_ids
            )

    def fill(self) -> int:
        """Insert every target token that needs several drafter tokens, as far as there is room. Returns the
        number of n-grams."""
        with self._lock:
            for target_id in range(len(self._map.target)):
                spelled = self._map.ngram(target_id)
                if spelled and len(self._shared()) < self._shared().size:
                    self._shared().insert(target_id, spelled)
        self.save()
        return len(self._shared())

    def add(self, domain: str, ngrams: Iterable[tuple[int, Sequence[int]]]) -> None:
        """Add n-grams, (target id, drafter ids), to those of a domain."""
        with self._lock:
            cache = self.of(domain)
            for target_id, spelled in ngrams:
                cache.insert(target_id, spelled)
        self.save()

    def clear(self) -> None:
        with self._lock:
            self._shared().clear()
        self.save()

    def save(self) -> None:
        """Write changes to the store."""
        if self._store is not None:
            with self._lock:
                changed, removed = self._shared().take_changes()
            if changed or removed:
                self._store.save_ngrams(*self._names, changed, removed)


def remember(ngrams: NgramCache, done: Round) -> None:
    """Insert the round's n-grams into the cache, and count its proposed and accepted ones."""
    for target_id, drafter_ids in done.inserts:
        ngrams.insert(target_id, drafter_ids)
    for token in done.tokens:
        if token.source == "ngram":
            ngrams.touch(token.id, True)
    for token in done.discarded:
        if token.source == "ngram" and token.accept is not None:
            ngrams.touch(token.id, False)
