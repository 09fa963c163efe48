"""The versions on disk and in the store, made equal: after a start on another machine, and after the database was replaced."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

from omnidemo.adapters import version_folders
from omnidemo.lines import read_status
from omnidemo.store.store import Store
from omnidemo.store.visitors import owned


class StoredVersions:
    """`names`: the lines in the storage folder; `folder`: where the versions of one lie."""

    def __init__(self, store: Store, target: str, drafter: str, names: Callable[[], Iterable[str]], folder: Callable[[str], Path]) -> None:
        self._store, self._target, self._drafter, self._names, self._folder = store, target, drafter, names, folder

    def share(self, storage: Path) -> None:
        """Take the versions that other machines have put into a shared database, and add what this disk alone has, visitors' lines left
        out: those may have been deleted elsewhere."""
        known = self._store.fetch_adapters(self._target, self._drafter, storage)
        if known is not None:
            for domain in self._names():
                if not owned(domain):
                    self._note(domain, known.get(domain, 0))

    def note_all(self) -> None:
        """Note every version on disk in the store again, after its database was deleted or replaced. Loss curves and effects are lost."""
        for domain in self._names():
            self._note(domain, 0)

    def _note(self, domain: str, after: int) -> None:
        folder = self._folder(domain)
        active, trusted = (version_folders.read_note(folder, note) for note in ("active", "trusted"))
        late = [version for version in reversed(version_folders.versions(folder)) if version > after]
        for version in late:
            if info := read_status.info(folder, version):
                known = replace(info, drafter=self._drafter, target=self._target, domain=domain)
                self._store.add_adapter(known, version == active)
        if late and trusted is not None:
            self._store.set_trusted(self._target, self._drafter, domain, trusted)
