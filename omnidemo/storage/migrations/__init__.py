"""Alembic migrations of the store, which run when a database is opened."""
