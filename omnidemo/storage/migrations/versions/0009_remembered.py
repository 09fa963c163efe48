"""Whether later answers may copy from a stored one; from those of older versions, of which nobody knows that,
none does."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    op.add_column("requests", sa.Column("remembered", sa.Boolean, nullable=False, server_default=sa.false()))
