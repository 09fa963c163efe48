"""The table of recorded rounds: the newest answers of each session, while their requests are kept."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, delete, insert, select

from omnidemo.storage.recorded_rounds import pack, unpack
from omnidemo.storage.request_rows import RequestRecord
from omnidemo.storage.tables import PAIRS, RECORDINGS, REQUESTS

MOST_ANSWERS = 50  # of a session
# columns of the request that a recording returns
ABOUT = ("prompt", "method", "adapter_version", "created_at", "finish_reason", "metrics")


def wanted(record: RequestRecord) -> bool:
    """Whether to record: only chats, and only with their texts."""
    return record.kind == "chat" and record.prompt is not None and bool(record.generation.rounds)


def add(connection: Connection, request_id: int, record: RequestRecord) -> None:
    """Record the rounds of a stored request; the oldest recordings beyond MOST_ANSWERS are deleted."""
    rounds = record.generation.rounds
    packed, kept = pack(rounds)
    if not kept:
        return
    connection.execute(
        insert(RECORDINGS).values(request_id=request_id, packed=packed, kept=kept, rounds=len(rounds))
    )
    own = select(RECORDINGS.c.request_id).join(REQUESTS).where(REQUESTS.c.session_id == record.session)
    old = own.order_by(RECORDINGS.c.request_id.desc()).offset(MOST_ANSWERS)
    connection.execute(delete(RECORDINGS).where(RECORDINGS.c.request_id.in_(old)))


def read(connection: Connection, request_id: int, session: str | None) -> dict[str, Any] | None:
    """A recording with facts of its request; None where there is none in this session (None: in any)."""
    request = [REQUESTS.c[name] for name in ABOUT]
    query = select(
        RECORDINGS.c.packed, RECORDINGS.c.kept, RECORDINGS.c.rounds, *request, PAIRS.c.target, PAIRS.c.drafter
    )
    query = query.select_from(RECORDINGS).join(REQUESTS).join(PAIRS).where(REQUESTS.c.id == request_id)
    if session is not None:
        query = query.where(REQUESTS.c.session_id == session)
    row = connection.execute(query).mappings().first()
    if row is None:
        return None
    about = dict(row)
    return about | {"lines": unpack(about.pop("packed"))}
