"""The n-gram cache: the trie against a plain scan, its limit, its counters."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from omnidemo.core.records import NgramEntry
from omnidemo.pair.ngram_memory import NgramMemory
from omnidemo.vocabulary.ngram_cache import FAR, NgramCache
from omnidemo.vocabulary.trie_table import TrieTable
from tests.support.worlds import NESTED

GRAMS = st.lists(st.lists(st.integers(0, 3), min_size=2, max_size=4).map(tuple), unique=True, max_size=20)


def filled(grams: list[tuple[int, ...]], **options: object) -> NgramCache:
    cache = NgramCache(4, **options)  # type: ignore[arg-type]
    for target_id, ids in enumerate(grams):
        cache.insert(target_id, ids)
    return cache


@given(grams=GRAMS, text=st.lists(st.integers(0, 3), max_size=12))
@settings(deadline=None)
def test_longest_match_equals_a_scan(grams: list[tuple[int, ...]], text: list[int]) -> None:
    cache = filled(grams)
    for start in range(len(text)):
        matches = [
            (len(ids), t) for t, ids in enumerate(grams) if tuple(text[start : start + len(ids)]) == ids
        ]
        expected = (max(matches)[1], max(matches)[0]) if matches else None
        assert cache.longest(text, start) == expected


@given(grams=GRAMS, gone=st.integers(0, 19))
@settings(deadline=None)
def test_removal_leaves_the_trie_as_if_it_had_never_been_there(
    grams: list[tuple[int, ...]], gone: int
) -> None:
    cache = filled(grams)
    for target_id in cache.target_ids:
        if target_id != gone:
            cache.touch(target_id, True)
    cache.size = 1  # so that one goes
    if gone in cache:
        cache._evict()
    rest = {t: ids for t, ids in enumerate(grams) if t != gone}
    fresh = NgramCache(4)
    for target_id, ids in rest.items():
        fresh.insert(target_id, ids)
    assert cache.nearest.tolist() == fresh.nearest.tolist()

    def shape(trie: TrieTable, node: int = 0) -> object:
        children = {token: shape(trie, child) for token in range(4) if (child := trie.child(node, token))}
        return trie.spells(node), trie.nearest(node), children

    assert shape(cache.trie) == shape(fresh.trie)


def test_refusals() -> None:
    cache = NgramCache(4)
    assert not cache.insert(1, (2,))  # a direct map is no n-gram
    assert cache.insert(1, (2, 3)) and not cache.insert(1, (2, 3))
    assert not cache.insert(7, (2, 3))  # one target id per path
    assert not NgramCache(4, size=0).insert(1, (2, 3))
    assert cache.nearest.tolist() == [FAR, FAR, 2, FAR]


def test_a_full_cache_lets_the_least_used_go_and_tells_the_store() -> None:
    cache = filled([(0, 1), (1, 2), (2, 3)], size=3)
    cache.touch(0, True)
    cache.touch(2, False)
    cache.insert(9, (3, 3))
    assert 1 not in cache and 9 in cache and len(cache) == 3
    changed, removed = cache.take_changes()
    assert removed == [1] and {entry.target_id for entry in changed} == {0, 2, 9}
    assert cache.take_changes() == ([], [])


def test_lru_lets_the_oldest_use_go() -> None:
    cache = filled([(0, 1), (1, 2)], size=2, policy="lru")
    cache.clock = 5
    cache.touch(0, False)
    cache.insert(9, (3, 3))
    assert 1 not in cache and 0 in cache


def test_the_digest_is_of_what_is_there_in_any_order() -> None:
    grams = [(1, 2), (2, 3), (3, 1)]
    cache, turned = filled(grams), NgramCache(4)
    for target_id in (2, 0, 1):
        turned.insert(target_id, grams[target_id])
    assert cache.digest == turned.digest != filled(grams[:2]).digest != NgramCache(4).digest
    assert filled([(1, 2), (2, 3), (3, 2)]).digest != cache.digest != filled([(2, 3), (1, 2), (3, 1)]).digest
    loaded, full = NgramCache(4), filled(grams, size=3)
    loaded.load(cache)
    assert loaded.digest == full.digest == cache.digest
    full.insert(3, (2, 1))  # in the place of the oldest
    assert len(full) == 3 and full.digest == rebuilt(full).digest != cache.digest
    full.clear()
    assert full.digest == NgramCache(4).digest


def rebuilt(cache: NgramCache) -> NgramCache:
    again = NgramCache(4)
    again.load(cache)
    return again


def test_entries_come_back_with_their_counters() -> None:
    cache = filled([(0, 1), (1, 2, 3)])
    cache.clock = 4
    cache.touch(1, True)
    other = NgramCache(4)
    other.load(cache)
    assert list(other) == list(cache) and other.clock == 4 and other.nbytes == cache.nbytes == 4 * 5 + 40
    assert other.take_changes() == ([], [])


def test_of_another_tokenizer_nothing_is_taken_from_the_store() -> None:
    """A folder of the same name may have had other files when it was written."""
    kept, cache = [(2, (0, 1)), (3, (0, 0)), (99, (1, 0))], NgramCache(len(NESTED.drafter) + 2)
    store: Any = SimpleNamespace(
        load_ngrams=lambda *names: [NgramEntry(*one, 0, 0, 0, 0) for one in kept],
    )
    NgramMemory(lambda: cache, NESTED.map, ("target", "drafter"), threading.Lock()).attach(store)
    assert {one.target_id: one.drafter_ids for one in cache} == {2: (0, 1)}
