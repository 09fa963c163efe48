"""The first tables. What has no tables at all gets today's (`database.py`), so nothing is left to do here."""

from __future__ import annotations

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Nothing: whatever is upgraded has these tables."""
