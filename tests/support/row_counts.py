"""How many rows a store has."""

from __future__ import annotations

from sqlalchemy import Connection, func, select

from omnidemo.storage.store import Store
from omnidemo.storage.tables import METADATA


def row_counts(store: Store) -> dict[str, int]:
    """Rows of every table; empty where the database does not work."""

    def read(connection: Connection) -> dict[str, int]:
        count = select(func.count())
        return {
            table.name: connection.scalar(count.select_from(table)) or 0 for table in METADATA.sorted_tables
        }

    return store.read(read, {})
