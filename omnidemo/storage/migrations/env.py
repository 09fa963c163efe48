"""Alembic's entry point: upgrades in the store's connection and transaction."""

from __future__ import annotations

from alembic import context

context.configure(connection=context.config.attributes["connection"])
context.run_migrations()
