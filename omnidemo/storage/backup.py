"""Copies of database, adapters and router on another disk, because a Hugging Face Space loses its own disk at
every restart."""

from __future__ import annotations

import logging
import shutil
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from omnidemo.core.config import Settings
from omnidemo.core.private_folders import replacing
from omnidemo.models.adapters import version_folders
from omnidemo.storage.connections import beside
from omnidemo.storage.store import Store
from omnidemo.storage.visitors import KEY

log = logging.getLogger(__name__)
EVERY_SECONDS = 300.0
DATABASE = "omnidemo.db"
# in the storage folder; without the key the ids of visitors would be invalid after a restoration
PARTS = (version_folders.FOLDER, "router", KEY)
UNFINISHED = shutil.ignore_patterns(*version_folders.UNFINISHED)


class Backup:
    """Restores the missing parts of the storage when it is made; `start` copies every EVERY_SECONDS, `close`
    once more. Failures are logged."""

    def __init__(self, settings: Settings) -> None:
        self._live, self._copy = settings.storage, Path(settings.backup) if settings.backup else None
        self._has_database = not settings.database_url
        self._store: Store | None = None
        self._closing, self._copying = threading.Event(), threading.Lock()
        self._quietly(self._restore)
        self._seen = {name: set((self._live / name).rglob("*")) for name in PARTS}

    def start(self, store: Store) -> None:
        self._store = store
        if self._copy:
            threading.Thread(target=self._copy_regularly, name="backup", daemon=True).start()

    def close(self) -> None:
        """Copy for the last time, before the store is closed."""
        self._closing.set()
        self._quietly(self._back_up)

    def _copy_regularly(self) -> None:
        while not self._closing.wait(EVERY_SECONDS):
            self._quietly(self._back_up)

    def _restore(self, copy: Path) -> None:
        for name in PARTS:
            if not (self._live / name).exists():
                _copy(copy / name, self._live / name)
        if self._has_database:
            restore_database(copy / DATABASE, self._live / DATABASE)

    def _back_up(self, copy: Path) -> None:
        with self._copying:  # one at a time, because all use the same temporary file
            copy.mkdir(parents=True, exist_ok=True)
            if self._store is not None and self._has_database:
                back_up_database(self._store, copy / DATABASE)
            for name in PARTS:
                if (live := self._live / name).exists():
                    _copy(live, copy / name)
                    # Only what this process has seen is removed: a failed restoration empties no copy.
                    now = set(live.rglob("*"))
                    for gone in sorted(self._seen[name] - now, reverse=True):  # files before their folder
                        path = copy / gone.relative_to(self._live)
                        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
                    self._seen[name] = now

    def _quietly(self, action: Callable[[Path], None]) -> None:
        try:
            if self._copy:
                action(self._copy)
        except (OSError, ValueError, sqlite3.Error) as error:
            log.warning("backup: %s", error)


def back_up_database(store: Store, path: Path) -> None:
    """Copy the SQLite database of a store to `path`, whole or not at all. OSError or sqlite3.Error where that
    fails."""
    if store.status.ok:
        store.flush()
    live = store.file
    assert live is not None
    # made on the live disk, then copied as a file: SQLite's locks do not work on every mounted bucket
    local, there = beside(live, ".backup"), f"{live.absolute().as_uri()}?mode=ro"
    try:
        with (
            closing(sqlite3.connect(there, timeout=5, uri=True)) as source,
            closing(sqlite3.connect(local)) as goal,
        ):
            source.backup(goal)
        with replacing(path) as copy:
            shutil.copyfile(local, copy)
    finally:
        for ending in ("", "-journal", "-wal", "-shm"):
            beside(local, ending).unlink(missing_ok=True)


def restore_database(path: Path, live: Path) -> None:
    """Restore a sound backup where the database file `live` does not exist. To be called before `Store`."""
    if live.exists() or not path.is_file():
        return
    with replacing(live) as copy:
        shutil.copyfile(path, copy)
        # immutable: SQLite writes no further file beside the copy
        with closing(sqlite3.connect(f"{copy.resolve().as_uri()}?immutable=1", uri=True)) as connection:
            if connection.execute("PRAGMA quick_check").fetchone() != ("ok",):
                raise sqlite3.DatabaseError(f"{path} is malformed and is not restored")
        for ending in ("-wal", "-shm"):  # of the lost database: SQLite would apply them
            beside(live, ending).unlink(missing_ok=True)


def _copy(source: Path, goal: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, goal, dirs_exist_ok=True, ignore=UNFINISHED)
    elif source.is_file():
        shutil.copy2(source, goal)  # with its mode: only the owner may read the key
