"""Copies of a SQLite database on another disk, e.g. a bucket that outlives the machine, and back."""

from __future__ import annotations

import os
import shutil
import sqlite3
from contextlib import closing, suppress
from pathlib import Path


def backup(live: Path | None, path: Path) -> None:
    """Copy the database file `live` to `path`, whole or not at all. Raises RuntimeError where that fails."""
    if live is None or not live.is_file():
        raise RuntimeError("There is no SQLite database to back up; back up a database server with its own tools.")
    # Made on the live disk and then copied in one go: SQLite's locks do not work on every mounted bucket.
    local, copy = live.with_name(live.name + ".backup"), path.with_name(path.name + ".tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with closing(sqlite3.connect(live, timeout=5)) as source, closing(sqlite3.connect(local)) as goal:
            source.backup(goal)
        shutil.copyfile(local, copy)
        os.replace(copy, path)
    except (OSError, sqlite3.Error) as error:
        raise RuntimeError(f"The database could not be backed up to {path} ({error}); check that its folder is writable.") from error
    finally:
        _remove(local)
        _remove(copy)


def restore(path: Path, live: Path) -> bool:
    """Put a sound backup in place where the database file `live` does not exist yet; whether it did. Call it before `Store`.

    Raises OSError where the copy cannot be written.
    """
    if live.exists() or not path.is_file():
        return False
    live.parent.mkdir(parents=True, exist_ok=True)
    copy = live.with_name(live.name + ".tmp")
    try:
        shutil.copyfile(path, copy)
        if not _is_sound(copy):
            return False
        _remove(live)  # a left-over log of the lost database would be replayed into this one
        os.replace(copy, live)
        return True
    finally:
        _remove(copy)


def _is_sound(file: Path) -> bool:
    try:
        with closing(sqlite3.connect(file)) as connection:
            return bool(connection.execute("PRAGMA quick_check").fetchone() == ("ok",))
    except sqlite3.DatabaseError:
        return False


def _remove(file: Path) -> None:
    """Remove a database file with its log and index."""
    for ending in ("", "-wal", "-shm", "-journal"):
        with suppress(OSError):
            file.with_name(file.name + ending).unlink()
