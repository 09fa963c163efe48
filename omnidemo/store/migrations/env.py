"""Alembic's entry point: upgrades over the connection (and inside the transaction) that the store hands in."""

from __future__ import annotations

from alembic import context

from omnidemo.store.tables import Base

context.configure(connection=context.config.attributes["connection"], target_metadata=Base.metadata, render_as_batch=True)
context.run_migrations()
