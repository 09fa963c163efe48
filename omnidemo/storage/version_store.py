"""The owner of all adapter versions, which gives access to those of a line (`line_versions.py`). Both use the
files of `models/adapters/version_folders.py`."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from pathlib import Path

from omnidemo.models.adapters import version_folders
from omnidemo.storage.line_store import Noted
from omnidemo.storage.line_versions import LineVersions
from omnidemo.storage.store import Store
from omnidemo.storage.visitors import NAME_BYTES, OWN, owned

log = logging.getLogger(__name__)
# the folder name of a visitor's line, by `version_folders.safe_name`
VISITORS = re.compile(rf"({re.escape(OWN.strip('~'))}[0-9a-f]{{{2 * NAME_BYTES}}})-[0-9a-f]{{10}}")


class VersionStore:
    """The versions of all adapter lines of a storage folder. `store`: the database of their rows; None for
    reading alone. Thread-safe."""

    def __init__(self, storage: Path, store: Store | None = None) -> None:
        self._storage, self._store = storage, store
        self._domains: dict[str, str] = {}  # folder name → domain

    def line(self, target: str, drafter: str, domain: str) -> LineVersions:
        return LineVersions(self._storage, self._store, target, drafter, domain)

    def domains(self, target: str, drafter: str) -> list[str]:
        """The lines of a pair that have versions. The name of a line is read from a manifest, once."""
        try:
            folders = version_folders.lines_of(self._storage, drafter, target)
            held = {folder: stored for folder in folders if (stored := version_folders.versions(folder))}
        except OSError:  # without versions, or without a disk
            return []
        for folder, versions in held.items():
            if folder.name not in self._domains:
                infos = (version_folders.info_of(folder, version) for version in versions)
                if (info := next(filter(None, infos), None)) is not None:
                    self._domains[folder.name] = info.domain
        return [self._domains[folder.name] for folder in held if folder.name in self._domains]

    def share(self, target: str, drafter: str) -> None:
        """Copy versions of other machines from a shared database, with the active and the trusted one, and
        store those that only this disk has. A line whose newest version is only on this disk keeps its
        choice. Visitors' lines are left out, because a copy would outlive their deletion on another
        machine."""
        noted = self._store.noted_versions(target, drafter) if self._store is not None else None
        if noted is None:
            return
        lines: dict[str, list[Noted]] = {}
        for version in noted:
            if not owned(version.domain):
                lines.setdefault(version.domain, []).append(version)
        for domain, versions in lines.items():
            try:
                self._take(self.line(target, drafter, domain), versions)
            except OSError as error:
                log.warning("The line %s could not be copied from the database: %s", domain, error)
        for domain in self.domains(target, drafter):
            if not owned(domain):
                self.line(target, drafter, domain).tell(lines[domain][-1].version if domain in lines else 0)

    def _take(self, line: LineVersions, versions: Sequence[Noted]) -> None:
        """Copy the state of a line from a shared database into its folder. Raises OSError."""
        assert self._store is not None
        for wanted in versions:
            here = line.info(wanted.version)
            if wanted.sha256 is None or (here is not None and here.sha256 == wanted.sha256):
                continue
            files = self._store.version_files(line.target, line.drafter, line.domain, wanted.version)
            if files.keys() - version_folders.FILES:
                log.warning(
                    "Version %d of the line %s is left out: the database has files of it that no version has",
                    wanted.version,
                    line.domain,
                )
            elif files:
                version_folders.write_files(line.folder, wanted.version, files)
        if max(line.numbers(), default=0) <= versions[-1].version:
            active = next((each.version for each in versions if each.active), 0)
            trusted = next((each.version for each in versions if each.trusted), 0)
            version_folders.write_note(line.folder, "active", active)
            version_folders.write_note(line.folder, "trusted", trusted)

    def visitors(self) -> dict[str, float]:
        """The lines of visitors over all pairs, with the UNIX time of their last change."""
        changed: dict[str, float] = {}
        for folder in version_folders.lines_of(self._storage):
            if visitor := VISITORS.fullmatch(folder.name):
                domain = f"~{visitor[1]}"
                changed[domain] = max(changed.get(domain, 0.0), version_folders.changed_at(folder))
        return changed

    def forget(self, domain: str) -> None:
        """Delete all versions of the lines of that name, of all pairs, with their rows. Files that cannot be
        removed are logged."""
        for folder in version_folders.lines_of(self._storage):
            if folder.name == version_folders.safe_name(domain):
                try:
                    version_folders.remove_line(folder)
                except OSError as error:
                    log.warning("The adapter in %s could not be removed: %s", folder, error)
        if self._store is not None:
            self._store.forget_domain(domain)
