"""How many copied tokens were proposed, and how many of them accepted, of each request and round."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    for table in ("requests", "rounds"):
        for name in ("copies_proposed", "copied"):
            op.add_column(table, sa.Column(name, sa.Integer, nullable=False, server_default="0"))
