"""Opens database connections and explains their errors."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

from alembic.util import CommandError
from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import DatabaseError, DataError, IntegrityError, NotSupportedError, ProgrammingError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from omnidemo.storage import postgres

LOCK_SECONDS = 5  # longest wait for another process's lock


def beside(file: Path, ending: str) -> Path:
    return file.with_name(file.name + ending)


def inode(file: Path) -> int | None:
    """The file system's number of a file, which another file of the same name does not have; None without a
    file."""
    try:
        return file.stat().st_ino
    except OSError:
        return None


def _plain(value: Any) -> Any:
    """A value that JSON does not know: numpy's scalars as numbers, any other as its text."""
    return value.item() if hasattr(value, "item") else str(value)


def make_engine(address: str | Path) -> Engine:
    """The engine for a database's URL, or for the file of an SQLite database."""
    # A file's URL is made from parts, because some characters of a name have a meaning in a URL.
    made = URL.create("sqlite", database=str(address)) if isinstance(address, Path) else make_url(address)
    url = postgres.with_driver(made)
    backend = url.get_backend_name()
    sqlite = backend == "sqlite"
    if sqlite and url.database in (None, "", ":memory:"):
        raise ValueError("an in-memory SQLite database cannot be shared between threads")
    arguments: dict[str, Any] = {"timeout": LOCK_SECONDS} if sqlite else {}
    if backend == "postgresql":
        arguments = postgres.connect_args(url, LOCK_SECONDS)
    serialise = partial(json.dumps, default=_plain)
    engine = create_engine(url, json_serializer=serialise, pool_pre_ping=not sqlite, connect_args=arguments)
    if sqlite:
        event.listen(engine, "connect", _on_connect)
    event.listen(engine, "begin", _on_begin)
    return engine


def _on_connect(connection: Any, _: Any) -> None:
    # `_on_begin` begins transactions, because the driver's own begin comes too late
    connection.isolation_level = None
    for pragma in ("journal_mode=WAL", "foreign_keys=ON", "synchronous=NORMAL"):
        connection.execute(f"PRAGMA {pragma}")


def _on_begin(connection: Connection) -> None:
    # A writer takes the lock at once, so that it never reads rows that another process is about to change.
    writes = connection.get_execution_options().get("write")
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")
    elif writes and connection.dialect.name == "postgresql":
        postgres.lock_writers(connection)


def is_down(error: Exception) -> bool:
    """Whether the whole database failed and not one write."""
    if getattr(error, "connection_invalidated", False):
        return True
    if (down := postgres.is_down(error)) is not None:
        return down
    its_own = (IntegrityError, DataError, ProgrammingError, NotSupportedError)
    return isinstance(error, (DatabaseError, PoolTimeout, OSError)) and not isinstance(error, its_own)


def first_line(error: Exception) -> str:
    lines = str(getattr(error, "orig", None) or error).strip().splitlines()
    return (lines[0] if lines else type(error).__name__).rstrip(".")


def next_step(error: Exception, file: Path | None) -> str:
    cause = first_line(error).lower()
    place = f"`{file}`" if file is not None else "the database"
    if "not a database" in cause or "malformed" in cause:
        return f"Move {place} away or put a backup in its place."
    if isinstance(error, CommandError) and "locate revision" in cause:
        return (
            "This database was written by a newer OmniDemo: update, or name another one in"
            " OMNIDEMO_DATABASE_URL."
        )
    if isinstance(error, ModuleNotFoundError):
        return (
            "Install its driver (pip install -r requirements-scale.txt for PostgreSQL), or check"
            " OMNIDEMO_DATABASE_URL."
        )
    if "lock timeout" in cause or "deadlock" in cause:
        return "Another program writes to the database; this is tried again."
    if "locked" in cause:
        return f"Close the other program that holds {place}."
    if "full" in cause or "no space" in cause:
        return "Free some disk space."
    if file is not None and (
        isinstance(error, OSError) or "unable to open" in cause or "readonly" in cause or "disk i/o" in cause
    ):
        return f"Make {place} and its folder writable, or name another folder in OMNIDEMO_STORAGE."
    return "Check OMNIDEMO_DATABASE_URL and that the database is running."
