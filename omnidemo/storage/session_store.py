"""The part of the store for sessions: their consent, and the deletion of visitors' data."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future, wait
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TypeVar

from sqlalchemy import ColumnElement, Connection, delete, func, insert, select, update

from omnidemo.storage.database import Rows
from omnidemo.storage.line_store import LineStore
from omnidemo.storage.tables import KEYS, REQUESTS, SESSIONS, utc
from omnidemo.storage.visitors import OWN, owned

T = TypeVar("T")
ANSWER_SECONDS = 10.0  # longest wait for the result of a write


class SessionStore(LineStore):
    """The part of `Store` for sessions."""

    def __init__(self, url: str | Path, *, retry_seconds: float = 3.0, queue_size: int = 5000) -> None:
        self._private: set[str] = set()  # opted out in this process, valid while the database is down too
        super().__init__(url, retry_seconds, queue_size)

    def start_session(self, session: str, *, keep: bool = True, learn: bool = True) -> None:
        """Store the consent of a session; a later call changes it. With keep=False `record_request` without
        `agreed` stores nothing."""
        (self._private.discard if keep else self._private.add)(session)
        now = utc()

        def write(connection: Connection) -> None:
            changed = connection.execute(
                update(SESSIONS).where(SESSIONS.c.id == session).values(keep=keep, learn=learn)
            )
            if not changed.rowcount:
                connection.execute(
                    insert(SESSIONS).values(id=session, created_at=now, keep=keep, learn=learn)
                )

        self.submit(write)

    def sessions(self) -> Rows:
        """All sessions, newest first: id, created_at, keep, learn, number of stored requests, time of the
        last."""
        query = select(
            SESSIONS,
            func.count(REQUESTS.c.id).label("requests"),
            func.max(REQUESTS.c.created_at).label("last_request_at"),
        )
        query = query.outerjoin(REQUESTS, REQUESTS.c.session_id == SESSIONS.c.id).group_by(*SESSIONS.c)
        return self.rows(query.order_by(SESSIONS.c.created_at.desc(), SESSIONS.c.id))

    def delete_session(self, session: str) -> int:
        """Delete a session with its requests and rounds; the number of deleted requests. An opt-out stays."""
        return self._forget([session], SESSIONS.c.keep, SESSIONS.c.learn)

    def forget_visitor(self, name: str) -> int:
        """Delete the sessions and requests of a visitor of a public app; the number of deleted requests."""
        self._private.discard(name)
        return self._forget([name])

    def _forget(self, sessions: Sequence[str], *which: ColumnElement[bool]) -> int:
        def write(connection: Connection) -> int:
            gone = connection.execute(delete(REQUESTS).where(REQUESTS.c.session_id.in_(sessions))).rowcount
            connection.execute(delete(SESSIONS).where(SESSIONS.c.id.in_(sessions), *which))
            return gone

        return answer_of(self.submit(write)) or 0

    def common_key(self, own: bytes) -> bytes | None:
        """The key by which all machines of a shared database sign visitors' ids; `own` becomes it where there
        was none. With SQLite `own`. None while the database does not answer."""
        if not self.shared:
            return own
        query = select(KEYS.c.key).where(KEYS.c.id == 1)

        def write(connection: Connection) -> bytes:
            noted: bytes | None = connection.scalar(query)
            if noted is None:
                connection.execute(insert(KEYS).values(id=1, key=own))
            return own if noted is None else bytes(noted)

        if not self.status.ok:
            return None
        key: bytes | None = self.read(lambda connection: connection.scalar(query), None)
        return bytes(key) if key is not None else answer_of(self.submit(write))

    def prune_visitors(self, hours: float, each: int, together: int) -> int:
        """Delete visitors' requests older than `hours`, all but the newest `each` of one visitor and
        `together` of all, and then empty sessions older than `hours`; the number of deleted requests."""
        before = utc((datetime.now(UTC) - timedelta(hours=hours)).isoformat())
        visitors = REQUESTS.c.session_id.startswith(OWN, autoescape=True)

        def write(connection: Connection) -> int:
            gone = connection.execute(
                delete(REQUESTS).where(visitors, REQUESTS.c.created_at < before)
            ).rowcount
            counted = select(REQUESTS.c.session_id).where(visitors).group_by(REQUESTS.c.session_id)
            for visitor in connection.scalars(counted.having(func.count() > each)).all():
                gone += _keep_newest(connection, REQUESTS.c.session_id == visitor, each)
            gone += _keep_newest(connection, visitors, together)
            full = select(REQUESTS.c.id).where(REQUESTS.c.session_id == SESSIONS.c.id).exists()
            old = (SESSIONS.c.id.startswith(OWN, autoescape=True), SESSIONS.c.created_at < before)
            connection.execute(delete(SESSIONS).where(*old, ~full))
            return gone

        gone = answer_of(self.submit(write)) or 0
        there = {row["id"] for row in self.rows(select(SESSIONS.c.id))}
        if self.status.ok:
            self._private -= {name for name in self._private if owned(name) and name not in there}
        return gone


def _keep_newest(connection: Connection, which: ColumnElement[bool], count: int) -> int:
    last = connection.scalar(
        select(REQUESTS.c.id).where(which).order_by(REQUESTS.c.id.desc()).offset(count).limit(1)
    )
    if last is None:
        return 0
    return connection.execute(delete(REQUESTS).where(which, REQUESTS.c.id <= last)).rowcount


def answer_of(write: Future[T]) -> T | None:
    """The result of a write; None where the database is down (the write stays queued)."""
    done = wait([write], ANSWER_SECONDS).done
    return write.result() if done and write.exception() is None else None
