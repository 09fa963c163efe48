"""The part of the store for pairs and adapter lines: n-grams, versions, training steps, measurements."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy import Connection, delete, insert, select, update

from omnidemo.core.records import Agreement, NgramEntry, TrainStep
from omnidemo.models.adapters.adapter_state import AdapterVersion
from omnidemo.storage.database import Database, Rows
from omnidemo.storage.tables import (
    ADAPTER_FILES,
    ADAPTERS,
    LINE_TABLES,
    NGRAMS,
    PAIRS,
    REQUESTS,
    STEPS,
    columns_of,
    latest,
    number,
    of_line,
    of_pair,
    pair_id,
    utc,
)

log = logging.getLogger(__name__)
CHUNK = 500  # ids in one statement, because databases limit its parameters
MOST_BYTES = 256 * 2**20  # of a version, because PostgreSQL refuses statements of 1 GB


class Noted(NamedTuple):
    """A version in the database; its files may be gone."""

    domain: str
    version: int
    sha256: str | None
    active: bool
    trusted: bool


class LineStore(Database):
    """The part of `Store` that pairs and trainers use."""

    def save_ngrams(
        self, target: str, drafter: str, entries: Iterable[NgramEntry], removed: Iterable[int] = ()
    ) -> None:
        """Replace n-grams by target id, and delete the `removed` target ids (an entry wins over its
        removal)."""
        new = {entry.target_id: entry for entry in entries}
        gone = [int(target_id) for target_id in {*removed, *new}]
        if not gone:
            return

        def write(connection: Connection) -> None:
            pair = pair_id(connection, target, drafter)
            for start in range(0, len(gone), CHUNK):
                chunk = gone[start : start + CHUNK]
                connection.execute(
                    delete(NGRAMS).where(NGRAMS.c.pair_id == pair, NGRAMS.c.target_id.in_(chunk))
                )
            if new:
                connection.execute(
                    insert(NGRAMS), [{"pair_id": pair} | asdict(entry) for entry in new.values()]
                )

        self.submit(write)

    def load_ngrams(self, target: str, drafter: str) -> list[NgramEntry]:
        """The n-grams of a pair, least recently inserted first."""
        query = of_pair(NGRAMS, target, drafter, *columns_of(NGRAMS, "pair_id"))
        rows = self.rows(query.order_by(NGRAMS.c.inserted_at, NGRAMS.c.target_id))
        return [NgramEntry(**row | {"drafter_ids": tuple(row["drafter_ids"])}) for row in rows]

    def forget_line(self, target: str, drafter: str, domain: str) -> None:
        """Delete the versions and training steps of a line."""

        def write(connection: Connection) -> None:
            pair = pair_id(connection, target, drafter)
            for table in LINE_TABLES:
                connection.execute(delete(table).where(*of_line(table, pair, domain)))

        self.submit(write)

    def forget_domain(self, domain: str) -> None:
        """As `forget_line`, for all pairs; their answers are not copied from again."""

        def write(connection: Connection) -> None:
            for table in LINE_TABLES:
                connection.execute(delete(table).where(table.c.domain == domain))
            connection.execute(update(REQUESTS).where(REQUESTS.c.domain == domain).values(remembered=False))

        self.submit(write)

    def add_adapter(self, version: AdapterVersion, active: bool = True) -> None:
        """Store a version; a second call replaces the first. `active`: it drafts now. A shared database
        stores the files of its folder too."""

        def write(connection: Connection) -> None:
            pair = pair_id(connection, version.target, version.drafter)
            line = of_line(ADAPTERS, pair, version.domain)
            own = (*line, ADAPTERS.c.version == version.version)
            trusted = bool(connection.scalar(select(ADAPTERS.c.trusted).where(*own)))
            connection.execute(delete(ADAPTERS).where(*own))
            if active:
                connection.execute(update(ADAPTERS).where(*line).values(active=False))
            row = {
                name: value for name, value in asdict(version).items() if name not in ("target", "drafter")
            }
            row |= {"created_at": utc(version.created_at), "effect": _finite(version.effect)}
            connection.execute(insert(ADAPTERS).values(pair_id=pair, active=active, trusted=trusted, **row))
            if self.shared:
                _add_files(connection, pair, version.domain, version.version, version.path)

        self.submit(write)

    def adapters(self, target: str, drafter: str, domain: str = "default") -> list[AdapterVersion]:
        """The versions of a line, newest first."""
        columns = [*columns_of(ADAPTERS, "pair_id", "active", "trusted"), PAIRS.c.target, PAIRS.c.drafter]
        query = of_pair(ADAPTERS, target, drafter, *columns).where(ADAPTERS.c.domain == domain)
        return [AdapterVersion(**row) for row in self.rows(query.order_by(ADAPTERS.c.version.desc()))]

    def active_version(self, target: str, drafter: str, domain: str = "default") -> int:
        """The active version of a line; 0: the base drafter."""
        query = of_pair(ADAPTERS, target, drafter, ADAPTERS.c.version).where(
            ADAPTERS.c.domain == domain, ADAPTERS.c.active
        )
        return self.read(lambda connection: connection.scalar(query) or 0, 0)

    def set_active(self, target: str, drafter: str, domain: str, version: int) -> None:
        """Make a stored version the active one; 0: the base drafter."""
        self._update_line(target, drafter, domain, active=ADAPTERS.c.version == version)

    def set_trusted(self, target: str, drafter: str, domain: str, version: int) -> None:
        """Make a stored version the trusted one (`DraftingVersions`); 0: the base drafter."""
        self._update_line(target, drafter, domain, trusted=ADAPTERS.c.version == version)

    def drop_files(self, target: str, drafter: str, domain: str, versions: Sequence[int]) -> None:
        """Delete the files of pruned versions from a shared database; their rows stay."""
        if not self.shared or not versions:
            return
        gone = list(versions)

        def write(connection: Connection) -> None:
            line = of_line(ADAPTER_FILES, pair_id(connection, target, drafter), domain)
            connection.execute(delete(ADAPTER_FILES).where(*line, ADAPTER_FILES.c.version.in_(gone)))

        self.submit(write)

    def noted_versions(self, target: str, drafter: str) -> list[Noted] | None:
        """The versions of a pair's lines in a shared database, oldest first; None for another database, or
        one that does not answer."""
        if not self.shared:
            return None
        if self.status.ok:
            self.flush(10.0)
        query = of_pair(ADAPTERS, target, drafter, *(ADAPTERS.c[name] for name in Noted._fields))
        query = query.order_by(ADAPTERS.c.domain, ADAPTERS.c.version)
        return self.read(lambda connection: [Noted(*row) for row in connection.execute(query)], None)

    def version_files(self, target: str, drafter: str, domain: str, version: int) -> dict[str, bytes]:
        """The files of a version in a shared database, by name."""
        query = of_pair(ADAPTER_FILES, target, drafter, ADAPTER_FILES.c.name, ADAPTER_FILES.c.content)
        query = query.where(ADAPTER_FILES.c.domain == domain, ADAPTER_FILES.c.version == version)
        return self.read(
            lambda connection: {name: bytes(content) for name, content in connection.execute(query)}, {}
        )

    def set_effect(
        self, target: str, drafter: str, domain: str, version: int, effect: Mapping[str, float]
    ) -> None:
        """Store the measured effect of a version (`evaluation.effect`)."""
        self._update_line(target, drafter, domain, ADAPTERS.c.version == version, effect=_finite(effect))

    def _update_line(self, target: str, drafter: str, domain: str, *which: Any, **values: Any) -> None:
        """Update the versions of a line, or `which` of them."""

        def write(connection: Connection) -> None:
            line = of_line(ADAPTERS, pair_id(connection, target, drafter), domain)
            connection.execute(update(ADAPTERS).where(*line, *which).values(**values))

        self.submit(write)

    def record_steps(
        self, target: str, drafter: str, domain: str, version: int, steps: Sequence[TrainStep]
    ) -> None:
        """Append optimiser steps to the loss curve of a line; `version`: the version that they made."""
        now, taken = utc(), [asdict(step) for step in steps]
        if not taken:
            return

        def write(connection: Connection) -> None:
            line = {
                "pair_id": pair_id(connection, target, drafter),
                "domain": domain,
                "version": version,
                "created_at": now,
            }
            connection.execute(insert(STEPS), [step | line for step in taken])

        self.submit(write)

    def steps(self, target: str, drafter: str, domain: str = "default", limit: int | None = 1000) -> Rows:
        """The newest `limit` training steps of a line, oldest first."""
        query = of_pair(STEPS, target, drafter, *columns_of(STEPS, "id", "pair_id")).where(
            STEPS.c.domain == domain
        )
        return self.rows(latest(query, STEPS.c.id, limit))[::-1]

    def set_agreement(self, key: str, agreement: Agreement) -> None:
        """Store the agreement on the answer with this key; nothing where it was not stored."""
        query = update(REQUESTS).where(REQUESTS.c.key == key).values(**_measured(agreement))
        self.submit(lambda connection: connection.execute(query))


def _measured(agreement: Agreement | None) -> dict[str, float]:
    return {"agreement": agreement.overlap, "same_first": agreement.same_first} if agreement else {}


def _finite(effect: Mapping[str, float]) -> dict[str, float | None]:
    return {name: number(value) for name, value in effect.items()}


def _add_files(connection: Connection, pair: int, domain: str, version: int, folder: str | None) -> None:
    """Store the files of a version behind its row; nothing where its folder was pruned meanwhile."""
    try:
        files = [entry for entry in Path(folder).iterdir() if entry.is_file()] if folder else []
        contents = {entry.name: entry.read_bytes() for entry in files}
    except OSError as error:
        log.warning("The adapter version in %s could not be copied to the database: %s", folder, error)
        return
    if sum(map(len, contents.values())) > MOST_BYTES:
        log.warning(
            "The adapter version in %s is too large for the database; other machines do without it", folder
        )
        return
    row = {"pair_id": pair, "domain": domain, "version": version}
    if contents:
        connection.execute(
            insert(ADAPTER_FILES), [{**row, "name": name, "content": data} for name, data in contents.items()]
        )
