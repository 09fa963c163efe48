"""The adapter line and the n-grams of each visitor of a public app. Both are small and are deleted some time after their last use."""

from __future__ import annotations

import logging
import os
import re
import threading
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from omnidemo.adapters import version_folders
from omnidemo.config import Settings
from omnidemo.store.store import Store
from omnidemo.store.visitors import NAME_BYTES, OWN, owned
from omnidemo.vocab.ngram_cache import NgramCache

log = logging.getLogger(__name__)
RANK = 16
LINE_BYTES = 5_000_000  # of all versions of a line together
VERSIONS = 2  # the newest, and the trusted one where that is another
COPIES = 4 * 4  # bytes of each number of an adapter: itself, the optimiser's two moments, and the weight that it moves
BUFFER_MB = 2
CACHES = 16  # visitors' n-gram caches in memory; the one unused for longest goes
OWN_NGRAMS = 2000  # beside the shared ones
SIZES = (8_191, 65_521, 262_139, 1_048_573)  # of a visitor's trie on the device: primes
FOLDER = re.compile(
    rf"{re.escape(OWN.strip('~'))}[0-9a-f]{{{2 * NAME_BYTES}}}-[0-9a-f]{{10}}"
)  # of a line, as `version_folders.safe_name` writes it


def line_settings(settings: Settings, shapes: Mapping[str, tuple[int, ...]]) -> Settings:
    """The settings by which a visitor's line learns: a small adapter, of the greatest rank up to `RANK` whose versions fit `LINE_BYTES`.
    shapes: of the drafter's matrices by name."""
    numbers = sum(sum(shape) for name, shape in shapes.items() if len(shape) == 2 and "embed" not in name and "head" not in name)
    rank = min(RANK, int(LINE_BYTES * 0.9) // max(1, VERSIONS * COPIES * numbers))
    changes: dict[str, Any] = {"lora_rank": max(1, rank), "adapters_kept": VERSIONS - 1, "buffer_mb": min(BUFFER_MB, settings.buffer_mb)}
    return settings.model_copy(update=changes)


class VisitorNgrams:
    """The n-gram caches of a pair's visitors: each a copy of the shared one, as it was, that grows by itself."""

    def __init__(self) -> None:
        self._caches: OrderedDict[str, NgramCache] = OrderedDict()

    def of(self, domain: str, shared: NgramCache) -> NgramCache:
        """The cache of an adapter line: a visitor's own, or the shared one. The pair's lock is held."""
        if not owned(domain):
            return shared
        cache = self._caches.pop(domain, None)
        if cache is None:
            size = min(shared.size, len(shared) + OWN_NGRAMS)
            cache = NgramCache(len(shared.nearest), size, shared.policy, shared.nearest.device, SIZES)
            cache.load(shared)
        self._caches[domain] = cache
        while len(self._caches) > CACHES:
            self._caches.popitem(last=False)
        return cache

    def forget(self, domain: str) -> None:
        self._caches.pop(domain, None)


class Forgetful(Protocol):
    """The lines of one pair, as far as deletion needs them."""

    def forget(self, domain: str) -> bool: ...


class Pools(Protocol):
    """The pair pool, as far as deletion needs it."""

    settings: Settings

    def all_lines(self) -> Sequence[Forgetful]: ...


class VisitorLines:
    """The adapter lines of visitors, over all pairs: which are there, when they were used, and their end. Any thread may call."""

    def __init__(self, pool: Pools, store: Store) -> None:
        """pool: the pairs in memory; store: the history."""
        self._pool, self._store = pool, store
        self._used: dict[str, float] = {}
        self._lock = threading.Lock()

    def use(self, domain: str) -> None:
        """Note that a line is used now, and delete the one unused for longest where there are too many."""
        with self._lock:
            self._used[domain] = time.time()
            many = len(self._used) - self._pool.settings.visitor_lines
            oldest = sorted(self._used, key=lambda one: self._used[one])[: max(0, many)]
        for one in oldest:
            self.forget(one)

    def sweep(self) -> int:
        """Delete the lines that were unused for too long, those of an earlier run among them; how many there were."""
        before = time.time() - 60 * self._pool.settings.visitor_minutes
        with self._lock:
            old = [domain for domain, used in self._used.items() if used < before]
            kept = {version_folders.safe_name(domain) for domain in self._used if domain not in old}
        gone = sum(self.forget(domain) for domain in old)
        for folder in _folders(self._pool.settings.storage):
            if folder.name not in kept and _touched(folder) < before:
                gone += _remove(folder)
                self._store.forget_domain(f"~{folder.name.rpartition('-')[0]}")
        return gone

    def forget(self, domain: str) -> bool:
        """Delete a line with all its versions. False while an answer is being written with it."""
        busy = [lines for lines in self._pool.all_lines() if not lines.forget(domain)]
        if busy:
            return False
        with self._lock:
            self._used.pop(domain, None)
        for folder in _folders(self._pool.settings.storage):  # of pairs that are not in memory
            if folder.name == version_folders.safe_name(domain):
                _remove(folder)
        self._store.forget_domain(domain)
        return True


def _folders(storage: Path) -> list[Path]:
    return [folder for folder in Path(storage).glob("adapters/*/*/*") if FOLDER.fullmatch(folder.name)]


def _touched(folder: Path) -> float:
    try:
        return max((entry.stat().st_mtime for entry in (folder, *folder.iterdir())), default=0.0)
    except OSError:
        return 0.0


def _remove(folder: Path) -> bool:
    try:
        version_folders.remove_line(folder)
    except OSError as error:
        log.warning("A visitor's adapter in %s could not be removed: %s", folder, error)
        return False
    return not os.path.exists(folder)
