"""Tokens and passes of each probe prompt; those of older versions, of which only the sums are known, have
none."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    op.add_column("probes", sa.Column("counts", sa.JSON))
