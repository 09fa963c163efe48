"""The catalogue's first choice of a target, fetched and compiled for while a smaller one answers."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from omnidemo.backends import compile_kernels
from omnidemo.core.config import DEFAULT, Settings
from omnidemo.models.fetching.fetch import Fetch, where
from omnidemo.models.gguf import identity, sources
from omnidemo.models.names import default_target, lacking

Stage = Literal["none", "fetching", "compiling", "ready", "stopped", "failed"]


@dataclass(frozen=True, slots=True)
class BetterState:
    """How far the better target is: `done` of `size` bytes are here, from `source`. `name`: its known name.
    `error`: why it cannot be had, one sentence."""

    stage: Stage = "none"
    name: str = ""
    title: str = ""
    done: int = 0
    size: int = 0
    source: str = ""
    error: str = ""


def first_target(settings: Settings) -> Settings:
    """The settings with the target to start with, where they leave it open. Until the kernels are compiled
    the catalogue's first choice would answer too slowly, so a smaller target begins, and the first choice is
    offered later. A Space waits for the kernels: its visitors cannot change the target."""
    best = identity.defaults()[0]
    if settings.target != DEFAULT or os.environ.get("SPACE_ID") or compile_kernels.kept():
        return settings
    begins = default_target(settings, without=[best.known])
    return settings.model_copy(update={"target": begins.where})


class BetterTarget:
    """Fetches the file and waits for the compiled kernels; `start` begins, `state` says how far it is.
    Thread-safe."""

    def __init__(
        self, settings: Settings, compiled: Callable[[], bool] = lambda: compile_kernels.kernels() is not None
    ) -> None:
        """`settings`: as the user gave them. Where these name a target, nothing is fetched or offered.
        `compiled`: whether the kernels are compiled."""
        self._settings, self._compiled = settings, compiled
        self._entry = identity.defaults()[0]
        self._wanted = settings.target == DEFAULT
        self._fetch: Fetch | None = None

    def start(self) -> None:
        """Fetch the file, unless it is here, is being fetched, or would not fit the memory. A fetch that was
        stopped or failed begins again."""
        running = self._fetch is not None and not self._fetch.state.finished
        if not self._wanted or running or self._here() or lacking(self._entry):
            return
        self._fetch = Fetch(self._entry, self._settings).start()

    def stop(self) -> None:
        """End the fetch; bytes that have arrived stay."""
        if self._fetch is not None:
            self._fetch.stop()

    def state(self) -> BetterState:
        if not self._wanted:
            return BetterState()
        entry, size = self._entry, self._entry.bytes
        about: dict[str, Any] = {"name": entry.known, "title": entry.title, "size": size}
        found = self._fetch.state if self._fetch is not None else None
        if self._here():
            return BetterState(self._made(), done=size, **about)
        if short := lacking(entry):
            return BetterState("failed", error=short, **about)
        if found is None:
            return BetterState()
        if found.stage == "failed":
            return BetterState("failed", done=found.done, error=found.error or "", **about)
        stage: Stage = "stopped" if found.stage == "stopped" else "fetching"
        return BetterState(stage, done=found.done, source=found.source, **about)

    def _made(self) -> Stage:
        """The stage of a file that is here. "none" where compiling failed: it would answer too slowly."""
        if self._compiled():
            return "ready"
        return "none" if compile_kernels.failure() else "compiling"

    def _here(self) -> bool:
        return (
            where(self._entry, self._settings) is not None
            or sources.catalogued(self._entry, self._settings.folders) is not None
        )
