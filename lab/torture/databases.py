"""The two databases of a history, SQLite and PostgreSQL, as the torture reads, locks and kills them from
outside."""

from __future__ import annotations

import itertools
import os
import shutil
import sqlite3
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psutil

from lab.torture.server import free_port

START_SECONDS = 60.0  # on a busy machine
ANSWERS = "SELECT prompt, answer FROM requests WHERE prompt IS NOT NULL"
CHECKS = (  # of all indexes that are trees, then of all tables
    (
        "SELECT bt_index_check(i.indexrelid, true) FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid"
        " JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_am a ON a.oid = c.relam WHERE n.nspname ="
        " 'public' AND a.amname = 'btree'"
    ),
    (
        "SELECT v.msg FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace, verify_heapam(c.oid) v"
        " WHERE n.nspname = 'public' AND c.relkind = 'r'"
    ),
)


class SqliteFile:
    """The file in the storage folder."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def answers(self) -> Sequence[tuple[str, str]]:
        """(prompt, answer) of all requests in the history that have kept their prompt."""
        with closing(sqlite3.connect(f"file:{self.file}?mode=ro", uri=True, timeout=30)) as connection:
            return connection.execute(ANSWERS).fetchall()

    def is_sound(self) -> bool:
        """Whether the database's own checks find nothing."""
        with closing(sqlite3.connect(self.file, timeout=30)) as connection:
            whole = connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
            return whole and connection.execute("PRAGMA foreign_key_check").fetchall() == []

    @contextmanager
    def locked(self) -> Iterator[None]:
        """A context in which nobody else can write a request."""
        with closing(sqlite3.connect(self.file, timeout=10, isolation_level=None)) as connection:
            connection.execute("BEGIN EXCLUSIVE")
            yield
            connection.execute("ROLLBACK")


class PostgresServer:
    """`postgres` of this machine in a folder of its own, with one database after another. It refuses to run
    as root; then it runs as the user of that name, or as nobody."""

    def __init__(self, folder: Path, options: Sequence[str] = ()) -> None:
        """`folder`: has to be empty or new; `options`: such as "fsync=off". ValueError, one sentence, where
        there can be no server."""
        for program in ("postgres", "initdb"):
            if shutil.which(program) is None:
                raise ValueError(f"{program} is not on the path; install PostgreSQL")
        if find_spec("psycopg") is None:
            raise ValueError("psycopg is not installed; run `pip install -r requirements-scale.txt`")
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.data, self.port, self._options = (
            folder,
            folder / "data",
            free_port(),
            tuple(options),
        )
        self._as: dict[str, Any] = {}
        if hasattr(os, "geteuid") and os.geteuid() == 0:
            user = _other_user()
            self._as = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
            os.chown(folder, user.pw_uid, user.pw_gid)
        how = ["-U", "tester", "-A", "trust", "-E", "UTF8", "--no-sync", "--locale=C"]
        made = ["initdb", "-D", str(self.data), *how]
        done = subprocess.run(made, capture_output=True, text=True, cwd=folder, timeout=120, **self._as)
        if done.returncode:
            raise ValueError(
                f"initdb could not make a database in {folder}: {' '.join(done.stderr.split())[-300:]}"
            )
        self._process: subprocess.Popen[bytes] | None = None
        self._numbers = itertools.count()
        self._name = "postgres"

    @property
    def url(self) -> str:
        """The address of the database that was made last."""
        return f"postgresql://tester@127.0.0.1:{self.port}/{self._name}"

    def start(self) -> None:
        """Start it, and wait until it answers; ValueError, one sentence, where it does not. After a kill it
        may refuse to start until the last of its old processes has ended, so it is tried again."""
        import psycopg

        options = [part for name in ("unix_socket_directories=", *self._options) for part in ("-c", name)]
        command = ["postgres", "-D", str(self.data), "-h", "127.0.0.1", "-p", str(self.port), *options]
        end = time.monotonic() + START_SECONDS
        while time.monotonic() < end:
            if self._process is None or self._process.poll() is not None:
                with (self.folder / "log").open("ab") as log:
                    self._process = subprocess.Popen(
                        command, cwd=self.folder, stdout=log, stderr=log, **self._as
                    )
            with suppress(psycopg.OperationalError):
                self.run("SELECT 1", "postgres")
                return
            time.sleep(0.1)
        self.kill()
        raise ValueError(f"PostgreSQL did not start; {self.folder / 'log'} says why")

    def kill(self) -> None:
        """End all of its processes without a warning."""
        if self._process is not None and self._process.poll() is None:
            found = psutil.Process(self._process.pid)
            for process in (found, *found.children(recursive=True)):
                with suppress(psutil.Error):
                    process.kill()
            self._process.wait(START_SECONDS)
        self._process = None

    def run(self, statement: str, name: str | None = None) -> list[Any]:
        """Run a statement outside of any transaction; its rows."""
        with self._connected(name) as connection:
            cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else []

    def database(self) -> str:
        """The address of a new, empty database."""
        name = f"test{next(self._numbers)}"
        self.run(f"CREATE DATABASE {name}", "postgres")
        self._name = name
        return self.url

    def answers(self) -> Sequence[tuple[str, str]]:
        return self.run(ANSWERS)

    def is_sound(self) -> bool:
        """The same. Needs PostgreSQL 14 or newer with its contributed extension amcheck."""
        import psycopg

        self.run("CREATE EXTENSION IF NOT EXISTS amcheck")
        try:
            trees, tables = (self.run(statement) for statement in CHECKS)
        except psycopg.Error:  # a check that finds something raises it
            return False
        return bool(trees) and not tables

    @contextmanager
    def locked(self) -> Iterator[None]:
        with self._connected() as connection, connection.transaction():
            connection.execute("LOCK TABLE requests IN ACCESS EXCLUSIVE MODE")
            yield

    def _connected(self, name: str | None = None) -> Any:
        import psycopg

        address = f"postgresql://tester@127.0.0.1:{self.port}/{name or self._name}"
        return psycopg.connect(address, autocommit=True, connect_timeout=5)


def _other_user() -> Any:
    import pwd  # not on every system

    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise ValueError("PostgreSQL refuses to run as root, and there is neither a user postgres nor nobody")
