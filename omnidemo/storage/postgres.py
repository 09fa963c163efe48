"""PostgreSQL's peculiarities: its text, its driver, limits on waiting, a lock for writers, the meaning of
errors."""

from __future__ import annotations

from typing import Any

from sqlalchemy import URL, Connection, Dialect, String, Text, TypeDecorator

WRITERS = 0x6F6D6E69  # the advisory lock of writing transactions and migrations
# prefixes of error codes after which a later try may succeed
DOWN = ("08", "25", "3D", "40", "53", "55", "57", "58", "XX", "42P01", "42501")
MILLISECONDS = {
    "lock_timeout": 5_000,
    "statement_timeout": 60_000,
    "idle_in_transaction_session_timeout": 60_000,
}


class CleanText(TypeDecorator[str]):
    """Text for every database, in rows and in comparisons: lone surrogates and NUL become `?`. Only SQLite
    gets lengths, which it does not enforce."""

    impl = String
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> Any:
        length = self.impl_instance.length if isinstance(self.impl_instance, String) else None
        return String(length) if length and dialect.name == "sqlite" else Text()

    def process_bind_param(self, value: Any, dialect: Dialect) -> Any:
        if not isinstance(value, str):
            return value
        return value.encode("utf-8", "replace").decode("utf-8").replace("\x00", "?")


def with_driver(url: URL) -> URL:
    """The address with the driver psycopg 3 where it names none; many hosts write `postgres://`."""
    return url.set(drivername="postgresql+psycopg") if url.drivername in ("postgresql", "postgres") else url


def connect_args(url: URL, seconds: int) -> dict[str, Any]:
    """Arguments of a connection with time limits, so that neither a lost network nor another program's lock
    blocks a page for good: `seconds` for connecting, twice as long for unconfirmed data, MILLISECONDS for
    statements. Arguments in the address win."""
    limits = " ".join(f"-c {name}={value}" for name, value in MILLISECONDS.items())
    chosen = {
        "connect_timeout": seconds,
        "tcp_user_timeout": 2_000 * seconds,
        "application_name": "omnidemo",
        "options": limits,
    }
    return {name: value for name, value in chosen.items() if name not in url.query}


def lock_writers(connection: Connection) -> None:
    """Wait until no other process writes; the lock ends with the transaction. So a write reads current rows,
    as with SQLite."""
    connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({WRITERS})")


def is_down(error: Exception) -> bool | None:
    """Whether PostgreSQL failed and not one write; None for errors of other origin."""
    code = getattr(getattr(error, "orig", None), "sqlstate", None)
    return None if code is None else code.startswith(DOWN)
