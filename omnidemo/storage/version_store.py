"""The owner of all adapter versions: on disk, and noted in the database. Everybody else asks it; it alone
knows the folders and files (`models/adapters/version_folders.py`) and what of them a database keeps
(`storage/version_files.py`)."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from omnidemo.core.records import TrainStep
from omnidemo.models.adapters import version_folders
from omnidemo.models.adapters.adapter_state import AdapterState, AdapterVersion, OptimiserState, StoredVersion
from omnidemo.models.adapters.peft_export import export_peft
from omnidemo.storage.store import Store
from omnidemo.storage.visitors import NAME_BYTES, OWN, owned

log = logging.getLogger(__name__)
# the folder of a visitor's line, as `version_folders.safe_name` writes it
VISITORS = re.compile(rf"({re.escape(OWN.strip('~'))}[0-9a-f]{{{2 * NAME_BYTES}}})-[0-9a-f]{{10}}")


class LineVersions:
    """The versions of one adapter line (target, drafter, domain). Version 0 is the base drafter and is never
    stored. Methods that write raise OSError where the disk fails. The database is told later, and its
    failures are not raised."""

    def __init__(self, storage: Path, store: Store | None, target: str, drafter: str, domain: str) -> None:
        self.target, self.drafter, self.domain = target, drafter, domain
        self._names = (target, drafter, domain)  # by which the database knows the line
        self._store = store
        self.folder = version_folders.line_folder(storage, drafter, target, domain)

    def numbers(self) -> list[int]:
        """The versions whose files are kept, newest first; damaged ones too."""
        return version_folders.versions(self.folder)

    def info(self, version: int) -> AdapterVersion | None:
        """The record of a version; None where there is none, or it is damaged."""
        return version_folders.info_of(self.folder, version)

    def load(self, version: int) -> StoredVersion:
        """ValueError, one sentence, where the version is missing, incomplete or damaged."""
        return version_folders.load_version(version_folders.version_folder(self.folder, version))

    @property
    def active(self) -> int | None:
        """The version that drafted last; None where nothing is noted."""
        return version_folders.read_note(self.folder, "active")

    @property
    def trusted(self) -> int | None:
        """The last version that was better, or chosen or imported by hand; None where nothing is noted."""
        return version_folders.read_note(self.folder, "trusted")

    @property
    def nbytes(self) -> int:
        """The size of the line's files."""
        return sum(path.stat().st_size for path in self.folder.rglob("*") if path.is_file())

    def add(
        self, info: AdapterVersion, adapter: AdapterState, optimiser: OptimiserState,
        steps: Sequence[TrainStep],
    ) -> None:  # fmt: skip
        """Store a version, with the steps that made it, whole or not at all, and make it the active one."""
        info = version_folders.write_version(self.folder, info, adapter, optimiser)
        version_folders.write_note(self.folder, "active", info.version)
        self._database.record_steps(*self._names, info.version, steps)
        self._database.add_adapter(info, True)

    def activate(self, version: int) -> None:
        """Note which version drafts, for a restart."""
        version_folders.write_note(self.folder, "active", version)
        self.tell_active(version)

    def tell_active(self, version: int) -> None:
        """Tell the database alone which version drafts."""
        self._database.set_active(*self._names, version)

    def trust(self, version: int) -> None:
        version_folders.write_note(self.folder, "trusted", version)
        self._database.set_trusted(*self._names, version)

    def note_effect(self, version: int, effect: Mapping[str, float]) -> None:
        """Note what a version was measured to change."""
        self._database.set_effect(*self._names, version, effect)

    def prune(self, keep: int, *needed: int) -> None:
        """Drop the files of all but the newest `keep` versions and those that are `needed`."""
        gone = version_folders.prune(self.folder, keep, *needed)
        self._database.drop_files(*self._names, gone)

    def export(self, version: int, folder: Path) -> Path:
        """Write a version as a zip in PEFT's format into a folder; its path. ValueError, one sentence, where
        that cannot be."""
        if version < 1:
            raise ValueError("Version 0 is the base drafter and has no adapter; choose a later version.")
        if version not in self.numbers():
            said = f"Version {version} of the line {self.domain} is not on disk any more"
            raise ValueError(f"{said}; choose another one.")
        drafter, target = (name.rstrip("/").split("/")[-1] for name in (self.drafter, self.target))
        name = re.sub(r"[^\w.-]|_", "-", f"{drafter}-for-{target}-{self.domain}")
        return export_peft(self.load(version), Path(folder) / f"omnidemo-{name}-v{version}.zip")

    def sweep(self) -> None:
        """Remove what an interrupted write or removal left behind."""
        version_folders.sweep(self.folder)

    def remove(self) -> None:
        """Remove the files of all versions; what the database noted of them stays."""
        version_folders.remove_line(self.folder)

    def reset(self) -> None:
        """Remove all versions, and their probes and training steps."""
        self.remove()
        self._database.forget_line(*self._names)

    def tell(self, after: int = 0) -> None:
        """Note the versions above `after` in the database, and which of them is active and trusted."""
        late = [version for version in reversed(self.numbers()) if version > after]
        for version in late:
            if info := self.info(version):
                named = replace(info, drafter=self.drafter, target=self.target, domain=self.domain)
                self._database.add_adapter(named, version == self.active)
        if late and self.trusted is not None:
            self._database.set_trusted(*self._names, self.trusted)

    @property
    def _database(self) -> Store:
        assert self._store is not None, "a VersionStore without a database only reads"
        return self._store


class VersionStore:
    """The versions of all adapter lines of a storage folder. `store`: the database that is told of them; None
    for whoever only reads. Methods may be called from any thread."""

    def __init__(self, storage: Path, store: Store | None = None) -> None:
        self._storage, self._store = storage, store
        self._domains: dict[str, str] = {}  # folder name → domain

    def line(self, target: str, drafter: str, domain: str) -> LineVersions:
        return LineVersions(self._storage, self._store, target, drafter, domain)

    def domains(self, target: str, drafter: str) -> list[str]:
        """The lines of a pair that have versions. A folder's name is not the line's, which is read from a
        manifest, once."""
        try:
            folders = version_folders.lines_of(self._storage, drafter, target)
            held = {folder: stored for folder in folders if (stored := version_folders.versions(folder))}
        except OSError:  # nothing was learned yet, or the disk is gone
            return []
        for folder, versions in held.items():
            if folder.name not in self._domains:
                infos = (version_folders.info_of(folder, version) for version in versions)
                if (info := next(filter(None, infos), None)) is not None:
                    self._domains[folder.name] = info.domain
        return [self._domains[folder.name] for folder in held if folder.name in self._domains]

    def share(self, target: str, drafter: str) -> None:
        """Take the versions that other machines have put into a shared database, and add what this disk alone
        has, visitors' lines left out: those may have been deleted elsewhere."""
        newest = None if self._store is None else self._store.fetch_adapters(target, drafter, self._storage)
        if newest is not None:
            shared = (domain for domain in self.domains(target, drafter) if not owned(domain))
            self._tell(target, drafter, ((domain, newest.get(domain, 0)) for domain in shared))

    def tell_all(self, target: str, drafter: str) -> None:
        """Note every version of a pair in the database again, after it was deleted or replaced. Loss curves
        and effects are lost."""
        self._tell(target, drafter, ((domain, 0) for domain in self.domains(target, drafter)))

    def _tell(self, target: str, drafter: str, newest: Iterable[tuple[str, int]]) -> None:
        for domain, version in newest:
            self.line(target, drafter, domain).tell(version)

    def visitors(self) -> dict[str, float]:
        """The lines of visitors over all pairs, with the UNIX time of their last change."""
        changed: dict[str, float] = {}
        for folder in version_folders.lines_of(self._storage):
            if visitor := VISITORS.fullmatch(folder.name):
                domain = f"~{visitor[1]}"
                changed[domain] = max(changed.get(domain, 0.0), version_folders.changed_at(folder))
        return changed

    def forget(self, domain: str) -> None:
        """Delete all versions of the lines of that name, of all pairs, with what the database noted. Files
        that cannot be removed stay, and the log says so."""
        for folder in version_folders.lines_of(self._storage):
            if folder.name == version_folders.safe_name(domain):
                try:
                    version_folders.remove_line(folder)
                except OSError as error:
                    log.warning("The adapter in %s could not be removed: %s", folder, error)
        if self._store is not None:
            self._store.forget_domain(domain)
