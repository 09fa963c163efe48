"""Alembic migrations of the store; they run whenever a database is opened, so no alembic.ini is needed."""
