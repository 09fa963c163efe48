"""The adapter lines of a public app's visitors, which are deleted some time after their last use."""

from __future__ import annotations

import threading
import time

from omnidemo.serving.pair_pool import PairPool
from omnidemo.storage.store import Store
from omnidemo.storage.version_store import VersionStore


class VisitorLines:
    """The adapter lines of visitors over all pairs, their last use and their deletion. Thread-safe."""

    def __init__(self, pool: PairPool, store: Store) -> None:
        self._pool, self._versions = pool, VersionStore(pool.settings.storage, store)
        self._used: dict[str, float] = {}
        self._lock = threading.Lock()

    def use(self, domain: str) -> None:
        """Note the use of a line, and delete the lines unused for longest where there are too many."""
        with self._lock:
            self._used[domain] = time.time()
            many = len(self._used) - self._pool.settings.visitor_lines
            oldest = sorted(self._used, key=lambda name: self._used[name])[: max(0, many)]
        for name in oldest:
            self.forget(name)

    def sweep(self) -> None:
        """Delete the lines unused for too long, those of earlier runs too, but none that drafts an answer."""
        before = time.time() - 60 * self._pool.settings.visitor_minutes
        with self._lock:
            old = [domain for domain, used in self._used.items() if used < before]
        for domain in old:
            self.forget(domain)
        with self._lock:
            kept = set(self._used)
        for domain, changed in self._versions.visitors().items():
            if domain not in kept and changed < before:
                self._versions.forget(domain)

    def forget(self, domain: str) -> bool:
        """Delete a line with all its versions. False where a pair still answers with it; all other pairs have
        dropped it then."""
        busy = [lines for lines in self._pool.all_lines() if not lines.forget(domain)]
        if busy:
            return False
        with self._lock:
            self._used.pop(domain, None)
        self._versions.forget(domain)  # of all pairs, in memory or not
        return True
