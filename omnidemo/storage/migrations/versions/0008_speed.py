"""How many times as fast as plain decoding an answer was, where that was measured, in the place of
estimates."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    for name in ("speedup", "speedup_low", "speedup_high"):
        op.add_column("requests", sa.Column(name, sa.Float))
    for name in ("estimated_speedup", "slower"):
        op.drop_column("requests", name)
