"""The sizes of each visitor's adapter line and n-grams in a public app; `serving/visitor_lines.py` deletes
them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from omnidemo.core.config import Settings
from omnidemo.storage.visitors import owned
from omnidemo.vocabulary.ngram_cache import NgramCache

RANK = 16
LINE_BYTES = 5_000_000  # of all versions of a line together
VERSIONS = 2  # the newest and the trusted one
COPIES = 4 * 4  # bytes of a parameter: itself, the optimiser's two moments and its weight
BUFFER_MB = 2
CACHES = 16  # visitors' n-gram caches in memory; the one unused for longest is dropped
OWN_NGRAMS = 2000  # beside the shared ones
SIZES = (8_191, 65_521, 262_139, 1_048_573)  # of a visitor's trie on the device: primes


def line_settings(settings: Settings, shapes: Mapping[str, tuple[int, ...]]) -> Settings:
    """The settings of a visitor's line: the greatest rank up to RANK whose versions fit LINE_BYTES. shapes:
    of the drafter's matrices by name."""
    numbers = sum(
        sum(shape)
        for name, shape in shapes.items()
        if len(shape) == 2 and "embed" not in name and "head" not in name
    )
    rank = min(RANK, int(LINE_BYTES * 0.9) // max(1, VERSIONS * COPIES * numbers))
    changes: dict[str, Any] = {
        "lora_rank": max(1, rank),
        "adapters_kept": VERSIONS - 1,
        "buffer_mb": min(BUFFER_MB, settings.buffer_mb),
    }
    return settings.model_copy(update=changes)


class VisitorNgrams:
    """The n-gram caches of a pair's visitors: each begins as a copy of the shared one and grows by itself."""

    def __init__(self) -> None:
        self._caches: OrderedDict[str, NgramCache] = OrderedDict()

    def of(self, domain: str, shared: NgramCache) -> NgramCache:
        """The cache of an adapter line: a visitor's own, or the shared one. The pair's lock is held."""
        if not owned(domain):
            return shared
        cache = self._caches.pop(domain, None)
        if cache is None:
            size = min(shared.size, len(shared) + OWN_NGRAMS)
            cache = NgramCache(len(shared.nearest), size, shared.policy, SIZES)
            cache.load(shared)
        self._caches[domain] = cache
        while len(self._caches) > CACHES:
            self._caches.popitem(last=False)
        return cache

    def forget(self, domain: str) -> None:
        self._caches.pop(domain, None)
