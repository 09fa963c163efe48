"""What a database keeps of adapter versions. In one that several machines share each file of a version is a
row as well, and a storage folder is a copy of them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy import Connection, Select, delete, insert, select, update

from omnidemo.models.adapters import version_folders
from omnidemo.models.adapters.adapter_state import AdapterVersion
from omnidemo.storage.database import Database
from omnidemo.storage.tables import (
    ADAPTER_FILES,
    ADAPTERS,
    PAIRS,
    columns_of,
    number,
    of_line,
    of_pair,
    pair_id,
    utc,
)
from omnidemo.storage.visitors import owned

log = logging.getLogger(__name__)
MOST_BYTES = 256 * 2**20  # of one version; PostgreSQL refuses a statement of 1 GB
Read = Callable[[Callable[[Connection], Any], Any], Any]  # `Database.read`


class VersionTable(Database):
    """What the database keeps of adapter versions. `VersionStore` is the one that calls it."""

    def add_adapter(self, version: AdapterVersion, active: bool = True) -> None:
        """Store a published version of its line; a second call replaces the first. `active` makes it the
        current one. A database that machines share takes the files of its folder, too."""

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
                add_files(connection, pair, version.domain, version.version, version.path)

        self.submit(write)

    def adapters(self, target: str, drafter: str, domain: str = "default") -> list[AdapterVersion]:
        """The versions of a line, newest first."""
        columns = [*columns_of(ADAPTERS, "pair_id", "active", "trusted"), PAIRS.c.target, PAIRS.c.drafter]
        query = of_pair(ADAPTERS, target, drafter, *columns).where(ADAPTERS.c.domain == domain)
        return [AdapterVersion(**row) for row in self.rows(query.order_by(ADAPTERS.c.version.desc()))]

    def active_version(self, target: str, drafter: str, domain: str = "default") -> int:
        """The current version of a line; 0 is the base drafter."""
        query = of_pair(ADAPTERS, target, drafter, ADAPTERS.c.version).where(
            ADAPTERS.c.domain == domain, ADAPTERS.c.active
        )
        return self.read(lambda connection: connection.scalar(query) or 0, 0)

    def set_active(self, target: str, drafter: str, domain: str, version: int) -> None:
        """Make a stored version the current one; 0 goes back to the base drafter."""
        self._update_line(target, drafter, domain, active=ADAPTERS.c.version == version)

    def set_trusted(self, target: str, drafter: str, domain: str, version: int) -> None:
        """Note the last version that was measured to be better, or chosen or imported by hand; 0 is the base
        drafter."""
        self._update_line(target, drafter, domain, trusted=ADAPTERS.c.version == version)

    def drop_files(self, target: str, drafter: str, domain: str, versions: Sequence[int]) -> None:
        """Drop the files of versions that were pruned on disk; what is noted of them stays."""
        if self.shared and versions:
            gone = list(versions)
            self.submit(
                lambda connection: drop_files(connection, pair_id(connection, target, drafter), domain, gone)
            )

    def fetch_adapters(self, target: str, drafter: str, storage: Path) -> dict[str, int] | None:
        """Bring a pair's lines in the storage folder to the state of a shared database (`fetch`). Returns the
        newest version of each line that it knows. None, and nothing happens, where it does not answer, and
        with SQLite."""
        if not self.shared:
            return None
        if self.status.ok:
            self.flush(10.0)
        return fetch(self.read, target, drafter, storage)

    def set_effect(
        self, target: str, drafter: str, domain: str, version: int, effect: Mapping[str, float]
    ) -> None:
        """Note what a version was measured to change."""
        self._update_line(target, drafter, domain, ADAPTERS.c.version == version, effect=_finite(effect))

    def _update_line(self, target: str, drafter: str, domain: str, *which: Any, **values: Any) -> None:
        """Change the versions of a line, or `which` of them."""

        def write(connection: Connection) -> None:
            line = of_line(ADAPTERS, pair_id(connection, target, drafter), domain)
            connection.execute(update(ADAPTERS).where(*line, *which).values(**values))

        self.submit(write)


def _finite(effect: Mapping[str, float]) -> dict[str, float | None]:
    return {name: number(value) for name, value in effect.items()}


class Noted(NamedTuple):
    """A version that the database knows; its files may be gone."""

    domain: str
    version: int
    sha256: str | None
    active: bool
    trusted: bool


def add_files(connection: Connection, pair: int, domain: str, version: int, folder: str | None) -> None:
    """Write the files of a version, whose row is there; nothing where its folder was pruned meanwhile."""
    try:
        contents = version_folders.read_files(Path(folder)) if folder else {}
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


def drop_files(connection: Connection, pair: int, domain: str, versions: Sequence[int]) -> None:
    """Drop the files of pruned versions; their rows stay, as the line's history."""
    where = (
        ADAPTER_FILES.c.pair_id == pair,
        ADAPTER_FILES.c.domain == domain,
        ADAPTER_FILES.c.version.in_(versions),
    )
    connection.execute(delete(ADAPTER_FILES).where(*where))


def fetch(read: Read, target: str, drafter: str, storage: Path) -> dict[str, int] | None:
    """Write the versions of a pair's lines that the storage folder lacks or has otherwise, and which is
    active and trusted. Returns the newest version of each line that the database knows; None where it does
    not answer. A line whose newest version is on this disk alone keeps its choice."""
    query = of_pair(ADAPTERS, target, drafter, *(ADAPTERS.c[name] for name in Noted._fields))
    query = query.order_by(ADAPTERS.c.domain, ADAPTERS.c.version)
    noted = read(lambda connection: [Noted(*row) for row in connection.execute(query)], None)
    files = of_pair(ADAPTER_FILES, target, drafter, ADAPTER_FILES.c.name, ADAPTER_FILES.c.content)
    lines: dict[str, list[Noted]] = {}
    for version in noted or []:
        # a visitor's line stays on the machine that serves them: a copy would outlive its deletion there
        if not owned(version.domain):
            lines.setdefault(version.domain, []).append(version)
    for domain, versions in lines.items():
        folder = version_folders.line_folder(storage, drafter, target, domain)
        try:
            for version in versions:
                _fetch_version(read, files, folder, version)
            if max(version_folders.versions(folder), default=0) <= versions[-1].version:
                active = next((each.version for each in versions if each.active), 0)
                trusted = next((each.version for each in versions if each.trusted), 0)
                version_folders.write_note(folder, "active", active)
                version_folders.write_note(folder, "trusted", trusted)
        except OSError as error:
            log.warning("The line %s could not be copied from the database: %s", domain, error)
    return None if noted is None else {domain: versions[-1].version for domain, versions in lines.items()}


def _fetch_version(read: Read, files: Select[Any], line: Path, wanted: Noted) -> None:
    here = version_folders.info_of(line, wanted.version)
    if wanted.sha256 is None or (here is not None and here.sha256 == wanted.sha256):
        return
    query = files.where(ADAPTER_FILES.c.domain == wanted.domain, ADAPTER_FILES.c.version == wanted.version)
    contents = read(
        lambda connection: {name: bytes(content) for name, content in connection.execute(query)}, {}
    )
    if contents.keys() - version_folders.FILES:
        log.warning(
            "Version %d of the line %s is left out: the database has files of it that no version has",
            wanted.version,
            wanted.domain,
        )
    elif contents:
        version_folders.write_files(line, wanted.version, contents)
