"""The store: history, n-gram caches, adapter versions and loss curves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal

from sqlalchemy import Connection, delete, func, insert, select, update

from omnidemo.core.metrics import Speed
from omnidemo.storage import csv_export, recordings
from omnidemo.storage.database import Rows
from omnidemo.storage.line_store import CHUNK
from omnidemo.storage.request_rows import RequestRecord, drafted_per_round, request_row, round_row
from omnidemo.storage.session_store import SessionStore, answer_of
from omnidemo.storage.tables import (
    RECORDINGS,
    REQUESTS,
    ROUNDS,
    SESSIONS,
    latest,
    number,
    of_pair,
    pair_id,
    requests_query,
    utc,
)

CURVE = [
    "created_at", "kind", "method", "domain", "tokens", "acceptance_rate", "alpha", "block_efficiency",
    "tokens_per_second",
    "speedup", "ngram_hits", "copied", "cache_entries", "cache_bytes", "adapter_version", "topic",
    "agreement", "same_first",
]  # fmt: skip


class Store(SessionStore):
    """Writes return at once and run in one thread; reads see committed data. Neither raises errors of the
    database: `status` names them, and up to `queue_size` writes wait until it works again."""

    def record_request(self, record: RequestRecord, agreed: bool = False) -> None:
        """Store a request and its rounds, both or neither, and its session, if new. The tokens of the rounds
        are kept for the newest chats of a session (`recordings`). agreed: keep this request, whatever later
        requests of the session chose (all clients without a key share a session)."""
        if not agreed and record.session in self._private:
            return

        def write(connection: Connection) -> None:
            keep = connection.scalar(select(SESSIONS.c.keep).where(SESSIONS.c.id == record.session))
            if (keep is False and not agreed) or self._has(connection, record.generation.key):
                return
            if keep is None:
                connection.execute(
                    insert(SESSIONS).values(
                        id=record.session, created_at=utc(record.created_at), keep=True, learn=True
                    )
                )
            row = request_row(record, pair_id(connection, record.target, record.drafter))
            key = connection.execute(insert(REQUESTS).values(**row)).inserted_primary_key
            assert key is not None
            rounds = [round_row(done, key[0]) for done in record.generation.rounds]
            if rounds:
                connection.execute(insert(ROUNDS), rounds)
            if recordings.wanted(record):
                recordings.add(connection, key[0], record)

        self.submit(write)

    def _has(self, connection: Connection, key: str) -> bool:
        """Whether the request is stored already: a server may die between a commit and its confirmation."""
        return (
            self.shared
            and bool(key)
            and connection.scalar(select(REQUESTS.c.id).where(REQUESTS.c.key == key)) is not None
        )

    def set_speed(self, key: str, speed: Speed) -> None:
        """Store the speed of the answer with this key; nothing where it was not stored."""
        values = {"speedup": speed.speedup, "speedup_low": speed.low, "speedup_high": speed.high}
        query = update(REQUESTS).where(REQUESTS.c.key == key).values(**values)
        self.submit(lambda connection: connection.execute(query))

    def requests(
        self, *, target: str | None = None, drafter: str | None = None, method: str | None = None,
        session: str | None = None, kind: str | None = None, id: int | None = None, limit: int | None = 200,
    ) -> Rows:  # fmt: skip
        """The newest `limit` requests (None: all), newest first."""
        query = requests_query(
            target=target, drafter=drafter, method=method, session=session, kind=kind, id=id
        )
        return self.rows(latest(query, REQUESTS.c.id, limit))

    def recording(self, request: int, *, session: str | None = None) -> dict[str, Any] | None:
        """The recorded rounds of a request of this session (None: of any): `lines`, `kept` of the `rounds`,
        target, drafter, and the columns `recordings.ABOUT`."""
        return self.read(lambda connection: recordings.read(connection, request, session), None)

    def recorded(self, requests: Iterable[int]) -> set[int]:
        """Which of these requests have recorded rounds."""
        query = select(RECORDINGS.c.request_id).where(RECORDINGS.c.request_id.in_(list(requests)))
        return self.read(lambda connection: set(connection.scalars(query)), set())

    def delete_requests(self, ids: Iterable[int]) -> int:
        """Delete requests with their rounds; their number."""
        wanted = [int(request) for request in ids]

        def write(connection: Connection) -> int:
            chunks = (wanted[start : start + CHUNK] for start in range(0, len(wanted), CHUNK))
            return sum(
                connection.execute(delete(REQUESTS).where(REQUESTS.c.id.in_(chunk))).rowcount
                for chunk in chunks
            )

        return answer_of(self.submit(write)) or 0

    def curve(self, target: str, drafter: str, limit: int | None = 1000, session: str | None = None) -> Rows:
        """The newest `limit` requests of a pair (only of this session), oldest first, with CURVE and:
        `index`, from 1 over the line's stored requests; `draft_length`, mean drafter tokens per round;
        `accepted`, `copied_earlier` and `forced` of `metrics.py`; `policy`, the draft policy, with
        `copying` where it was on; `temperature`."""
        query = of_pair(
            REQUESTS, target, drafter, *(REQUESTS.c[name] for name in ("id", *CURVE, "metrics", "settings"))
        )
        if session is not None:
            query = query.where(REQUESTS.c.session_id == session)

        def read(connection: Connection) -> Rows:
            lines = query.subquery().c.domain
            counts = connection.execute(select(lines, func.count()).group_by(lines))
            left = Counter({str(line): int(count) for line, count in counts})
            rows = [dict(row) for row in connection.execute(latest(query, REQUESTS.c.id, limit)).mappings()]
            for row in rows:
                metrics, line = row.pop("metrics"), row["domain"]
                row |= {"index": left[line], "draft_length": drafted_per_round(metrics)}
                row |= {name: metrics.get(name) for name in ("accepted", "copied_earlier", "forced")}
                row |= _asked(row.pop("settings"))
                left[line] -= 1
            return rows[::-1]

        return self.read(read, [])

    def topics(self, target: str, drafter: str, domain: str, limit: int) -> list[tuple[str | None, str]]:
        """Topic and time of the newest `limit` requests of a line, oldest first."""
        query = of_pair(REQUESTS, target, drafter, REQUESTS.c.topic, REQUESTS.c.created_at).where(
            REQUESTS.c.domain == domain
        )
        newest = latest(query, REQUESTS.c.id, limit)
        return self.read(
            lambda connection: [(topic, at) for topic, at in connection.execute(newest)][::-1], []
        )

    def copied_from(self, target: str, drafter: str, domain: str, tokens: int) -> list[tuple[str, str]]:
        """(prompt, answer) of a line's newest answers that may be copied from, newest first, up to so many
        tokens."""
        query = of_pair(REQUESTS, target, drafter, REQUESTS.c.tokens, REQUESTS.c.prompt, REQUESTS.c.answer)
        query = query.where(
            REQUESTS.c.domain == domain, REQUESTS.c.remembered, REQUESTS.c.answer.is_not(None)
        )

        def read(connection: Connection) -> list[tuple[str, str]]:
            answers, room = list[tuple[str, str]](), tokens
            for row in connection.execution_options(yield_per=100).execute(
                query.order_by(REQUESTS.c.id.desc())
            ):
                room -= row.tokens
                if room < 0:
                    break
                answers.append((row.prompt or "", row.answer))
            return answers

        return self.read(read, [])

    def forget_copied(self, domain: str, target: str | None = None, drafter: str | None = None) -> None:
        """Exclude the answers of a line (without a pair: of all lines of that name) from copying; the answers
        stay. Waits for the write."""

        def write(connection: Connection) -> None:
            which = [REQUESTS.c.domain == domain, REQUESTS.c.remembered]
            if target is not None and drafter is not None:
                which.append(REQUESTS.c.pair_id == pair_id(connection, target, drafter))
            connection.execute(update(REQUESTS).where(*which).values(remembered=False))

        self.submit(write)
        self.flush(while_ok=True)

    def export_csv(
        self, kind: Literal["requests", "rounds", "steps"], path: Path, /, **filters: str | None
    ) -> int:
        """Write a table as CSV; the number of rows. Filters: target, drafter, domain; for requests and rounds
        also method, topic, session, kind. ValueError for an unknown table or filter, RuntimeError where
        database or file fail."""
        query = csv_export.make_query(kind, filters)
        if self.status.ok:
            self.flush()
        written = self.read(lambda connection: csv_export.write(connection, query, Path(path)), None)
        if written is None:
            raise RuntimeError(
                f"The {kind} could not be exported to {path}:"
                f" {self.status.message or 'the database gave no answer.'}"
            )
        return written


def _asked(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Draft policy (with a fixed length, and with copying) and temperature of a request."""
    policy, length = settings.get("draft_policy"), settings.get("draft_length")
    policy = f"fixed {length}" if policy == "fixed" else policy
    return {
        "policy": f"{policy} copying" if settings.get("copying") else policy,
        "temperature": number(settings.get("temperature")),
    }
