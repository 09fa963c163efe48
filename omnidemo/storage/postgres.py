"""What PostgreSQL needs beside SQLite: text that it takes, its driver, limits on waiting, one lock for
writers, what its errors mean."""

from __future__ import annotations

from typing import Any

from sqlalchemy import URL, Connection, Dialect, String, Text, TypeDecorator

WRITERS = 0x6F6D6E69  # the advisory lock that a writing transaction holds, a migration among them
# Beginnings of error codes that a later try may not meet.
DOWN = ("08", "25", "3D", "40", "53", "55", "57", "58", "XX", "42P01", "42501")
MILLISECONDS = {
    "lock_timeout": 5_000,
    "statement_timeout": 60_000,
    "idle_in_transaction_session_timeout": 60_000,
}


class Words(TypeDecorator[str]):
    """Text that every database takes, also where a query compares with it: lone surrogates and NUL become
    `?`. Lengths are SQLite's, which only notes them."""

    impl = String
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> Any:
        length = self.impl_instance.length if isinstance(self.impl_instance, String) else None
        return String(length) if length and dialect.name == "sqlite" else Text()

    def process_bind_param(self, value: Any, dialect: Dialect) -> Any:
        return (
            value.encode("utf-8", "replace").decode("utf-8").replace("\x00", "?")
            if isinstance(value, str)
            else value
        )


def with_driver(url: URL) -> URL:
    """The address with psycopg 3 as its driver where it names none; `postgres://`, as many hosts write it, is
    the same."""
    return url.set(drivername="postgresql+psycopg") if url.drivername in ("postgresql", "postgres") else url


def connect_args(url: URL, seconds: int) -> dict[str, Any]:
    """How a connection is made: connecting takes at most so many seconds, data without a sign of arrival is
    waited for twice as long, and the server ends what takes longer than MILLISECONDS, so that neither a lost
    network nor another program's lock holds a page up for good. What the address says itself goes first."""
    limits = " ".join(f"-c {name}={value}" for name, value in MILLISECONDS.items())
    chosen = {
        "connect_timeout": seconds,
        "tcp_user_timeout": 2_000 * seconds,
        "application_name": "omnidemo",
        "options": limits,
    }
    return {name: value for name, value in chosen.items() if name not in url.query}


def lock_writers(connection: Connection) -> None:
    """Wait until no other process writes; the lock goes with the transaction. So a write reads what is there,
    as with SQLite."""
    connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({WRITERS})")


def identity(connection: Connection) -> int:
    """A number that another database of the same name, or tables made anew, would not have."""
    return int(connection.exec_driver_sql("SELECT 'requests'::regclass::oid::bigint").scalar_one())


def is_down(error: Exception) -> bool | None:
    """Whether PostgreSQL failed, rather than this one write; None where the error is not its own."""
    code = getattr(getattr(error, "orig", None), "sqlstate", None)
    return None if code is None else code.startswith(DOWN)
