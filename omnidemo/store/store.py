"""What outlives a restart: history, n-gram caches, adapter versions and the loss curve."""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, wait
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

from sqlalchemy import Connection, case, delete, func, insert, make_url, select, update

from omnidemo.records import AdapterVersion, Agreement, NgramEntry, Probe, RequestRecord, TrainStep
from omnidemo.store import csv_export, learning_tables, pruning, recordings
from omnidemo.store import sqlite_copy as backup
from omnidemo.store.database import Database, StoreStatus
from omnidemo.store.tables import (
    AdapterRow,
    Base,
    NgramRow,
    PairRow,
    ProbeRow,
    RequestRow,
    RoundRow,
    SessionRow,
    StepRow,
    drafted_per_round,
    latest,
    number,
    request_row,
    requests_query,
    round_row,
    utc,
)
from omnidemo.store.visitors import owned

__all__ = ["Store", "StoreStatus", "restore"]
log = logging.getLogger(__name__)
DEFAULT_URL = "sqlite:///storage/omnidemo.db"
CHUNK = 500  # ids in one statement; databases limit its parameters
CURVE = ["created_at", "kind", "method", "domain", "acceptance_rate", "block_efficiency", "tokens_per_second", "estimated_speedup"]
CURVE += ["ngram_hits", "cache_entries", "cache_bytes", "adapter_version", "topic", "agreement", "same_first"]
Rows = list[dict[str, Any]]


class Store:
    """Writes return at once and are done by one thread; reads see committed data. Neither raises because of the database:
    `status` says what is wrong, and writes wait (up to `queue_size`) until it works again."""

    def __init__(
        self,
        url: str = "",
        on_status: Callable[[StoreStatus], None] | None = None,
        *,
        retry_seconds: float = 3.0,
        queue_size: int = 5000,
    ) -> None:
        self._private: set[str] = set()  # opted out in this process: holds even where the database is down
        self._database = Database(url or DEFAULT_URL, on_status, retry_seconds, queue_size)
        self._to_renew: list[weakref.WeakMethod[Callable[[], object]]] = []
        self._database.renewed = self._renew

    @property
    def status(self) -> StoreStatus:
        return self._database.status

    def when_renewed(self, write_again: Callable[[], object]) -> None:
        """Have a method called, as long as its object lives, after the database was deleted or replaced: it writes what it still knows."""
        self._to_renew.append(weakref.WeakMethod(write_again))

    def _renew(self) -> None:
        for known in self._to_renew:
            if (write_again := known()) is not None:
                try:
                    write_again()
                except Exception as error:  # the others write all the same
                    log.warning("after the database was replaced: %s", error)

    def flush(self, timeout: float = 10.0) -> bool:
        """Wait until everything written so far is in the database; False after `timeout` seconds."""
        return self._database.flush(timeout)

    def close(self) -> None:
        """Write what waits and stop; later writes are counted as lost."""
        self._database.close()

    # --- sessions and requests ---------------------------------------------------------------------------------------

    def start_session(self, session: str, *, keep: bool = True, learn: bool = True) -> None:
        """Note what a session agreed to; may be called again to change it. Requests of a session with keep=False are not stored."""
        (self._private.discard if keep else self._private.add)(session)
        now = utc()

        def write(connection: Connection) -> None:
            changed = connection.execute(update(SessionRow).where(SessionRow.id == session).values(keep=keep, learn=learn))
            if not changed.rowcount:
                connection.execute(insert(SessionRow).values(id=session, created_at=now, keep=keep, learn=learn))

        self._database.submit(write)

    def record_request(self, record: RequestRecord) -> None:
        """Store a request and its rounds, both or neither; its session is noted where it was not started. The tokens of the rounds are
        kept for the newest chats of a session (`recordings`)."""
        if record.session in self._private:
            return

        def write(connection: Connection) -> None:
            keep = connection.scalar(select(SessionRow.keep).where(SessionRow.id == record.session))
            if keep is False:
                return
            if keep is None:
                connection.execute(insert(SessionRow).values(id=record.session, created_at=utc(record.created_at), keep=True, learn=True))
            row = request_row(record, _pair_id(connection, record.target, record.drafter))
            key = connection.execute(insert(RequestRow).values(**row)).inserted_primary_key
            assert key is not None
            rounds = [round_row(one, key[0]) for one in record.generation.rounds]
            if rounds:
                connection.execute(insert(RoundRow), rounds)
            if recordings.wanted(record):
                recordings.add(connection, key[0], record)

        self._database.submit(write)

    def requests(
        self,
        *,
        target: str | None = None,
        drafter: str | None = None,
        method: str | None = None,
        session: str | None = None,
        kind: str | None = None,
        limit: int | None = 200,
        newest_first: bool = True,
    ) -> Rows:
        """The newest `limit` requests (None: all) as plain dicts, in the order asked for."""
        query = requests_query(target=target, drafter=drafter, method=method, session=session, kind=kind)
        rows = self._rows(latest(query, RequestRow.id, limit))
        return rows if newest_first else rows[::-1]

    def recording(self, request: int, *, session: str | None) -> dict[str, Any] | None:
        """The recorded rounds of a request, if it is of that session (None: any): their `lines`, how many of the `rounds` were `kept`,
        and target, drafter and what `recordings.ABOUT` names of the request."""
        return self._database.read(lambda connection: recordings.read(connection, request, session), None)

    def recorded(self, requests: Iterable[int]) -> set[int]:
        """Which of these requests have recorded rounds."""
        return self._database.read(lambda connection: recordings.among(connection, requests), set())

    def sessions(self) -> Rows:
        """All sessions, newest first: id, created_at, keep, learn, number of stored requests, time of the last one."""
        own = SessionRow.__table__.columns
        query = select(*own, func.count(RequestRow.id).label("requests"), func.max(RequestRow.created_at).label("last_request_at"))
        query = query.outerjoin(RequestRow, RequestRow.session_id == SessionRow.id).group_by(*own)
        return self._rows(query.order_by(SessionRow.created_at.desc(), SessionRow.id))

    def delete_session(self, session: str) -> int:
        """Delete a session with its requests and rounds; how many requests went. An opt-out stays noted."""

        def write(connection: Connection) -> int:
            gone = connection.execute(delete(RequestRow).where(RequestRow.session_id == session)).rowcount
            connection.execute(delete(SessionRow).where(SessionRow.id == session, SessionRow.keep, SessionRow.learn))
            return gone

        return _wait(self._database.submit(write))

    def delete_requests(self, ids: Iterable[int]) -> int:
        """Delete requests with their rounds; how many there were."""
        wanted = [int(one) for one in ids]

        def write(connection: Connection) -> int:
            chunks = (wanted[start : start + CHUNK] for start in range(0, len(wanted), CHUNK))
            return sum(connection.execute(delete(RequestRow).where(RequestRow.id.in_(chunk))).rowcount for chunk in chunks)

        return _wait(self._database.submit(write))

    def forget_visitor(self, name: str) -> int:
        """Delete all requests of a visitor of a public app, and what was noted of them; how many requests went."""
        self._private.difference_update(pruning.sessions_of(name))
        return _wait(self._database.submit(lambda connection: pruning.forget_sessions(connection, name)))

    def prune_visitors(self, hours: float, each: int, together: int) -> int:
        """Delete what visitors left behind, see `pruning.prune`; how many requests went."""
        gone = _wait(self._database.submit(lambda connection: pruning.prune(connection, hours, each, together)))
        known = {row["id"] for row in self._rows(select(SessionRow.id))}
        if self.status.ok:
            self._private -= {name for name in self._private if owned(name) and name not in known}
        return gone

    def forget_domain(self, domain: str) -> None:
        """Delete the versions and steps of the lines of that name, of all pairs."""
        self._database.submit(lambda connection: pruning.forget_domain(connection, domain))

    def curve(self, target: str, drafter: str, limit: int | None = 1000, sessions: Sequence[str] | None = None) -> Rows:
        """The newest `limit` requests of a pair (of these `sessions` only), oldest first; `index` counts the pair's stored requests
        from 1, `draft_length` is what the drafter drew per round on average, `policy` the draft policy and `temperature` that of the
        request."""
        columns = [getattr(RequestRow, name) for name in (*CURVE, "metrics", "settings")]
        query = select(RequestRow.id, *columns).join(PairRow).where(PairRow.target == target, PairRow.drafter == drafter)
        if sessions is not None:
            query = query.where(RequestRow.session_id.in_(sessions))

        def read(connection: Connection) -> Rows:
            total = connection.scalar(select(func.count()).select_from(query.subquery())) or 0
            rows = [dict(row) for row in connection.execute(latest(query, RequestRow.id, limit)).mappings()]
            lengths = [drafted_per_round(row.pop("metrics")) for row in rows]
            asked = [_asked(row.pop("settings")) for row in rows]
            return [{"index": total - back} | row | asked[back] | {"draft_length": lengths[back]} for back, row in enumerate(rows)][::-1]

        return self._database.read(read, [])

    def counts(self) -> dict[str, int]:
        """Rows of every table; empty where the database does not work."""

        def read(connection: Connection) -> dict[str, int]:
            tables = Base.metadata.sorted_tables
            return {table.name: connection.scalar(select(func.count()).select_from(table)) or 0 for table in tables}

        return self._database.read(read, {})

    # --- n-gram caches -----------------------------------------------------------------------------------------------

    def save_ngrams(self, target: str, drafter: str, entries: Iterable[NgramEntry], removed: Iterable[int] = ()) -> None:
        """Write n-grams over those of the same target id, and drop the `removed` target ids (an entry wins over its removal)."""
        new = {entry.target_id: entry for entry in entries}
        gone = [int(one) for one in {*removed, *new}]
        if not gone:
            return

        def write(connection: Connection) -> None:
            pair = _pair_id(connection, target, drafter)
            for start in range(0, len(gone), CHUNK):
                chunk = gone[start : start + CHUNK]
                connection.execute(delete(NgramRow).where(NgramRow.pair_id == pair, NgramRow.target_id.in_(chunk)))
            if new:
                connection.execute(insert(NgramRow), [{"pair_id": pair} | _ngram_row(entry) for entry in new.values()])

        self._database.submit(write)

    def load_ngrams(self, target: str, drafter: str) -> list[NgramEntry]:
        """The n-grams of a pair, least recently inserted first."""
        columns = [column for column in NgramRow.__table__.columns if column.name != "pair_id"]
        query = select(*columns).join(PairRow, PairRow.id == NgramRow.pair_id).where(PairRow.target == target, PairRow.drafter == drafter)
        rows = self._rows(query.order_by(NgramRow.inserted_at, NgramRow.target_id))
        return [NgramEntry(**row | {"drafter_ids": tuple(row["drafter_ids"])}) for row in rows]

    # --- adapters ----------------------------------------------------------------------------------------------------

    def add_adapter(self, version: AdapterVersion, active: bool = True) -> None:
        """Note a published version of its line (again: it is replaced); `active` makes it the current one."""

        def write(connection: Connection) -> None:
            pair = _pair_id(connection, version.target, version.drafter)
            line = _line(AdapterRow, pair, version.domain)
            connection.execute(delete(AdapterRow).where(*line, AdapterRow.version == version.version))
            if active:
                connection.execute(update(AdapterRow).where(*line).values(active=False))
            row = {name: value for name, value in asdict(version).items() if name not in ("target", "drafter")}
            row |= {name: int(row[name]) for name in ("version", "requests_seen", "steps")}
            row |= {"created_at": utc(version.created_at), "loss": number(version.loss), "effect": _finite(version.effect)}
            connection.execute(insert(AdapterRow).values(pair_id=pair, active=active, **row))

        self._database.submit(write)

    def adapters(self, target: str, drafter: str, domain: str = "default") -> list[AdapterVersion]:
        """The versions of a line, newest first."""
        hidden = ("pair_id", "active")
        columns = [column for column in AdapterRow.__table__.columns if column.name not in hidden]
        query = select(*columns, PairRow.target, PairRow.drafter).join(PairRow, PairRow.id == AdapterRow.pair_id)
        query = query.where(PairRow.target == target, PairRow.drafter == drafter, AdapterRow.domain == domain)
        return [AdapterVersion(**row) for row in self._rows(query.order_by(AdapterRow.version.desc()))]

    def lines(self, target: str, drafter: str) -> Rows:
        """The lines of a pair that have versions, by name: domain, number of versions, the newest one, the active one (0: the base
        drafter), and the most requests that one had seen."""
        active = func.coalesce(func.max(case((AdapterRow.active, AdapterRow.version))), 0).label("active")
        measured = [func.count().label("versions"), func.max(AdapterRow.version).label("newest"), active]
        query = select(AdapterRow.domain, *measured, func.max(AdapterRow.requests_seen).label("requests_seen"))
        query = query.join(PairRow, PairRow.id == AdapterRow.pair_id).where(PairRow.target == target, PairRow.drafter == drafter)
        return self._rows(query.group_by(AdapterRow.domain).order_by(AdapterRow.domain))

    def active_version(self, target: str, drafter: str, domain: str = "default") -> int:
        """The current version of a line; 0 is the base drafter."""
        query = select(AdapterRow.version).join(PairRow, PairRow.id == AdapterRow.pair_id)
        query = query.where(PairRow.target == target, PairRow.drafter == drafter, AdapterRow.domain == domain, AdapterRow.active)
        return self._database.read(lambda connection: connection.scalar(query) or 0, 0)

    def set_active(self, target: str, drafter: str, domain: str, version: int) -> None:
        """Make a stored version the current one; 0 goes back to the base drafter."""

        def write(connection: Connection) -> None:
            line = _line(AdapterRow, _pair_id(connection, target, drafter), domain)
            connection.execute(update(AdapterRow).where(*line).values(active=AdapterRow.version == version))

        self._database.submit(write)

    def set_effect(self, target: str, drafter: str, domain: str, version: int, effect: Mapping[str, float]) -> None:
        """Note what a version was measured to change."""
        values = _finite(effect)

        def write(connection: Connection) -> None:
            line = _line(AdapterRow, _pair_id(connection, target, drafter), domain)
            connection.execute(update(AdapterRow).where(*line, AdapterRow.version == version).values(effect=values))

        self._database.submit(write)

    def forget_line(self, target: str, drafter: str, domain: str) -> None:
        """Reset a line: its versions, their probes and its training steps go."""

        def write(connection: Connection) -> None:
            pair = _pair_id(connection, target, drafter)
            for table in (AdapterRow, StepRow, ProbeRow):
                connection.execute(delete(table).where(*_line(table, pair, domain)))

        self._database.submit(write)

    def record_steps(self, target: str, drafter: str, domain: str, version: int, steps: Sequence[TrainStep]) -> None:
        """Append optimiser steps of a line to its loss curve; `version` is the adapter version they went into."""
        now, taken = utc(), [asdict(step) for step in steps]
        if not taken:
            return

        def write(connection: Connection) -> None:
            line = {"pair_id": _pair_id(connection, target, drafter), "domain": domain, "version": version, "created_at": now}
            rows = [{name: number(value) for name, value in step.items()} | {"step": int(step["step"])} | line for step in taken]
            connection.execute(insert(StepRow), rows)

        self._database.submit(write)

    def steps(self, target: str, drafter: str, domain: str = "default", limit: int | None = 1000) -> Rows:
        """The newest `limit` training steps of a line, oldest first."""
        columns = [column for column in StepRow.__table__.columns if column.name not in ("id", "pair_id")]
        query = select(*columns).join(PairRow, PairRow.id == StepRow.pair_id)
        query = query.where(PairRow.target == target, PairRow.drafter == drafter, StepRow.domain == domain)
        return self._rows(latest(query, StepRow.id, limit))[::-1]

    # --- what was learned, without a draft policy ----------------------------------------------------------------------

    def set_agreement(self, key: str, found: Agreement) -> None:
        """Note how far drafter and target agree on the answer whose generation has this key."""
        self._database.submit(lambda connection: learning_tables.write_agreement(connection, key, found))

    def record_probe(self, probe: Probe) -> None:
        """Note how a version does on the probe prompts of a topic (again: it is replaced)."""
        self._database.submit(
            lambda connection: learning_tables.write_probe(connection, _pair_id(connection, probe.target, probe.drafter), probe)
        )

    def probes(self, target: str, drafter: str, domain: str = "default", topic: str | None = None, *, shown: bool = False) -> Rows:
        """The probes of a line and of the fresh drafter (version 0), by version; `shown`: with the rounds of some prompts."""
        return self._rows(learning_tables.probes_query(target, drafter, domain, topic, shown))

    def banners(self, target: str, drafter: str) -> Rows:
        """How often the page called guessing slower than plain decoding; see `learned.count_banners`."""
        return learning_tables.count_banners(self._rows(learning_tables.banners_query(target, drafter)))

    # --- files -------------------------------------------------------------------------------------------------------

    def export_csv(self, kind: Literal["requests", "rounds", "steps"], path: Path, /, **filters: str | None) -> int:
        """Write a table as CSV and return its rows. Filters: target, drafter, domain; for requests and rounds also method,
        session, kind. Raises ValueError for an unknown table or filter, RuntimeError where database or file fail."""
        plan = csv_export.plan(kind, filters)
        if self.status.ok:
            self.flush()
        written = self._database.read(lambda connection: csv_export.write(connection, plan, Path(path)), None)
        if written is None:
            raise RuntimeError(f"The {kind} could not be exported to {path}: {self.status.message or 'the database gave no answer.'}")
        return written

    def backup(self, path: Path) -> None:
        """Copy the SQLite database to `path`, whole or not at all. Raises RuntimeError where that fails."""
        if self.status.ok:
            self.flush()
        backup.backup(self._database.file, Path(path))

    def _rows(self, query: Any) -> Rows:
        return self._database.read(lambda connection: [dict(row) for row in connection.execute(query).mappings()], [])


def restore(path: Path, url: str = "") -> bool:
    """Put a sound backup in place where the SQLite database of `url` does not exist yet; whether it did. Call it before `Store`."""
    address = make_url(url or DEFAULT_URL)
    if address.get_backend_name() != "sqlite" or not address.database:
        return False
    return backup.restore(Path(path), Path(address.database))


def _pair_id(connection: Connection, target: str, drafter: str) -> int:
    found = connection.scalar(select(PairRow.id).where(PairRow.target == target, PairRow.drafter == drafter))
    if found is not None:
        return found
    key = connection.execute(insert(PairRow).values(target=target, drafter=drafter)).inserted_primary_key
    assert key is not None
    return int(key[0])


def _line(table: type[AdapterRow | StepRow | ProbeRow], pair: int, domain: str) -> tuple[Any, Any]:
    return table.pair_id == pair, table.domain == domain


def _asked(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Draft policy and temperature of a request; a fixed length is part of the policy."""
    policy, length = settings.get("draft_policy"), settings.get("draft_length")
    return {"policy": f"fixed {length}" if policy == "fixed" else policy, "temperature": number(settings.get("temperature"))}


def _ngram_row(entry: NgramEntry) -> dict[str, Any]:
    counters = ("target_id", "hits", "accepts", "inserted_at", "last_used")
    return {name: int(getattr(entry, name)) for name in counters} | {"drafter_ids": [int(one) for one in entry.drafter_ids]}


def _finite(effect: Mapping[str, float]) -> dict[str, float | None]:
    return {name: number(value) for name, value in effect.items()}


def _wait(write: Future[int], timeout: float = 10.0) -> int:
    """The writer's answer; 0 where the database is down (the deletion stays queued)."""
    done = wait([write], timeout).done
    return write.result() if done and write.exception() is None else 0
