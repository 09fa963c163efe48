"""Deletion of visitors' rows: requests after some hours, the oldest where there are too many, sessions that are empty then, and all that
belongs to a visitor or a line."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from sqlalchemy import ColumnElement, Connection, delete, func, select

from omnidemo.store.tables import AdapterRow, ProbeRow, RequestRow, SessionRow, StepRow, utc
from omnidemo.store.visitors import OWN

TRAFFIC = " traffic"  # ends the session of the sample prompts that a visitor plays


def sessions_of(name: str) -> tuple[str, str]:
    """The sessions of a visitor: what they wrote, and what they played."""
    return name, f"{name}{TRAFFIC}"


def prune(connection: Connection, hours: float, each: int, together: int) -> int:
    """Delete visitors' requests older than `hours`, all but the newest `each` of one visitor's session and `together` of all, and the
    sessions that are empty then; how many requests went."""
    before = utc((datetime.now(UTC) - timedelta(hours=hours)).isoformat())
    visitors = RequestRow.session_id.startswith(OWN, autoescape=True)
    gone = connection.execute(delete(RequestRow).where(visitors, RequestRow.created_at < before)).rowcount
    counted = select(RequestRow.session_id).where(visitors).group_by(RequestRow.session_id).having(func.count() > each)
    for session in connection.scalars(counted).all():
        gone += _keep_newest(connection, RequestRow.session_id == session, each)
    gone += _keep_newest(connection, visitors, together)
    empty = ~select(RequestRow.id).where(RequestRow.session_id == SessionRow.id).exists()
    connection.execute(delete(SessionRow).where(SessionRow.id.startswith(OWN, autoescape=True), SessionRow.created_at < before, empty))
    return gone


def forget_sessions(connection: Connection, name: str) -> int:
    """Delete all that is stored of a visitor's requests; how many there were."""
    sessions = sessions_of(name)
    gone = connection.execute(delete(RequestRow).where(RequestRow.session_id.in_(sessions))).rowcount
    connection.execute(delete(SessionRow).where(SessionRow.id.in_(sessions)))
    return gone


def forget_domain(connection: Connection, domain: str) -> None:
    """Delete the versions, training steps and probes of the lines of that name, of all pairs."""
    for table in (AdapterRow, StepRow, ProbeRow):
        connection.execute(delete(table).where(table.domain == domain))


def _keep_newest(connection: Connection, which: ColumnElement[bool], count: int) -> int:
    last = connection.scalar(select(RequestRow.id).where(which).order_by(RequestRow.id.desc()).offset(count).limit(1))
    return 0 if last is None else connection.execute(delete(RequestRow).where(which, RequestRow.id <= last)).rowcount
