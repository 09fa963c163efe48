"""What is learned, measured without a draft policy: agreement and topic of each request, and versions
replayed on probe prompts."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    op.add_column("requests", sa.Column("key", sa.String(40)))
    op.add_column("requests", sa.Column("topic", sa.String(200)))
    op.add_column("requests", sa.Column("agreement", sa.Float))
    op.add_column("requests", sa.Column("same_first", sa.Float))
    op.add_column("requests", sa.Column("slower", sa.Boolean))
    op.create_index("ix_requests_key", "requests", ["key"])
    op.create_table(
        "probes",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("pair_id", sa.Integer, sa.ForeignKey("pairs.id", ondelete="CASCADE"), nullable=False),
        sa.Column("domain", sa.String(200), nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("topic", sa.String(200), nullable=False),
        sa.Column("recording", sa.String(80), nullable=False),
        sa.Column("examples", sa.Integer, nullable=False),
        sa.Column("prompts", sa.Integer, nullable=False),
        sa.Column("tokens", sa.Integer, nullable=False),
        sa.Column("passes", sa.Integer, nullable=False),
        sa.Column("agreement", sa.Float),
        sa.Column("same_first", sa.Float),
        sa.Column("shown", sa.JSON),
        sa.Column("created_at", sa.String(40), nullable=False),
        sa.UniqueConstraint("pair_id", "domain", "version", "topic", name="uq_probes_version_topic"),
    )
