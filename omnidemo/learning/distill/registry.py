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

from omnidemo.core.records import TrainStep
from omnidemo.models.adapters.adapter_state import (
    AdapterState,
    AdapterVersion,
    BaseWeights,
    OptimiserState,
    base_matrices,
    merged_weights,
)
from omnidemo.storage.version_store import LineVersions

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
    """Publishes one of the versions of a line, and keeps what it is told to in the line's `LineVersions`.

    Whoever calls a method holds `lock`. `publish(version, weights, head)` is called with it held, after the
    version is on disk. `error` is a sentence about what went wrong last. `trusted` is the last version that
    was measured to be better than the one trusted before it, or chosen or imported by hand; it is never
    pruned.
    """

    def __init__(self, folder: Path, line: LineVersions, publish: Publish) -> None:
        """`folder`: of the drafter."""
        self.folder, self.line = folder, line
        self.lock = threading.RLock()
        self.current, self.trusted = Published(), Published()
        self.epoch = 0  # grows with every swap but an update's: an update that began before it is dropped
        self.error: str | None = None
        self._publish = publish

    @property
    def untouched(self) -> bool:
        """Whether the line has no version at all."""
        return not self.current.version and not self.line.numbers()

    def restore(self) -> int:
        """Publish the version that was active last, or the newest whole one before it; its number (0: none,
        also where the line had been rolled back to the base drafter)."""
        self.line.sweep()
        noted = self.line.active
        for version in self.line.numbers():
            if noted is not None and version > noted:
                continue
            try:
                self._swap_to(version)
                self._trust_noted()
                self.line.tell_active(version)
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
        self.line.activate(version)

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
        weights = merged_weights(BaseWeights(self.folder), adapter)
        version = max([self.current.version, *self.line.numbers()]) + 1
        losses = [step.loss for step in steps if math.isfinite(step.loss)]
        loss, now = (sum(losses) / len(losses) if losses else None), _now()
        names = (self.line.drafter, self.line.target, self.line.domain)
        info = AdapterVersion(
            version, *names, None, None, self.current.version, requests, optimiser.step, loss, now
        )
        self.line.add(info, adapter, optimiser, steps)
        self.error = None
        self._publish(version, weights, adapter.head)
        self.current = Published(version, adapter, optimiser, requests, loss, now)
        self.line.prune(kept, version, self.trusted.version)

    def promote(self) -> None:
        """Trust the published version: from now on versions are compared with it."""
        self.trusted = self.current
        self.line.trust(self.trusted.version)

    def roll_back(self) -> None:
        """Publish the trusted version again, and go on from there; the base drafter where the files of that
        version are gone."""
        try:
            self.activate(self.trusted.version)
        except (ValueError, OSError) as error:
            log.warning("%s", error)
            self.activate(0)

    def reset(self) -> None:
        """Back to the base drafter: the line's versions and its loss curve go."""
        self._swap_to(0)
        self.line.reset()
        self.current = self.trusted = Published()

    def _swap_to(self, version: int) -> None:
        """Publish a stored version, or the base drafter. Raises ValueError where that version cannot be
        used."""
        base, chosen = BaseWeights(self.folder), self._stored(version)
        weights: Mapping[str, Tensor] = {}
        if chosen.adapter:
            weights = merged_weights(base, chosen.adapter)
        elif self.current.adapter:
            weights = base_matrices(base, self.current.adapter)
        self._publish(version, weights, chosen.adapter.head if chosen.adapter else {})
        self.epoch += 1
        self.current, self.error = chosen, None

    def _stored(self, version: int) -> Published:
        """ValueError where it is missing or damaged."""
        if not version:
            return Published(since=_now())
        stored = self.line.load(version)
        return Published(
            version, stored.adapter, stored.optimiser, stored.info.requests_seen, stored.info.loss, _now()
        )

    def _trust_noted(self) -> None:
        """After a restart: trust the noted version; the base drafter where none is noted (none was measured
        to be better than it), the published one where it is damaged."""
        self.trusted = self.current
        noted = self.line.trusted or 0
        if noted != self.current.version:
            try:
                self.trusted = replace(self._stored(noted), optimiser=None)
            except (ValueError, OSError) as error:
                log.warning("%s", error)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
