"""The adapter lines of the visitors of a public app, which are deleted some time after their last use."""

from __future__ import annotations

import logging
import re
import threading
import time
from pathlib import Path

from omnidemo.adapters import version_folders
from omnidemo.serving.pair_pool import PairPool
from omnidemo.store.store import Store
from omnidemo.store.visitors import NAME_BYTES, OWN

log = logging.getLogger(__name__)
FOLDER = re.compile(
    rf"{re.escape(OWN.strip('~'))}[0-9a-f]{{{2 * NAME_BYTES}}}-[0-9a-f]{{10}}"
)  # of a line, as `version_folders.safe_name` writes it


class VisitorLines:
    """The adapter lines of visitors, over all pairs: which are there, when they were used, and their end. Any
    thread may call."""

    def __init__(self, pool: PairPool, store: Store) -> None:
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

    def sweep(self) -> None:
        """Delete the lines that were unused for too long, those of an earlier run among them, but none that
        drafts an answer."""
        before = time.time() - 60 * self._pool.settings.visitor_minutes
        with self._lock:
            old = [domain for domain, used in self._used.items() if used < before]
        for domain in old:
            self.forget(domain)
        with self._lock:
            kept = {version_folders.safe_name(domain) for domain in self._used}
        for folder in _folders(self._pool.settings.storage):
            if folder.name not in kept and _touched(folder) < before:
                _remove(folder)
                self._store.forget_domain(f"~{folder.name.rpartition('-')[0]}")

    def forget(self, domain: str) -> bool:
        """Delete a line with all its versions. False where a pair still answers with it; the others have
        dropped it by then."""
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


def _remove(folder: Path) -> None:
    try:
        version_folders.remove_line(folder)
    except OSError as error:
        log.warning("A visitor's adapter in %s could not be removed: %s", folder, error)
