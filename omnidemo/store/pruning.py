"""Deletion of visitors' rows: requests after some hours, the oldest where there are too many, sessions that are empty then, and all that
belongs to a visitor or a line."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from sqlalchemy import ColumnElement, Connection, delete, func, select

from omnidemo.store.tables import LINE_TABLES, REQUESTS, SESSIONS, utc
from omnidemo.store.visitors import OWN

TRAFFIC = " traffic"  # ends the session of the sample prompts that a visitor plays


def sessions_of(name: str) -> tuple[str, str]:
    """The sessions of a visitor: what they wrote, and what they played."""
    return name, f"{name}{TRAFFIC}"


def prune(connection: Connection, hours: float, each: int, together: int) -> int:
    """Delete visitors' requests older than `hours`, all but the newest `each` of one visitor's session and `together` of all, and the
    sessions that are empty then; how many requests went."""
    before = utc((datetime.now(UTC) - timedelta(hours=hours)).isoformat())
    visitors = REQUESTS.c.session_id.startswith(OWN, autoescape=True)
    gone = connection.execute(delete(REQUESTS).where(visitors, REQUESTS.c.created_at < before)).rowcount
    counted = select(REQUESTS.c.session_id).where(visitors).group_by(REQUESTS.c.session_id).having(func.count() > each)
    for session in connection.scalars(counted).all():
        gone += _keep_newest(connection, REQUESTS.c.session_id == session, each)
    gone += _keep_newest(connection, visitors, together)
    empty = ~select(REQUESTS.c.id).where(REQUESTS.c.session_id == SESSIONS.c.id).exists()
    connection.execute(delete(SESSIONS).where(SESSIONS.c.id.startswith(OWN, autoescape=True), SESSIONS.c.created_at < before, empty))
    return gone


def forget_sessions(connection: Connection, name: str) -> int:
    """Delete all that is stored of a visitor's requests; how many there were."""
    sessions = sessions_of(name)
    gone = connection.execute(delete(REQUESTS).where(REQUESTS.c.session_id.in_(sessions))).rowcount
    connection.execute(delete(SESSIONS).where(SESSIONS.c.id.in_(sessions)))
    return gone


def forget_domain(connection: Connection, domain: str) -> None:
    """Delete the versions, training steps and probes of the lines of that name, of all pairs."""
    for table in LINE_TABLES:
        connection.execute(delete(table).where(table.c.domain == domain))


def _keep_newest(connection: Connection, which: ColumnElement[bool], count: int) -> int:
    last = connection.scalar(select(REQUESTS.c.id).where(which).order_by(REQUESTS.c.id.desc()).offset(count).limit(1))
    return 0 if last is None else connection.execute(delete(REQUESTS).where(which, REQUESTS.c.id <= last)).rowcount
