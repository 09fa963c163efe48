"""The recorded rounds of a visitor's newest answers."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.create_table(
        "recordings",
        sa.Column(
            "request_id",
            sa.Integer,
            sa.ForeignKey("requests.id", ondelete="CASCADE"),
            primary_key=True,
            autoincrement=False,
        ),
        sa.Column("packed", sa.LargeBinary, nullable=False),
        sa.Column("kept", sa.Integer, nullable=False),
        sa.Column("rounds", sa.Integer, nullable=False),
    )
