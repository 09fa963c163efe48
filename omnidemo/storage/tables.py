"""The tables of the store. Times are UTC ISO 8601 text, durations seconds. Measurements may be NULL; other
columns only where they say so."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa

from omnidemo.storage.postgres import CleanText

METADATA = sa.MetaData()  # must equal what the migrations build (a test compares them)


class PlainInteger(sa.TypeDecorator[int]):
    """A whole number, also from numpy's scalars."""

    impl = sa.Integer
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: sa.Dialect) -> int | None:
        return None if value is None else int(value)


class FiniteFloat(sa.TypeDecorator[float]):
    """A measurement; NaN and infinity become NULL."""

    impl = sa.Float
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: sa.Dialect) -> float | None:
        return number(value)


def _whole(*names: str, key: bool = False) -> list[sa.Column[int]]:
    return [sa.Column(name, PlainInteger, primary_key=key, nullable=False) for name in names]


def _measured(*names: str) -> list[sa.Column[float]]:
    return [sa.Column(name, FiniteFloat) for name in names]


def _words(length: int | None, *names: str, key: bool = False, null: bool = False) -> list[sa.Column[str]]:
    return [sa.Column(name, CleanText(length), primary_key=key, nullable=null) for name in names]


def _flags(*names: str) -> list[sa.Column[bool]]:
    return [sa.Column(name, sa.Boolean, nullable=False) for name in names]


def _copies() -> list[sa.Column[int]]:
    """Proposed and accepted copied tokens; 0 in rows of older versions."""
    return [
        sa.Column(name, PlainInteger, nullable=False, server_default="0")
        for name in ("copies_proposed", "copied")
    ]


def _row_of(table: str, name: str, key: bool = False) -> sa.Column[Any]:
    """The id of a row of another table, whose deletion deletes this row."""
    return sa.Column(name, sa.ForeignKey(f"{table}.id", ondelete="CASCADE"), primary_key=key, nullable=False)


def _table(name: str, *parts: sa.Column[Any] | sa.Constraint | sa.Index, **options: Any) -> sa.Table:
    return sa.Table(name, METADATA, *parts, **options)


# A target and a drafter.
PAIRS = _table(
    "pairs",
    *_whole("id", key=True),
    *_words(400, "target", "drafter"),
    sa.UniqueConstraint("target", "drafter", name="uq_pairs_target_drafter"),
)
# A session and its consent; a session that opted out has only this row.
SESSIONS = _table(
    "sessions", *_words(200, "id", key=True), *_words(40, "created_at"), *_flags("keep", "learn")
)
# The key that signs visitors' ids, in a shared database; with SQLite it is a file.
KEYS = _table(
    "visitor_key",
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("key", sa.LargeBinary, nullable=False),
)
# A request. The main metrics are columns, and all are in `metrics`. `prompt` and `answer` may be withheld
# (NULL).
REQUESTS = _table(
    "requests",
    *_whole("id", key=True),
    _row_of("sessions", "session_id"),
    _row_of("pairs", "pair_id"),
    *_words(40, "created_at", "kind"),
    *_words(80, "method"),
    *_words(200, "domain"),
    *_whole("adapter_version"),
    *_words(40, "seed", null=True),  # text, because a seed may have 64 bits without a sign
    *_whole("prompt_tokens", "tokens"),
    *_measured("seconds", "tokens_per_second", "acceptance_rate", "alpha", "block_efficiency"),
    *_whole("ngram_hits"),
    *_measured("time_to_first_token", "engine_overhead"),
    *_whole("cache_entries", "cache_bytes"),
    *_words(40, "finish_reason"),
    sa.Column("settings", sa.JSON, nullable=False),
    sa.Column("metrics", sa.JSON, nullable=False),
    *_words(None, "prompt", "answer", null=True),
    *_words(40, "key", null=True),  # of its `Generation`
    *_words(200, "topic", null=True),
    *_measured("agreement", "same_first"),  # measured later, where there is a trace
    *_copies(),
    # measured later, over plain decoding: the median of several runs and the range that holds it
    *_measured("speedup", "speedup_low", "speedup_high"),
    # whether later answers may copy from this one
    sa.Column("remembered", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Index("ix_requests_pair", "pair_id", "id"),
    sa.Index("ix_requests_session", "session_id", "id"),
    sa.Index("ix_requests_key", "key"),
    sqlite_autoincrement=True,  # ids are never used again, so that an old selection cannot delete a new row
)
# The counters and times of one round of a request.
ROUNDS = _table(
    "rounds",
    _row_of("requests", "request_id", key=True),
    *_whole("index", key=True),
    *_whole("draft_length", "drafted", "proposed", "accepted", "judged", "ngram_hits", "emitted"),
    *_measured("draft_seconds", "verify_seconds", "settle_seconds", "other_seconds", "total_seconds"),
    *_copies(),
)
# The rounds of an answer with their tokens, packed (`recorded_rounds.pack`): the first `kept` of `rounds`.
RECORDINGS = _table(
    "recordings",
    _row_of("requests", "request_id", key=True),
    sa.Column("packed", sa.LargeBinary, nullable=False),
    *_whole("kept", "rounds"),
)
# One n-gram of a pair's cache: the drafter ids that spell a target id.
NGRAMS = _table(
    "ngrams",
    _row_of("pairs", "pair_id", key=True),
    *_whole("target_id", key=True),
    sa.Column("drafter_ids", sa.JSON, nullable=False),
    *_whole("hits", "accepts", "inserted_at", "last_used"),
)
# A published version of a line (pair and domain); at most one is active, at most one trusted.
ADAPTERS = _table(
    "adapter_versions",
    _row_of("pairs", "pair_id", key=True),
    *_words(200, "domain", key=True),
    *_whole("version", key=True),
    *_words(None, "path", null=True),
    *_words(64, "sha256", null=True),
    sa.Column("parent", sa.Integer),
    *_whole("requests_seen", "steps"),
    *_measured("loss"),
    sa.Column("effect", sa.JSON, nullable=False),
    *_words(40, "created_at"),
    *_flags("active"),
    sa.Column("trusted", sa.Boolean, nullable=False, server_default=sa.false()),
)
# A file of a version, in a shared database; empty in SQLite.
ADAPTER_FILES = _table(
    "adapter_files",
    *_whole("pair_id", key=True),
    *_words(200, "domain", key=True),
    *_whole("version", key=True),
    *_words(80, "name", key=True),
    sa.Column("content", sa.LargeBinary, nullable=False),
    sa.ForeignKeyConstraint(
        ["pair_id", "domain", "version"],
        ["adapter_versions.pair_id", "adapter_versions.domain", "adapter_versions.version"],
        ondelete="CASCADE",
    ),
)
# An optimiser step of a line; `version`: the version that the step made.
STEPS = _table(
    "training_steps",
    *_whole("id", key=True),
    _row_of("pairs", "pair_id"),
    *_words(200, "domain"),
    *_whole("version", "step"),
    *_measured("loss", "loss_direct", "loss_ngram", "grad_norm", "learning_rate", "seconds"),
    *_words(40, "created_at"),
    *_measured("loss_head"),  # of the acceptance head, where it was trained
    sa.Index("ix_training_steps_line", "pair_id", "domain", "id"),
)
LINE_TABLES = (ADAPTERS, STEPS)  # rows of an adapter line, by pair and `domain`
FILTERS: Mapping[str, sa.Column[Any]] = {
    "id": REQUESTS.c.id, "target": PAIRS.c.target, "drafter": PAIRS.c.drafter, "method": REQUESTS.c.method,
    "domain": REQUESTS.c.domain, "topic": REQUESTS.c.topic, "session": REQUESTS.c.session_id,
    "kind": REQUESTS.c.kind,
}  # fmt: skip


def utc(moment: str | None = None) -> str:
    """`moment` (ISO 8601, UTC where it names no zone; None: now) as UTC text that sorts by time."""
    value = datetime.now(UTC) if moment is None else datetime.fromisoformat(moment)
    if value.tzinfo is None:
        value = value.replace(tzinfo=UTC)
    return value.astimezone(UTC).isoformat(timespec="milliseconds")


def number(value: Any) -> float | None:
    """A finite Python float, or None: databases and charts differ on NaN and on numpy's scalars."""
    return float(value) if value is not None and math.isfinite(value) else None


def figure(name: str) -> sa.ColumnElement[Any]:
    """A figure of an answer; `guesses_right` is computed from the counts, because old rows lack it."""
    if name != "guesses_right":
        return REQUESTS.c.metrics[name].as_float()
    forced = sa.func.coalesce(figure("forced"), 0.0)
    made, right = (
        figure(all_of) - sa.func.coalesce(figure(copies), 0.0) - forced
        for all_of, copies in (("proposed", "copies_proposed"), ("accepted", "copied"))
    )
    return sa.case((made > 0, right / made))


def requests_query(**filters: str | int | None) -> sa.Select[Any]:
    """All columns of the requests, `session`, `target` and `drafter` by name, and `guesses_right`."""
    columns = [*columns_of(REQUESTS, "session_id", "pair_id", "key", "remembered"), PAIRS.c.target]
    named = REQUESTS.c.session_id.label("session"), figure("guesses_right").label("guesses_right")
    query = sa.select(*columns, PAIRS.c.drafter, *named).join(PAIRS)
    return query.where(*conditions(FILTERS, filters))


def conditions(
    columns: Mapping[str, Any], filters: Mapping[str, str | int | None]
) -> list[sa.ColumnElement[bool]]:
    """The conditions of filters; None filters nothing."""
    return [columns[name] == value for name, value in filters.items() if value is not None]


def columns_of(table: sa.Table, *hidden: str) -> list[sa.Column[Any]]:
    return [column for column in table.c if column.name not in hidden]


def of_pair(table: sa.Table, target: str, drafter: str, *columns: sa.ColumnElement[Any]) -> sa.Select[Any]:
    """A query of these columns for a pair's rows of a table."""
    query = sa.select(*columns).select_from(table).join(PAIRS, PAIRS.c.id == table.c.pair_id)
    return query.where(PAIRS.c.target == target, PAIRS.c.drafter == drafter)


def latest(query: sa.Select[Any], column: sa.ColumnElement[Any], limit: int | None) -> sa.Select[Any]:
    """The query from the newest row (by `column`) on, at most `limit` rows."""
    return query.order_by(sa.desc(column)).limit(limit)


def pair_id(connection: sa.Connection, target: str, drafter: str) -> int:
    """The id of a pair, which is inserted where it is missing."""
    pair = sa.select(PAIRS.c.id).where(PAIRS.c.target == target, PAIRS.c.drafter == drafter)
    if (number := connection.scalar(pair)) is not None:
        return int(number)
    key = connection.execute(sa.insert(PAIRS).values(target=target, drafter=drafter)).inserted_primary_key
    assert key is not None
    return int(key[0])


def of_line(table: sa.Table, pair: int, domain: str) -> tuple[Any, Any]:
    """The conditions of an adapter line's rows."""
    return table.c.pair_id == pair, table.c.domain == domain
