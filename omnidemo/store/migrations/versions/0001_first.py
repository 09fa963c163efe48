"""The first tables."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def _integers(*names: str) -> list[sa.Column]:
    return [sa.Column(name, sa.Integer, nullable=False) for name in names]


def _floats(*names: str) -> list[sa.Column]:
    return [sa.Column(name, sa.Float) for name in names]


def _pair(primary_key: bool = False) -> sa.Column:
    return sa.Column("pair_id", sa.Integer, sa.ForeignKey("pairs.id", ondelete="CASCADE"), primary_key=primary_key, nullable=False)


def upgrade() -> None:
    op.create_table(
        "pairs",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("target", sa.String(400), nullable=False),
        sa.Column("drafter", sa.String(400), nullable=False),
        sa.UniqueConstraint("target", "drafter", name="uq_pairs_target_drafter"),
    )
    op.create_table(
        "sessions",
        sa.Column("id", sa.String(200), primary_key=True),
        sa.Column("created_at", sa.String(40), nullable=False),
        sa.Column("keep", sa.Boolean, nullable=False),
        sa.Column("learn", sa.Boolean, nullable=False),
    )
    op.create_table(
        "requests",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("session_id", sa.String(200), sa.ForeignKey("sessions.id", ondelete="CASCADE"), nullable=False),
        _pair(),
        sa.Column("created_at", sa.String(40), nullable=False),
        sa.Column("kind", sa.String(40), nullable=False),
        sa.Column("method", sa.String(80), nullable=False),
        sa.Column("domain", sa.String(200), nullable=False),
        sa.Column("adapter_version", sa.Integer, nullable=False),
        sa.Column("seed", sa.String(40)),
        *_integers("prompt_tokens", "tokens"),
        *_floats("seconds", "tokens_per_second", "acceptance_rate", "alpha", "block_efficiency"),
        *_integers("ngram_hits"),
        *_floats("time_to_first_token", "engine_overhead", "estimated_speedup"),
        *_integers("cache_entries", "cache_bytes"),
        sa.Column("finish_reason", sa.String(40), nullable=False),
        sa.Column("settings", sa.JSON, nullable=False),
        sa.Column("metrics", sa.JSON, nullable=False),
        sa.Column("prompt", sa.Text),
        sa.Column("answer", sa.Text),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_requests_pair", "requests", ["pair_id", "id"])
    op.create_index("ix_requests_session", "requests", ["session_id", "id"])
    op.create_table(
        "rounds",
        sa.Column("request_id", sa.Integer, sa.ForeignKey("requests.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("index", sa.Integer, primary_key=True, autoincrement=False),
        *_integers("draft_length", "drafted", "proposed", "accepted", "judged", "ngram_hits", "emitted"),
        *_floats("draft_seconds", "verify_seconds", "settle_seconds", "other_seconds", "total_seconds"),
    )
    op.create_table(
        "ngrams",
        _pair(primary_key=True),
        sa.Column("target_id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("drafter_ids", sa.JSON, nullable=False),
        *_integers("hits", "accepts", "inserted_at", "last_used"),
    )
    op.create_table(
        "adapter_versions",
        _pair(primary_key=True),
        sa.Column("domain", sa.String(200), primary_key=True),
        sa.Column("version", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("path", sa.Text),
        sa.Column("sha256", sa.String(64)),
        sa.Column("parent", sa.Integer),
        *_integers("requests_seen", "steps"),
        *_floats("loss"),
        sa.Column("effect", sa.JSON, nullable=False),
        sa.Column("created_at", sa.String(40), nullable=False),
        sa.Column("active", sa.Boolean, nullable=False),
    )
    op.create_table(
        "training_steps",
        sa.Column("id", sa.Integer, primary_key=True),
        _pair(),
        sa.Column("domain", sa.String(200), nullable=False),
        *_integers("version", "step"),
        *_floats("loss", "loss_direct", "loss_ngram", "grad_norm", "learning_rate", "seconds"),
        sa.Column("created_at", sa.String(40), nullable=False),
    )
    op.create_index("ix_training_steps_line", "training_steps", ["pair_id", "domain", "id"])
