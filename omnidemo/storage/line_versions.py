"""The versions of one adapter line: their files, their rows in the database, and which of them drafts."""

from __future__ import annotations

import logging
import math
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from torch import Tensor

from omnidemo.core.records import TrainStep
from omnidemo.models.adapters import version_folders
from omnidemo.models.adapters.adapter_state import (
    AdapterState,
    AdapterVersion,
    BaseWeights,
    OptimiserState,
    StoredVersion,
    base_matrices,
    merged_weights,
)
from omnidemo.models.adapters.peft_export import export_peft
from omnidemo.storage.store import Store

log = logging.getLogger(__name__)
Publish = Callable[[int, Mapping[str, Tensor], Mapping[str, Tensor]], None]


class LineVersions:
    """The stored versions of a line (target, drafter, domain). Version 0 is the base drafter and is not
    stored. Methods that write raise OSError where the disk fails; failures of the database are not raised."""

    def __init__(self, storage: Path, store: Store | None, target: str, drafter: str, domain: str) -> None:
        self.target, self.drafter, self.domain = target, drafter, domain
        self._names = (target, drafter, domain)  # the line's key in the database
        self._store = store
        self.folder = version_folders.line_folder(storage, drafter, target, domain)

    def numbers(self) -> list[int]:
        """The versions whose files are kept, damaged ones too, newest first."""
        return version_folders.versions(self.folder)

    def info(self, version: int) -> AdapterVersion | None:
        """The record of a version; None for a missing or damaged one."""
        return version_folders.info_of(self.folder, version)

    def load(self, version: int) -> StoredVersion:
        """A stored version. ValueError, one sentence, for a missing, incomplete or damaged one."""
        return version_folders.load_version(version_folders.version_folder(self.folder, version))

    def noted(self, note: version_folders.Note) -> int | None:
        """The noted "active" version, which drafted last, or the "trusted" one (`DraftingVersions`); None
        without a note."""
        return version_folders.read_note(self.folder, note)

    @property
    def active(self) -> int:
        """The version that drafted last; without a note the newest, 0 without versions."""
        noted = self.noted("active")
        return noted if noted is not None else max(self.numbers(), default=0)

    def export(self, version: int, folder: Path) -> Path:
        """Write a version as a zip in PEFT's format into a folder; its path. ValueError, one sentence, for a
        missing or damaged version."""
        if version < 1:
            raise ValueError("Version 0 is the base drafter and has no adapter; choose a later version.")
        if version not in self.numbers():
            said = f"Version {version} of the line {self.domain} is not on disk any more"
            raise ValueError(f"{said}; choose another one.")
        drafter, target = (name.rstrip("/").split("/")[-1] for name in (self.drafter, self.target))
        name = re.sub(r"[^\w.-]|_", "-", f"{drafter}-for-{target}-{self.domain}")
        return export_peft(self.load(version), Path(folder) / f"omnidemo-{name}-v{version}.zip")

    def remove(self) -> None:
        """Remove the files of all versions; their rows stay."""
        version_folders.remove_line(self.folder)

    def tell(self, after: int = 0) -> None:
        """Store the versions above `after` in the database, with the active and the trusted one."""
        late = [version for version in reversed(self.numbers()) if version > after]
        active, trusted = self.noted("active"), self.noted("trusted")
        for version in late:
            if info := self.info(version):
                named = replace(info, drafter=self.drafter, target=self.target, domain=self.domain)
                self._database.add_adapter(named, version == active)
        if late and trusted is not None:
            self._database.set_trusted(*self._names, trusted)

    @property
    def _database(self) -> Store:
        assert self._store is not None, "without a database versions are only read"
        return self._store


@dataclass(frozen=True, slots=True, eq=False)
class Published:
    """A version in memory. Version 0 is the base drafter, without adapter and optimiser."""

    version: int = 0
    adapter: AdapterState | None = None
    optimiser: OptimiserState | None = None
    requests: int = 0  # answers of the line before it
    loss: float | None = None
    since: str | None = None  # UTC ISO time of its swap


class DraftingVersions(LineVersions):
    """The versions of an open line: `current` is published and drafts.

    Callers of methods that change something hold `lock`. `publish(version, weights, head)` is called with it
    held, after the version is on disk. `error`: a sentence about the last failure. `trusted`: the last
    version that was measured to be better than the one trusted before it, or chosen or imported by hand; it
    is never pruned.
    """

    def __init__(
        self, storage: Path, store: Store, target: str, drafter: str, domain: str, base: Path,
        publish: Publish,
    ) -> None:  # fmt: skip
        """`base`: the drafter's folder."""
        super().__init__(storage, store, target, drafter, domain)
        self.base = base
        self.lock = threading.RLock()
        self.current, self.trusted = Published(), Published()
        self.epoch = (
            0  # grows with every swap but an update's; a running update of an earlier epoch is dropped
        )
        self.error: str | None = None
        self._publish = publish

    @property
    def untouched(self) -> bool:
        """Whether the line has no version."""
        return not self.current.version and not self.numbers()

    def restore(self) -> int:
        """Publish the version that was active last, or the newest undamaged one before it; its number (0: the
        base drafter)."""
        version_folders.sweep(self.folder)
        active = self.noted("active")
        for version in self.numbers():
            if active is not None and version > active:
                continue
            try:
                self._swap_to(version)
                self._trust_noted()
                self._database.set_active(*self._names, version)
                return version
            except (ValueError, OSError) as error:
                log.warning("%s", error)
                self.error = str(error)
        return 0

    def activate(self, version: int) -> None:
        """Publish a stored version and trust it; 0: the base drafter. ValueError for a missing or damaged
        version, OSError where the choice cannot be noted for a restart; then it drafts all the same."""
        self._swap_to(version)
        self.promote()
        version_folders.write_note(self.folder, "active", version)
        self._database.set_active(*self._names, version)

    def adopt(self, adapter: AdapterState, requests: int, kept: int) -> int:
        """Publish an imported adapter as the newest version, and trust it; its number. `requests`: answers of
        the line so far; `kept`: as in `add`. ValueError where it does not fit."""
        self.epoch += 1
        self.add(adapter, OptimiserState(0, {}), (), requests, kept)
        self.promote()
        return self.current.version

    def add(
        self, adapter: AdapterState, optimiser: OptimiserState, steps: Sequence[TrainStep], requests: int,
        kept: int,
    ) -> None:  # fmt: skip
        """Write the next version (whole or not at all), store its row and steps, publish it, and prune all
        but the newest `kept` and the trusted one. OSError, or ValueError where it does not fit the drafter;
        then the published version stays."""
        weights = merged_weights(BaseWeights(self.base), adapter)
        version = max([self.current.version, *self.numbers()]) + 1
        losses = [step.loss for step in steps if math.isfinite(step.loss)]
        loss, now = (sum(losses) / len(losses) if losses else None), _now()
        names = (self.drafter, self.target, self.domain)
        info = AdapterVersion(
            version, *names, None, None, self.current.version, requests, optimiser.step, loss, now
        )
        info = version_folders.write_version(self.folder, info, adapter, optimiser)
        version_folders.write_note(self.folder, "active", version)
        self._database.record_steps(*self._names, version, steps)
        self._database.add_adapter(info, True)
        self.error = None
        self._publish(version, weights, adapter.head)
        self.current = Published(version, adapter, optimiser, requests, loss, now)
        gone = version_folders.prune(self.folder, kept, version, self.trusted.version)
        self._database.drop_files(*self._names, gone)

    def promote(self) -> None:
        """Trust the published version: later versions are compared with it."""
        self.trusted = self.current
        version_folders.write_note(self.folder, "trusted", self.trusted.version)
        self._database.set_trusted(*self._names, self.trusted.version)

    def roll_back(self) -> None:
        """Publish the trusted version again; the base drafter where its files are gone."""
        try:
            self.activate(self.trusted.version)
        except (ValueError, OSError) as error:
            log.warning("%s", error)
            self.activate(0)

    def note_effect(self, version: int, effect: Mapping[str, float]) -> None:
        """As `LineStore.set_effect`."""
        self._database.set_effect(*self._names, version, effect)

    def reset(self) -> None:
        """Back to the base drafter: versions and loss curve of the line are deleted."""
        self._swap_to(0)
        self.remove()
        self._database.forget_line(*self._names)
        self.current = self.trusted = Published()

    def _swap_to(self, version: int) -> None:
        """Publish a stored version, or the base drafter (0). ValueError for an unusable version."""
        base, chosen = BaseWeights(self.base), self._stored(version)
        weights: Mapping[str, Tensor] = {}
        if chosen.adapter:
            weights = merged_weights(base, chosen.adapter)
        elif self.current.adapter:
            weights = base_matrices(base, self.current.adapter)
        self._publish(version, weights, chosen.adapter.head if chosen.adapter else {})
        self.epoch += 1
        self.current, self.error = chosen, None

    def _stored(self, version: int) -> Published:
        """A stored version in memory. ValueError for a missing or damaged one."""
        if not version:
            return Published(since=_now())
        stored = self.load(version)
        return Published(
            version, stored.adapter, stored.optimiser, stored.info.requests_seen, stored.info.loss, _now()
        )

    def _trust_noted(self) -> None:
        """After a restart: trust the noted version, without a note the base drafter, and the published
        version where the noted one is damaged."""
        self.trusted = self.current
        noted = self.noted("trusted") or 0
        if noted != self.current.version:
            try:
                self.trusted = replace(self._stored(noted), optimiser=None)
            except (ValueError, OSError) as error:
                log.warning("%s", error)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
