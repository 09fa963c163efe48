"""Adapter versions inside a database that several machines share: each file of a version is a row, a storage
folder is a copy of them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy import Connection, Select, delete, insert

from omnidemo.adapters import version_folders
from omnidemo.store.tables import ADAPTER_FILES, ADAPTERS, of_pair
from omnidemo.store.visitors import owned

log = logging.getLogger(__name__)
MOST_BYTES = 256 * 2**20  # of one version; PostgreSQL refuses a statement of 1 GB
Read = Callable[[Callable[[Connection], Any], Any], Any]  # `Database.read`


class Known(NamedTuple):
    """A version that the database knows; its files may be gone."""

    domain: str
    version: int
    sha256: str | None
    active: bool
    trusted: bool


def add(connection: Connection, pair: int, domain: str, version: int, folder: str | None) -> None:
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


def drop(connection: Connection, pair: int, domain: str, versions: Sequence[int]) -> None:
    """Drop the files of pruned versions; their rows stay, as the line's history."""
    where = (
        ADAPTER_FILES.c.pair_id == pair,
        ADAPTER_FILES.c.domain == domain,
        ADAPTER_FILES.c.version.in_(versions),
    )
    connection.execute(delete(ADAPTER_FILES).where(*where))


def fetch(read: Read, target: str, drafter: str, storage: Path) -> dict[str, int] | None:
    """Write the versions of a pair's lines that the storage folder lacks or has otherwise, and which is
    active and trusted; the newest version of each line that the database knows, None where it does not
    answer. Of a line whose newest version is on this disk alone, the choice made here stays."""
    query = of_pair(ADAPTERS, target, drafter, *(ADAPTERS.c[name] for name in Known._fields))
    query = query.order_by(ADAPTERS.c.domain, ADAPTERS.c.version)
    found = read(lambda connection: [Known(*one) for one in connection.execute(query)], None)
    files = of_pair(ADAPTER_FILES, target, drafter, ADAPTER_FILES.c.name, ADAPTER_FILES.c.content)
    lines: dict[str, list[Known]] = {}
    for one in found or []:
        if owned(one.domain):
            # a visitor's line stays on the machine that serves the visitor: a copy would outlive its deletion
            # there
            continue
        lines.setdefault(one.domain, []).append(one)
    for domain, known in lines.items():
        folder = version_folders.line_folder(storage, drafter, target, domain)
        try:
            for one in known:
                _fetch_version(read, files, folder, one)
            if max(version_folders.versions(folder), default=0) <= known[-1].version:
                version_folders.write_note(
                    folder, "active", next((one.version for one in known if one.active), 0)
                )
                version_folders.write_note(
                    folder, "trusted", next((one.version for one in known if one.trusted), 0)
                )
        except OSError as error:
            log.warning("The line %s could not be copied from the database: %s", domain, error)
    return None if found is None else {domain: known[-1].version for domain, known in lines.items()}


def _fetch_version(read: Read, files: Select[Any], line: Path, one: Known) -> None:
    here = version_folders.info_of(line, one.version)
    if one.sha256 is None or (here is not None and here.sha256 == one.sha256):
        return
    query = files.where(ADAPTER_FILES.c.domain == one.domain, ADAPTER_FILES.c.version == one.version)
    contents = read(
        lambda connection: {name: bytes(content) for name, content in connection.execute(query)}, {}
    )
    if contents.keys() - version_folders.FILES:
        log.warning(
            "Version %d of the line %s is left out: the database has files of it that no version has",
            one.version,
            one.domain,
        )
    elif contents:
        version_folders.write_files(line, one.version, contents)
