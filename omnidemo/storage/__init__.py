"""The database: one writer, the tables, CSV, and what belongs to which visitor."""
