"""The tables of the store, and the rows that the dataclasses of `records.py` become. Times are UTC ISO 8601 text, durations seconds."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import JSON, Boolean, Float, ForeignKey, Index, Integer, LargeBinary, Select, UniqueConstraint, desc, false, select
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from omnidemo.records import RequestRecord, Round
from omnidemo.store.postgres import Words, text


class Base(DeclarativeBase):
    """Parent of all tables; `Base.metadata` must equal what the migrations build (a test compares them)."""


class PairRow(Base):
    """A target and a drafter."""

    __tablename__ = "pairs"
    __table_args__ = (UniqueConstraint("target", "drafter", name="uq_pairs_target_drafter"),)
    id: Mapped[int] = mapped_column(Integer, primary_key=True)
    target: Mapped[str] = mapped_column(Words(400))
    drafter: Mapped[str] = mapped_column(Words(400))


class SessionRow(Base):
    """A visitor's session and what they agreed to; one that opted out keeps only this row."""

    __tablename__ = "sessions"
    id: Mapped[str] = mapped_column(Words(200), primary_key=True)
    created_at: Mapped[str] = mapped_column(Words(40))
    keep: Mapped[bool] = mapped_column(Boolean)
    learn: Mapped[bool] = mapped_column(Boolean)


class KeyRow(Base):
    """The one key that signs visitors' ids, in a database that machines share; with SQLite it lies in a file."""

    __tablename__ = "visitor_key"
    id: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    key: Mapped[bytes] = mapped_column(LargeBinary)


class RequestRow(Base):
    """One request. The main metrics are columns, all of them are in `metrics`; `prompt` and `answer` may be withheld (NULL)."""

    __tablename__ = "requests"
    __table_args__ = (
        Index("ix_requests_pair", "pair_id", "id"),
        Index("ix_requests_session", "session_id", "id"),
        Index("ix_requests_key", "key"),
        {"sqlite_autoincrement": True},  # an id is never used again, so a stale selection cannot delete another row
    )
    id: Mapped[int] = mapped_column(Integer, primary_key=True)
    session_id: Mapped[str] = mapped_column(ForeignKey("sessions.id", ondelete="CASCADE"))
    pair_id: Mapped[int] = mapped_column(ForeignKey("pairs.id", ondelete="CASCADE"))
    created_at: Mapped[str] = mapped_column(Words(40))
    kind: Mapped[str] = mapped_column(Words(40))
    method: Mapped[str] = mapped_column(Words(80))
    domain: Mapped[str] = mapped_column(Words(200))
    adapter_version: Mapped[int] = mapped_column(Integer)
    seed: Mapped[str | None] = mapped_column(Words(40))  # text: a seed may have 64 bits without a sign
    prompt_tokens: Mapped[int] = mapped_column(Integer)
    tokens: Mapped[int] = mapped_column(Integer)
    seconds: Mapped[float | None] = mapped_column(Float)
    tokens_per_second: Mapped[float | None] = mapped_column(Float)
    acceptance_rate: Mapped[float | None] = mapped_column(Float)
    alpha: Mapped[float | None] = mapped_column(Float)
    block_efficiency: Mapped[float | None] = mapped_column(Float)
    ngram_hits: Mapped[int] = mapped_column(Integer)
    time_to_first_token: Mapped[float | None] = mapped_column(Float)
    engine_overhead: Mapped[float | None] = mapped_column(Float)
    estimated_speedup: Mapped[float | None] = mapped_column(Float)
    cache_entries: Mapped[int] = mapped_column(Integer)
    cache_bytes: Mapped[int] = mapped_column(Integer)
    finish_reason: Mapped[str] = mapped_column(Words(40))
    settings: Mapped[dict[str, Any]] = mapped_column(JSON)
    metrics: Mapped[dict[str, Any]] = mapped_column(JSON)
    prompt: Mapped[str | None] = mapped_column(Words())
    answer: Mapped[str | None] = mapped_column(Words())
    key: Mapped[str | None] = mapped_column(Words(40))  # of its `Generation`, by which the agreement finds its row
    topic: Mapped[str | None] = mapped_column(Words(200))
    agreement: Mapped[float | None] = mapped_column(Float)  # measured later, and only where a trace was left
    same_first: Mapped[float | None] = mapped_column(Float)
    slower: Mapped[bool | None] = mapped_column(Boolean)


class RoundRow(Base):
    """The counters and times of one round of a request."""

    __tablename__ = "rounds"
    request_id: Mapped[int] = mapped_column(ForeignKey("requests.id", ondelete="CASCADE"), primary_key=True)
    index: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    draft_length: Mapped[int] = mapped_column(Integer)
    drafted: Mapped[int] = mapped_column(Integer)
    proposed: Mapped[int] = mapped_column(Integer)
    accepted: Mapped[int] = mapped_column(Integer)
    judged: Mapped[int] = mapped_column(Integer)
    ngram_hits: Mapped[int] = mapped_column(Integer)
    emitted: Mapped[int] = mapped_column(Integer)
    draft_seconds: Mapped[float | None] = mapped_column(Float)
    verify_seconds: Mapped[float | None] = mapped_column(Float)
    settle_seconds: Mapped[float | None] = mapped_column(Float)
    other_seconds: Mapped[float | None] = mapped_column(Float)
    total_seconds: Mapped[float | None] = mapped_column(Float)


class RecordingRow(Base):
    """The rounds of an answer with their tokens, packed (`recorded_rounds.pack`): the first `kept` of `rounds`."""

    __tablename__ = "recordings"
    request_id: Mapped[int] = mapped_column(ForeignKey("requests.id", ondelete="CASCADE"), primary_key=True, autoincrement=False)
    packed: Mapped[bytes] = mapped_column(LargeBinary)
    kept: Mapped[int] = mapped_column(Integer)
    rounds: Mapped[int] = mapped_column(Integer)


class NgramRow(Base):
    """One n-gram of a pair's cache: the drafter ids that spell a target id."""

    __tablename__ = "ngrams"
    pair_id: Mapped[int] = mapped_column(ForeignKey("pairs.id", ondelete="CASCADE"), primary_key=True)
    target_id: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    drafter_ids: Mapped[list[int]] = mapped_column(JSON)
    hits: Mapped[int] = mapped_column(Integer)
    accepts: Mapped[int] = mapped_column(Integer)
    inserted_at: Mapped[int] = mapped_column(Integer)
    last_used: Mapped[int] = mapped_column(Integer)


class AdapterRow(Base):
    """A published adapter version of a line (pair and domain); at most one version of a line is active."""

    __tablename__ = "adapter_versions"
    pair_id: Mapped[int] = mapped_column(ForeignKey("pairs.id", ondelete="CASCADE"), primary_key=True)
    domain: Mapped[str] = mapped_column(Words(200), primary_key=True)
    version: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    path: Mapped[str | None] = mapped_column(Words())
    sha256: Mapped[str | None] = mapped_column(Words(64))
    parent: Mapped[int | None] = mapped_column(Integer)
    requests_seen: Mapped[int] = mapped_column(Integer)
    steps: Mapped[int] = mapped_column(Integer)
    loss: Mapped[float | None] = mapped_column(Float)
    effect: Mapped[dict[str, Any]] = mapped_column(JSON)
    created_at: Mapped[str] = mapped_column(Words(40))
    active: Mapped[bool] = mapped_column(Boolean)
    trusted: Mapped[bool] = mapped_column(Boolean, default=False, server_default=false())  # the last that was measured to be better


class StepRow(Base):
    """One optimiser step of a line; `version` is the adapter version that the step went into."""

    __tablename__ = "training_steps"
    __table_args__ = (Index("ix_training_steps_line", "pair_id", "domain", "id"),)
    id: Mapped[int] = mapped_column(Integer, primary_key=True)
    pair_id: Mapped[int] = mapped_column(ForeignKey("pairs.id", ondelete="CASCADE"))
    domain: Mapped[str] = mapped_column(Words(200))
    version: Mapped[int] = mapped_column(Integer)
    step: Mapped[int] = mapped_column(Integer)
    loss: Mapped[float | None] = mapped_column(Float)
    loss_direct: Mapped[float | None] = mapped_column(Float)
    loss_ngram: Mapped[float | None] = mapped_column(Float)
    grad_norm: Mapped[float | None] = mapped_column(Float)
    learning_rate: Mapped[float | None] = mapped_column(Float)
    seconds: Mapped[float | None] = mapped_column(Float)
    created_at: Mapped[str] = mapped_column(Words(40))
    loss_head: Mapped[float | None] = mapped_column(Float)  # of the acceptance head, where it was trained


class ProbeRow(Base):
    """A drafter version on the probe prompts of a topic; see `records.Probe`. `shown` is kept for the newest version of each line only."""

    __tablename__ = "probes"
    __table_args__ = (UniqueConstraint("pair_id", "domain", "version", "topic", name="uq_probes_version_topic"),)
    id: Mapped[int] = mapped_column(Integer, primary_key=True)
    pair_id: Mapped[int] = mapped_column(ForeignKey("pairs.id", ondelete="CASCADE"))
    domain: Mapped[str] = mapped_column(Words(200))
    version: Mapped[int] = mapped_column(Integer)
    topic: Mapped[str] = mapped_column(Words(200))
    recording: Mapped[str] = mapped_column(Words(80))
    examples: Mapped[int] = mapped_column(Integer)
    prompts: Mapped[int] = mapped_column(Integer)
    tokens: Mapped[int] = mapped_column(Integer)
    passes: Mapped[int] = mapped_column(Integer)
    agreement: Mapped[float | None] = mapped_column(Float)
    same_first: Mapped[float | None] = mapped_column(Float)
    shown: Mapped[list[dict[str, Any]] | None] = mapped_column(JSON(none_as_null=True))
    created_at: Mapped[str] = mapped_column(Words(40))


def utc(moment: str | None = None) -> str:
    """`moment` (ISO 8601, taken as UTC where it names no zone; None: now) as UTC text that sorts by time."""
    value = datetime.now(UTC) if moment is None else datetime.fromisoformat(moment)
    if value.tzinfo is None:
        value = value.replace(tzinfo=UTC)
    return value.astimezone(UTC).isoformat(timespec="milliseconds")


def number(value: Any) -> float | None:
    """A plain finite float, or None: databases and charts differ on NaN and on numpy's scalars."""
    return float(value) if value is not None and math.isfinite(value) else None


def drafted_per_round(metrics: Mapping[str, Any]) -> float | None:
    """Drafter tokens drawn per round, on average over an answer; None where it had no round."""
    drafted, rounds = metrics.get("drafted"), metrics.get("rounds")
    return drafted / rounds if drafted is not None and rounds else None


def request_row(record: RequestRecord, pair_id: int) -> dict[str, Any]:
    """The row of `requests` for a record; without a prompt the answer is withheld too."""
    generation = record.generation
    metrics = {name: number(value) for name, value in generation.metrics.items()}
    measured = ["seconds", "tokens_per_second", "acceptance_rate", "alpha", "block_efficiency"]
    measured += ["time_to_first_token", "engine_overhead", "estimated_speedup"]
    return {name: metrics.get(name) for name in measured} | {
        "session_id": record.session,
        "pair_id": pair_id,
        "created_at": utc(record.created_at),
        "kind": record.kind,
        "method": record.method,
        "domain": record.domain,
        "adapter_version": int(generation.adapter_version),
        "seed": None if generation.seed is None else str(int(generation.seed)),
        "prompt_tokens": int(generation.prompt_tokens),
        "tokens": len(generation.token_ids),
        "ngram_hits": sum(int(one.ngram_hits) for one in generation.rounds),
        "cache_entries": int(record.cache_entries or generation.cache_entries),
        "cache_bytes": int(record.cache_bytes),
        "finish_reason": generation.finish_reason,
        "settings": dict(record.settings),
        "metrics": metrics,
        "prompt": text(record.prompt),
        "answer": None if record.prompt is None else text(generation.text),
        "key": generation.key or None,
        "topic": text(record.topic),
        "slower": record.slower,
    }


def round_row(one: Round, request_id: int) -> dict[str, Any]:
    """The row of `rounds` for a round; its tokens are not kept."""
    counters = ("index", "draft_length", "drafted", "proposed", "accepted", "judged", "ngram_hits")
    row: dict[str, Any] = {name: int(getattr(one, name)) for name in counters}
    row |= {f"{part}_seconds": number(one.seconds.get(part)) for part in ("draft", "verify", "settle", "other", "total")}
    return row | {"request_id": request_id, "emitted": len(one.tokens)}


FILTERS: Mapping[str, Any] = {
    "target": PairRow.target,
    "drafter": PairRow.drafter,
    "method": RequestRow.method,
    "domain": RequestRow.domain,
    "topic": RequestRow.topic,
    "session": RequestRow.session_id,
    "kind": RequestRow.kind,
}


def requests_query(**filters: str | None) -> Select[Any]:
    """All columns of the requests, oldest first, with `session`, `target` and `drafter` by name; None filters nothing."""
    columns = columns_of(RequestRow, "session_id", "pair_id", "key")
    query = select(*columns, RequestRow.session_id.label("session"), PairRow.target, PairRow.drafter)
    query = query.join(PairRow, PairRow.id == RequestRow.pair_id)
    return query.where(*(FILTERS[name] == value for name, value in filters.items() if value is not None)).order_by(RequestRow.id)


def columns_of(table: type[Base], *hidden: str) -> list[Any]:
    return [column for column in table.__table__.columns if column.name not in hidden]


def of_pair(query: Select[Any], pair_id: Any, target: str, drafter: str) -> Select[Any]:
    """The rows of a table, whose column `pair_id` is given, that belong to a pair."""
    return query.join(PairRow, PairRow.id == pair_id).where(PairRow.target == target, PairRow.drafter == drafter)


def latest(query: Select[Any], column: Any, limit: int | None) -> Select[Any]:
    """The same query from the newest row (by `column`) on, at most `limit` rows."""
    return query.order_by(None).order_by(desc(column)).limit(limit)
