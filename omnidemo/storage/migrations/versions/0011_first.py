"""The first tables that are read. What has no tables at all gets today's (`database.py`), so nothing is left
to do here. Older ones, of revisions below, are refused."""

from __future__ import annotations

revision = "0011"
down_revision = None


def upgrade() -> None:
    """Nothing: whatever is upgraded has these tables."""
