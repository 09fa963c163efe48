"""The database (one writer thread, tables, migrations, CSV), adapter versions, and the data of visitors."""
