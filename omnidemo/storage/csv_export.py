"""CSV for pandas and spreadsheets: units in the header, UTC times, ids on every row."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Select, Table, select

from omnidemo.core.answer_figures import FIGURES
from omnidemo.core.private_folders import replacing
from omnidemo.storage.tables import FILTERS, PAIRS, REQUESTS, ROUNDS, STEPS, columns_of, conditions, figure

# A spreadsheet runs text that begins so; some skip white space first, and read full-width signs as plain ones
FORMULA = re.compile(r"[\t\r\n]|\s*[=+\-@\uFF1D\uFF0B\uFF0D\uFF20]")
UNITS = {
    "created_at": "created_at_utc", "time_to_first_token": "time_to_first_token_seconds",
    "engine_overhead": "engine_overhead_share", "block_efficiency": "block_efficiency_tokens_per_round",
    "loss": "loss_nats", "loss_direct": "loss_direct_nats", "loss_ngram": "loss_ngram_nats",
    "loss_head": "loss_head_nats",
}  # fmt: skip


def make_query(kind: str, filters: Mapping[str, str | None]) -> Select[Any]:
    """The query of an export; its columns have names with units. ValueError for an unknown table or
    filter."""
    pair: dict[str, Any] = {"target": PAIRS.c.target, "drafter": PAIRS.c.drafter}
    request: dict[str, Any] = {"session": REQUESTS.c.session_id} | pair
    request |= {
        name: REQUESTS.c[name]
        for name in ("domain", "topic", "adapter_version", "method", "kind", "created_at")
    }
    allowed, columns = dict(FILTERS), dict[str, Any]()
    if kind == "requests":
        columns = (
            {"request_id": REQUESTS.c.id}
            | request
            | _others(REQUESTS, *request, "id", "session_id", "pair_id", "key", "remembered")
        )
        had = {UNITS.get(name, name) for name in columns}  # then all other figures, with the names of Compare
        columns |= {one.column: figure(one.name) for one in FIGURES if one.column not in had}
        query = select().select_from(REQUESTS).join(PAIRS).order_by(REQUESTS.c.id)
    elif kind == "rounds":
        columns = {"request_id": REQUESTS.c.id} | request | _others(ROUNDS, "request_id")
        joined = select().select_from(ROUNDS).join(REQUESTS).join(PAIRS)
        query = joined.order_by(ROUNDS.c.request_id, ROUNDS.c.index)
    elif kind == "steps":
        allowed = pair | {"domain": STEPS.c.domain}
        columns = pair | {"domain": STEPS.c.domain, "adapter_version": STEPS.c.version}
        columns |= _others(STEPS, "id", "pair_id", "domain", "version")
        query = select().select_from(STEPS).join(PAIRS).order_by(STEPS.c.id)
    else:
        raise ValueError(f"There is no table {kind!r} to export; choose requests, rounds or steps.")
    if unknown := sorted(set(filters) - set(allowed)):
        raise ValueError(
            f"The {kind} cannot be filtered by {', '.join(unknown)}; choose from {', '.join(allowed)}."
        )
    query = query.where(*conditions(allowed, filters))
    return query.add_columns(*(column.label(UNITS.get(name, name)) for name, column in columns.items()))


def write(connection: Connection, query: Select[Any], path: Path) -> int:
    """Stream the rows into `path`, which appears when it is complete; the number of rows. A link or a pipe is
    written to as a shell does. RuntimeError where the file cannot be written."""
    count = 0
    as_it_is = path.is_symlink() or (path.exists() and not path.is_file())
    rows = connection.execution_options(yield_per=500).execute(query)
    try:
        # utf-8-sig: its mark tells spreadsheets the encoding; pandas skips it
        with (
            nullcontext(path) if as_it_is else replacing(path) as partial,
            partial.open("w", encoding="utf-8-sig", errors="replace", newline="") as file,
        ):
            writer = csv.writer(file)
            writer.writerow(rows.keys())
            for row in rows:
                writer.writerow([csv_cell(value) for value in row])
                count += 1
    except BrokenPipeError:  # its reader has seen enough
        raise
    except OSError as error:
        raise RuntimeError(
            f"The CSV could not be written to {path} ({error}); choose a folder that is writable and has"
            " space."
        ) from error
    return count


def csv_cell(value: Any) -> Any:
    """A value as a cell; text that a spreadsheet would take for a formula gets a leading apostrophe."""
    if isinstance(value, (dict, list)):
        value = json.dumps(value, ensure_ascii=False, sort_keys=True)
    return "'" + value if isinstance(value, str) and FORMULA.match(value) else value


def _others(table: Table, *taken: str) -> dict[str, Any]:
    return {column.name: column for column in columns_of(table, *taken)}
