"""The parts that all sources of a file share: its place, progress, and stopping."""

from __future__ import annotations

import errno
import hashlib
import threading
from collections.abc import Callable
from pathlib import Path
from time import monotonic
from typing import TypeVar

from omnidemo.core.config import ModelError
from omnidemo.models.fetching.fetchable import Fetchable, partial_of

T = TypeVar("T")
CHUNK = 2**20
POLL_SECONDS = 0.1
MORE_DISK = "free space or set OMNIDEMO_MODELS to a folder on another disk"
SPARE = 64 * 2**20  # bytes of the disk that a fetch leaves free


STOPPED = "the download was stopped; what has come stays, and the next one goes on from there"


class Stopped(ModelError):
    """Somebody stopped a download; raised by progress callbacks."""


class SourceFailed(Exception):
    """A source that cannot deliver the file now: `cause`, and perhaps the `step` that helps."""

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

    def __init__(self, entry: Fetchable, folder: Path, patience: float, told: Callable[[int], None]) -> None:
        self.entry, self.folder, self.told = entry, folder, told
        self.path = folder / entry.file
        self.partial = partial_of(self.path)
        self.stopping = threading.Event()
        self.flowing = False  # whether a byte has come
        self._patience, self._until = patience, monotonic() + patience

    def begin(self) -> None:
        """Start the clock of the patience."""
        self._until = monotonic() + self._patience

    def report(self, done: int) -> None:
        """Report that `done` bytes of the file are here. Raises Stopped."""
        self.check()
        self.told(done)

    def check(self) -> None:
        if self.stopping.is_set():
            raise Stopped(STOPPED)

    def patience(self) -> float:
        """Seconds left until the first byte has to be here."""
        return max(0.0, self._until - monotonic())

    def digest(self, path: Path) -> str:
        """The sha256 of a file's contents. Raises Stopped."""
        found = hashlib.sha256()
        with path.open("rb") as opened:
            while data := opened.read(CHUNK):
                self.check()
                found.update(data)
        return found.hexdigest()

    def is_it(self, path: Path) -> bool:
        """Whether a file is the catalogue's."""
        return path.stat().st_size == self.entry.bytes and self.digest(path) == self.entry.sha256


def within(seconds: float, ask: Callable[[], T], flowing: Callable[[], bool], check: Callable[[], None]) -> T:
    """The result of `ask` in another thread. TimeoutError where it has neither ended nor begun to flow after
    so many seconds; errors of `check` meanwhile. The thread is then abandoned, because no library ends a
    silent name server in time."""
    answers: list[tuple[T | None, BaseException | None]] = []

    def call() -> None:
        try:
            answers.append((ask(), None))
        except BaseException as error:
            answers.append((None, error))

    thread, until = threading.Thread(target=call, name="fetch: a source", daemon=True), monotonic() + seconds
    thread.start()
    while thread.is_alive():
        check()
        if not flowing() and monotonic() > until:
            raise TimeoutError("no answer")
        thread.join(POLL_SECONDS)
    answer, error = answers[0]
    if error is not None:
        raise error
    return answer  # type: ignore[return-value]
