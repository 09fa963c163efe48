"""Backups of database, adapters and router on another disk, because a Hugging Face Space loses its own disk
at every restart."""

from __future__ import annotations

import logging
import os
import shutil
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from omnidemo.core.config import Settings
from omnidemo.core.private_folders import replacing
from omnidemo.models.adapters import version_folders
from omnidemo.storage.connections import beside
from omnidemo.storage.store import Store
from omnidemo.storage.visitors import KEY

log = logging.getLogger(__name__)
EVERY_SECONDS = 300.0
DATABASE = "omnidemo.db"
FOLDERS = (version_folders.FOLDER, "router")  # in the storage folder
PARTS = (*FOLDERS, KEY)  # without the key the ids of visitors would be invalid after a restoration
UNFINISHED = shutil.ignore_patterns(*version_folders.UNFINISHED)


class Backup:
    """Restores the missing parts of the storage when it is made; `start` copies every EVERY_SECONDS, `close`
    once more. Failures are logged."""

    def __init__(self, settings: Settings) -> None:
        self._settings, self._folder = settings, Path(settings.backup)
        self._store: Store | None = None
        self._closing = threading.Event()
        self._copying = threading.Lock()
        self._seen: dict[str, set[Path]] = {name: set() for name in FOLDERS}
        if settings.backup:
            _quietly(self._restore)
            _quietly(self._note_seen)

    def start(self, store: Store) -> None:
        self._store = store
        if self._settings.backup:
            threading.Thread(target=self._copy_regularly, name="backup", daemon=True).start()

    def close(self) -> None:
        """Copy for the last time, before the store is closed."""
        self._closing.set()
        if self._settings.backup:
            _quietly(self._back_up)

    def _restore(self) -> None:
        storage = self._settings.storage
        if not self._settings.database_url:
            restore_database(self._folder / DATABASE, storage / DATABASE)
        for name in PARTS:
            copy, live = self._folder / name, storage / name
            if copy.is_dir() and not live.exists():
                shutil.copytree(copy, live)
            elif copy.is_file() and not live.exists():
                shutil.copy2(copy, live)

    def _note_seen(self) -> None:
        for name in FOLDERS:
            self._seen[name] = _names(self._settings.storage / name)

    def _back_up(self) -> None:
        """Copy all parts, one copy at a time, because all use the same temporary file."""
        with self._copying:
            self._folder.mkdir(parents=True, exist_ok=True)
            if self._store is not None and not self._settings.database_url:
                back_up_database(self._store, self._folder / DATABASE)
            for name in PARTS:
                live, copy = self._settings.storage / name, self._folder / name
                if live.is_dir():
                    shutil.copytree(live, copy, dirs_exist_ok=True, ignore=UNFINISHED)
                    self._drop_gone(name, copy)
                elif live.is_file():
                    shutil.copy2(live, copy)  # with its mode: only the owner may read it

    def _drop_gone(self, name: str, copy: Path) -> None:
        """Remove deleted files from a folder's copy, but only files that this process has seen, so that a
        failed restoration empties no backup. Nothing is removed where the whole folder is gone, which the app
        never deletes."""
        now = _names(self._settings.storage / name)
        for gone in sorted(self._seen[name] - now, reverse=True):  # files before their folder
            if (copy / gone).is_dir():
                shutil.rmtree(copy / gone)
            else:
                (copy / gone).unlink(missing_ok=True)
        self._seen[name] = now

    def _copy_regularly(self) -> None:
        while not self._closing.wait(EVERY_SECONDS):
            _quietly(self._back_up)


def back_up_database(store: Store, path: Path) -> None:
    """Copy the SQLite database of a store to `path`, whole or not at all. RuntimeError where that fails."""
    if store.status.ok:
        store.flush()
    live = store.file
    if live is None or not live.is_file():
        raise RuntimeError(
            "There is no SQLite database to back up; back up a database server with its own tools."
        )
    # made on the live disk, then copied as a file: SQLite's locks do not work on every mounted bucket
    local = beside(live, ".backup")
    try:
        with closing(sqlite3.connect(live, timeout=5)) as source, closing(sqlite3.connect(local)) as goal:
            source.backup(goal)
        with replacing(path) as copy:
            shutil.copyfile(local, copy)
    except (OSError, sqlite3.Error) as error:
        raise RuntimeError(
            f"The database could not be backed up to {path} ({error}); check that its folder is writable."
        ) from error
    finally:
        _remove(local)


def restore_database(path: Path, live: Path) -> bool:
    """Restore a sound backup where the database file `live` does not exist; whether it did. To be called
    before `Store`. OSError where the copy cannot be written."""
    if live.exists() or not path.is_file():
        return False
    try:
        with replacing(live) as copy:
            shutil.copyfile(path, copy)
            # immutable: SQLite writes no further file beside the copy
            with closing(sqlite3.connect(f"{copy.resolve().as_uri()}?immutable=1", uri=True)) as connection:
                if connection.execute("PRAGMA quick_check").fetchone() != ("ok",):
                    raise sqlite3.DatabaseError("the backup is malformed")
            _remove(live)  # SQLite would apply a left-over log of the lost database
    except sqlite3.DatabaseError:
        return False
    return True


def _remove(file: Path) -> None:
    """Remove a database file with its logs."""
    for ending in ("", "-wal", "-shm", "-journal"):
        with suppress(OSError):
            beside(file, ending).unlink()


def _quietly(action: Callable[[], Any]) -> None:
    try:
        action()
    except (RuntimeError, OSError, ValueError) as error:
        log.warning("backup: %s", error)


def _names(folder: Path) -> set[Path]:
    """All paths in a folder, at any depth; empty without a folder. OSError where a part of it cannot be
    read."""

    def fail(error: OSError) -> None:
        raise error

    if not folder.is_dir():
        return set()
    places = os.walk(folder, onerror=fail)
    return {
        Path(place, name).relative_to(folder)
        for place, folders, files in places
        for name in (*folders, *files)
    }
