"""The database that the torture is tested with."""

from __future__ import annotations

from tests.support.postgres import postgres_server  # noqa: F401  (a fixture)
