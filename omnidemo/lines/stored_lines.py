"""The lines of a pair in the storage folder: their names and status, and their versions on disk and in the
store made equal."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from omnidemo.adapters import version_folders
from omnidemo.config import Settings
from omnidemo.distill.trainer_status import State, TrainerStatus, explain
from omnidemo.store.store import Store
from omnidemo.store.visitors import owned


class StoredLines:
    """Works on files and the store: no line has to be in memory."""

    def __init__(self, store: Store, target: str, drafter: str, storage: Path) -> None:
        self._store, self._target, self._drafter, self._storage = store, target, drafter, storage
        self._known: dict[str, str] = {}  # folder name → domain

    def folder(self, domain: str) -> Path:
        return version_folders.line_folder(self._storage, self._drafter, self._target, domain)

    def domains(self) -> list[str]:
        """The lines that have versions. A line's folder name is not its domain, so that is read from a
        manifest, once."""
        try:
            folders = [one for one in self.folder("").parent.iterdir() if not one.name.startswith(".")]
            held = {one.name: stored for one in folders if (stored := version_folders.versions(one))}
        except OSError:  # nothing was learned yet, or the disk is gone: the open lines remain
            return []
        for name in held.keys() - self._known.keys():
            read = (version_folders.info_of(self.folder("").parent / name, version) for version in held[name])
            if (info := next(filter(None, read), None)) is not None:
                self._known[name] = info.domain
        return [self._known[name] for name in held if name in self._known]

    def forget(self, domain: str) -> None:
        """Delete a line's versions. Raises OSError."""
        self._known.pop(self.folder(domain).name, None)
        version_folders.remove_line(self.folder(domain))

    def status(self, domain: str, settings: Settings, paused: bool, waiting: int) -> TrainerStatus:
        """The status of a line that is not in memory. `waiting`: how many of its answers no update has
        learned from yet."""
        folder = self.folder(domain)
        noted, stored = version_folders.read_note(folder, "active"), version_folders.versions(folder)
        version = noted if noted is not None else max(stored, default=0)
        known = version_folders.info_of(folder, version)
        state: State = "off" if settings.training == "off" else "paused" if paused else "idle"
        waits = (
            "This line waits on disk until the next answer of its topic."
            if stored
            else "This line has no answer yet."
        )
        return TrainerStatus(
            state=state,
            why=waits if state == "idle" else explain(state, 0),
            version=version,
            step=known.steps if known else 0,
            loss=known.loss if known else None,
            requests_seen=(known.requests_seen if known else 0) + waiting,
            next_in=max(1, settings.update_interval - waiting),
            mode=settings.training,
            domain=domain,
        )

    def share(self) -> None:
        """Take the versions that other machines have put into a shared database, and add what this disk alone
        has, visitors' lines left out: those may have been deleted elsewhere."""
        known = self._store.fetch_adapters(self._target, self._drafter, self._storage)
        if known is not None:
            for domain in self.domains():
                if not owned(domain):
                    self._note(domain, known.get(domain, 0))

    def note_all(self) -> None:
        """Note every version on disk in the store again, after its database was deleted or replaced. Loss
        curves and effects are lost."""
        for domain in self.domains():
            self._note(domain, 0)

    def _note(self, domain: str, after: int) -> None:
        folder = self.folder(domain)
        active, trusted = (version_folders.read_note(folder, note) for note in ("active", "trusted"))
        late = [version for version in reversed(version_folders.versions(folder)) if version > after]
        for version in late:
            if info := version_folders.info_of(folder, version):
                known = replace(info, drafter=self._drafter, target=self._target, domain=domain)
                self._store.add_adapter(known, version == active)
        if late and trusted is not None:
            self._store.set_trusted(self._target, self._drafter, domain, trusted)
