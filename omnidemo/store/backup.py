"""Backups of database, adapters and what the router knows on another disk: that of a Hugging Face Space is lost at every restart."""

from __future__ import annotations

import logging
import os
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from omnidemo.config import Settings
from omnidemo.store import sqlite_copy
from omnidemo.store.store import Store
from omnidemo.store.visitors import KEY

log = logging.getLogger(__name__)
EVERY_SECONDS = 300.0
FOLDERS = ("adapters", "router")  # of the storage folder
FILES = (KEY,)  # without the key, ids of visitors whose rows come back would not be valid any more
UNFINISHED = shutil.ignore_patterns(".new-*", ".gone-*")


class Backup:
    """Restores at once where the storage is empty; `start` then copies every EVERY_SECONDS, `close` once more. A failure is logged."""

    def __init__(self, settings: Settings) -> None:
        self._settings, self._folder = settings, Path(settings.backup)
        self._store: Store | None = None
        self._closing = threading.Event()
        self._copying = threading.Lock()
        if settings.backup:
            _quietly(self._restore)
        self._seen: dict[str, set[Path]] = {name: set() for name in FOLDERS}

    def start(self, store: Store) -> None:
        self._store = store
        if self._settings.backup:
            _quietly(self._look)
            threading.Thread(target=self._copy_regularly, name="backup", daemon=True).start()

    def close(self) -> None:
        """Copy for the last time; call it before the store is closed."""
        self._closing.set()
        if self._settings.backup:
            _quietly(self._back_up)

    def _look(self) -> None:
        for name in FOLDERS:
            self._seen[name] = _names(self._settings.storage / name)

    def _restore(self) -> None:
        storage = self._settings.storage
        if not self._settings.database_url:
            sqlite_copy.restore(self._folder / "omnidemo.db", storage / "omnidemo.db")
        for name in FOLDERS:
            if (self._folder / name).is_dir() and not (storage / name).exists():
                shutil.copytree(self._folder / name, storage / name)
        for name in FILES:
            if (self._folder / name).is_file() and not (storage / name).exists():
                shutil.copy2(self._folder / name, storage / name)

    def _back_up(self) -> None:
        """One copy at a time: the last one waits for the regular one, for both use the same temporary files."""
        with self._copying:
            self._folder.mkdir(parents=True, exist_ok=True)
            if self._store is not None and not self._settings.database_url:
                self._store.backup(self._folder / "omnidemo.db")
            for name in FOLDERS:
                self._back_up_folder(name)
            for name in FILES:
                if (self._settings.storage / name).is_file():
                    shutil.copy2(self._settings.storage / name, self._folder / name)  # its mode too: nobody else may read it

    def _back_up_folder(self, name: str) -> None:
        """Copy a folder, and remove from the copy what was deleted: only what this process has seen, so that a restoration that failed
        empties no backup, and nothing where the whole folder is gone, which no deletion in the app does."""
        live, copy = self._settings.storage / name, self._folder / name
        if not live.is_dir():
            return
        shutil.copytree(live, copy, dirs_exist_ok=True, ignore=UNFINISHED)
        now = _names(live)
        for gone in sorted(self._seen[name] - now, reverse=True):  # what is in a folder before the folder
            place = copy / gone
            if place.is_dir():
                shutil.rmtree(place)
            else:
                place.unlink(missing_ok=True)
        self._seen[name] = now

    def _copy_regularly(self) -> None:
        while not self._closing.wait(EVERY_SECONDS):
            _quietly(self._back_up)


def _quietly(action: Callable[[], Any]) -> None:
    try:
        action()
    except (RuntimeError, OSError, ValueError) as error:
        log.warning("backup: %s", error)


def _names(folder: Path) -> set[Path]:
    """What is in a folder, at any depth; nothing where there is no folder. OSError where a part of it cannot be read."""

    def fail(error: OSError) -> None:
        raise error

    if not folder.is_dir():
        return set()
    found = os.walk(folder, onerror=fail)
    return {Path(place, name).relative_to(folder) for place, folders, files in found for name in (*folders, *files)}
