"""Adapter versions inside the database, for machines that share no folder; text of any length on PostgreSQL,
as SQLite has it anyway."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"

TABLES = ("pairs", "sessions", "requests", "adapter_versions", "training_steps", "probes")


def upgrade() -> None:
    op.add_column(
        "adapter_versions", sa.Column("trusted", sa.Boolean, nullable=False, server_default=sa.false())
    )
    if op.get_bind().dialect.name == "postgresql":
        for table in TABLES:
            for column in sa.inspect(op.get_bind()).get_columns(table):
                if getattr(column["type"], "length", None):
                    op.alter_column(table, column["name"], type_=sa.Text)
    words = sa.Text().with_variant(sa.String(200), "sqlite")
    op.create_table(
        "adapter_files",
        sa.Column("pair_id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("domain", words, primary_key=True),
        sa.Column("version", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("name", sa.Text().with_variant(sa.String(80), "sqlite"), primary_key=True),
        sa.Column("content", sa.LargeBinary, nullable=False),
        sa.ForeignKeyConstraint(
            ["pair_id", "domain", "version"],
            ["adapter_versions.pair_id", "adapter_versions.domain", "adapter_versions.version"],
            ondelete="CASCADE",
        ),
    )
