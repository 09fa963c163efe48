"""The versions of one adapter line: which one drafts, which one is trusted, and how both outlive a
restart."""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from torch import Tensor

from omnidemo.adapters import version_folders
from omnidemo.adapters.version_folders import AdapterState, OptimiserState
from omnidemo.records import AdapterVersion, TrainStep
from omnidemo.store.store import Store

log = logging.getLogger(__name__)
Publish = Callable[[int, Mapping[str, Tensor], Mapping[str, Tensor]], None]


@dataclass(frozen=True, slots=True, eq=False)
class Published:
    """A version in memory. Version 0 is the base drafter, with neither adapter nor optimiser."""

    version: int = 0
    adapter: AdapterState | None = None
    optimiser: OptimiserState | None = None
    requests: int = 0  # seen when it was made
    loss: float | None = None
    since: str | None = None  # UTC ISO, when it was swapped in


class AdapterRegistry:
    """Keeps the versions of a line (drafter, target, domain) on disk, publishes one of them, and notes both
    in the store.

    Whoever calls a method holds `lock`. `publish(version, weights, head)` is called with it held, after the
    version is on disk. `error` is a sentence about what went wrong last. `trusted` is the last version that
    was measured to be better than the one trusted before it, or chosen or imported by hand; it is never
    pruned.
    """

    def __init__(
        self,
        folder: Path,
        drafter: str,
        target: str,
        domain: str,
        storage: Path,
        publish: Publish,
        store: Store,
    ) -> None:
        self.folder, self.drafter, self.target, self.domain = folder, drafter, target, domain
        self.line_folder = version_folders.line_folder(storage, drafter, target, domain)
        self.lock = threading.RLock()
        self.current, self.trusted = Published(), Published()
        self.epoch = 0  # grows with every swap but an update's: an update that began before it is dropped
        self.error: str | None = None
        self._publish, self._store = publish, store
        self._names = (target, drafter, domain)  # by which the store knows the line

    @property
    def untouched(self) -> bool:
        """Whether the line has no version at all."""
        return not self.current.version and not version_folders.versions(self.line_folder)

    def restore(self) -> int:
        """Publish the version that was active last, or the newest whole one before it; its number (0: none,
        also where the line had been rolled back to the base drafter)."""
        version_folders.sweep(self.line_folder)
        noted = version_folders.read_note(self.line_folder, "active")
        for version in version_folders.versions(self.line_folder):
            if noted is not None and version > noted:
                continue
            try:
                self._swap_to(version)
                self._trust_noted()
                self._store.set_active(*self._names, version)
                return version
            except (ValueError, OSError) as error:
                log.warning("%s", error)
                self.error = str(error)
        return 0

    def activate(self, version: int) -> None:
        """Publish a stored version and trust it; 0 is the base drafter. Raises ValueError where it is missing
        or damaged, OSError where the choice cannot be noted for a restart: it drafts all the same."""
        self._swap_to(version)
        self.promote()
        version_folders.write_note(self.line_folder, "active", version)
        self._store.set_active(*self._names, version)

    def adopt(self, adapter: AdapterState, requests: int, kept: int) -> int:
        """Make an adapter from elsewhere the newest version of a line that has seen so many requests, and
        trust it; its number. Raises ValueError where it does not fit."""
        self.epoch += 1
        self.add(adapter, OptimiserState(0, {}), (), requests, kept)
        self.promote()
        return self.current.version

    def add(
        self,
        adapter: AdapterState,
        optimiser: OptimiserState,
        steps: Sequence[TrainStep],
        requests: int,
        kept: int,
    ) -> None:
        """Write the next version, note it, publish it, and prune all but the newest `kept`. Raises OSError,
        or ValueError where it does not fit the drafter; then the published version stays."""
        weights = version_folders.merged_weights(version_folders.BaseWeights(self.folder), adapter)
        version = max([self.current.version, *version_folders.versions(self.line_folder)]) + 1
        losses = [step.loss for step in steps if math.isfinite(step.loss)]
        loss, now = (sum(losses) / len(losses) if losses else None), _now()
        names = (self.drafter, self.target, self.domain)
        info = AdapterVersion(
            version, *names, None, None, self.current.version, requests, optimiser.step, loss, now
        )
        info = version_folders.write_version(self.line_folder, info, adapter, optimiser)
        version_folders.write_note(self.line_folder, "active", version)
        self.error = None
        self._store.record_steps(*self._names, version, steps)
        self._store.add_adapter(info, True)
        self._publish(version, weights, adapter.head)
        self.current = Published(version, adapter, optimiser, requests, loss, now)
        gone = version_folders.prune(self.line_folder, kept, version, self.trusted.version)
        self._store.drop_files(*self._names, gone)

    def promote(self) -> None:
        """Trust the published version: from now on versions are compared with it."""
        self.trusted = self.current
        version_folders.write_note(self.line_folder, "trusted", self.current.version)
        self._store.set_trusted(*self._names, self.trusted.version)

    def roll_back(self) -> None:
        """Publish the trusted version again, and go on from there; the base drafter where the files of that
        version are gone."""
        try:
            self.activate(self.trusted.version)
        except (ValueError, OSError) as error:
            log.warning("%s", error)
            self.activate(0)

    def effect(self, version: int, values: Mapping[str, float]) -> None:
        """Note what a version was measured to change."""
        self._store.set_effect(*self._names, version, values)

    def reset(self) -> None:
        """Back to the base drafter: the line's versions and its loss curve go."""
        self._swap_to(0)
        version_folders.remove_line(self.line_folder)
        self._store.forget_line(*self._names)
        self.current = self.trusted = Published()

    def _swap_to(self, version: int) -> None:
        """Publish a stored version, or the base drafter. Raises ValueError where that version cannot be
        used."""
        base, chosen = version_folders.BaseWeights(self.folder), self._stored(version)
        weights: Mapping[str, Tensor] = {}
        if chosen.adapter:
            weights = version_folders.merged_weights(base, chosen.adapter)
        elif self.current.adapter:
            weights = version_folders.base_matrices(base, self.current.adapter)
        self._publish(version, weights, chosen.adapter.head if chosen.adapter else {})
        self.epoch += 1
        self.current, self.error = chosen, None

    def _stored(self, version: int) -> Published:
        """ValueError where it is missing or damaged."""
        if not version:
            return Published(since=_now())
        stored = version_folders.load_version(version_folders.version_folder(self.line_folder, version))
        return Published(
            version, stored.adapter, stored.optimiser, stored.info.requests_seen, stored.info.loss, _now()
        )

    def _trust_noted(self) -> None:
        """After a restart: trust the noted version; the base drafter where none is noted (none was measured
        to be better than it), the published one where it is damaged."""
        self.trusted = self.current
        noted = version_folders.read_note(self.line_folder, "trusted") or 0
        if noted != self.current.version:
            try:
                self.trusted = replace(self._stored(noted), optimiser=None)
            except (ValueError, OSError) as error:
                log.warning("%s", error)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
