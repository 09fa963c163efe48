"""A real PostgreSQL server for tests, on this machine, with a database of its own for each test."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.torture.databases import PostgresServer

QUICK = ("fsync=off", "full_page_writes=off", "shared_buffers=16MB", "max_connections=60")


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    folder = Path(tempfile.mkdtemp(prefix="omnidemo-postgres-"))
    try:
        try:
            server = PostgresServer(folder, QUICK)
        except ValueError as error:
            pytest.skip(str(error))
        try:
            server.start()
            yield server
        finally:
            server.kill()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
