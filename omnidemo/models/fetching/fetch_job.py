"""The parts that all sources of a file share: its place, progress, and stopping."""

from __future__ import annotations

import errno
import hashlib
import threading
from collections.abc import Callable
from pathlib import Path
from time import monotonic

from omnidemo.core.config import ModelError
from omnidemo.models.gguf.identity import CatalogueFile

CHUNK = 2**20
POLL_SECONDS = 0.1
MORE_DISK = "free space or set OMNIDEMO_MODELS to a folder on another disk"
SPARE = 64 * 2**20  # bytes of the disk that a fetch leaves free
STOPPED = "the download was stopped; what has come stays, and the next one goes on from there"


class FetchStopped(ModelError):
    """Somebody stopped a download; raised by progress callbacks."""


class SourceFailed(Exception):
    """A download source failed, with its reason and an optional hint."""

    def __init__(self, cause: str, step: str = "") -> None:
        super().__init__(cause)
        self.cause, self.step = cause, step


def disk_failure(error: OSError, folder: Path) -> SourceFailed:
    """The failure of an OSError in OmniDemo's folder."""
    if error.errno in (errno.ENOSPC, getattr(errno, "EDQUOT", None)):
        return SourceFailed("the disk is full", MORE_DISK)
    why = error.strerror or type(error).__name__
    return SourceFailed(f"{folder} cannot be written to ({why})", "set OMNIDEMO_MODELS to another folder")


class FetchJob:
    """One try to get a file into `folder`. `patience`: seconds until the first byte, for all sources
    together; afterwards a source may take as long as bytes arrive."""

    def __init__(
        self, entry: CatalogueFile, folder: Path, patience: float, told: Callable[[int], None]
    ) -> None:
        self.entry, self.folder, self.told = entry, folder, told
        self.path, self.partial = folder / entry.file, folder / f"{entry.file}.partial"
        self.stopping = threading.Event()
        self.flowing = False  # whether a byte has come
        self._patience, self._until = patience, monotonic() + patience

    def begin(self) -> None:
        """Start the clock of the patience."""
        self._until = monotonic() + self._patience

    def report(self, done: int) -> None:
        """Report that `done` bytes of the file are here. Raises FetchStopped."""
        self.check()
        self.told(done)

    def check(self) -> None:
        if self.stopping.is_set():
            raise FetchStopped(STOPPED)

    def patience(self) -> float:
        """Seconds left until the first byte has to be here."""
        return max(0.0, self._until - monotonic())

    def is_it(self, path: Path) -> bool:
        """Whether a file is the catalogue's, by its size and sha256. Raises FetchStopped."""
        if path.stat().st_size != self.entry.bytes:
            return False
        found = hashlib.sha256()
        with path.open("rb") as opened:
            while data := opened.read(CHUNK):
                self.check()
                found.update(data)
        return found.hexdigest() == self.entry.sha256
