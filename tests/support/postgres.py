"""A real PostgreSQL server for tests, on this machine, with a database of its own for each test."""

from __future__ import annotations

import itertools
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

SECONDS = 60.0  # a busy machine's start
QUICK = ("fsync=off", "full_page_writes=off", "shared_buffers=16MB", "max_connections=60")


class Server:
    """`postgres` in a folder of its own. It refuses to run as root; then it runs as the user of that name, or as nobody."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.data, self.port = folder, folder / "data", _free_port()
        self._as: dict[str, Any] = {}
        if hasattr(os, "geteuid") and os.geteuid() == 0:
            user = _other_user()
            self._as = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
            os.chown(folder, user.pw_uid, user.pw_gid)
        made = ["initdb", "-D", str(self.data), "-U", "tester", "-A", "trust", "-E", "UTF8", "--no-sync", "--locale=C"]
        subprocess.run(made, check=True, capture_output=True, cwd=folder, timeout=120, **self._as)
        self._process: subprocess.Popen[bytes] | None = None
        self._numbers = itertools.count()

    def start(self) -> None:
        options = [part for name in QUICK for part in ("-c", name)]
        command = ["postgres", "-D", str(self.data), "-h", "127.0.0.1", "-p", str(self.port), "-k", str(self.folder), *options]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(command, cwd=self.folder, stdout=log, stderr=log, **self._as)
        end = time.monotonic() + SECONDS
        while True:
            try:
                return self.run("select 1")
            except Exception:
                if time.monotonic() > end or self._process.poll() is not None:
                    raise
            time.sleep(0.1)

    def stop(self, how: int = signal.SIGQUIT) -> None:
        """End it: by SIGQUIT without a word to anybody, as a crash would."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(SECONDS)
            self._process = None

    def url(self, name: str) -> str:
        return f"postgresql://tester@127.0.0.1:{self.port}/{name}"

    def run(self, statement: str, name: str = "postgres") -> Any:
        """Run a statement outside of any transaction; the rows, where it has any."""
        import psycopg

        with psycopg.connect(self.url(name), autocommit=True, connect_timeout=5) as connection:
            cursor = connection.execute(statement)  # type: ignore[arg-type]
            return cursor.fetchall() if cursor.description else None

    def database(self) -> str:
        """The address of a new, empty database."""
        name = f"test{next(self._numbers)}"
        self.run(f"create database {name}")
        return self.url(name)


def _other_user() -> pwd.struct_passwd:
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    pytest.skip("PostgreSQL refuses to run as root, and there is neither a user postgres nor nobody.")


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Server]:
    pytest.importorskip("psycopg", reason="psycopg is not installed: pip install -r requirements-scale.txt")
    for program in ("postgres", "initdb"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not on the path: install PostgreSQL.")
    folder = Path(tempfile.mkdtemp(prefix="omnidemo-postgres-"))
    try:
        server = Server(folder)
        server.start()
        yield server
        server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
