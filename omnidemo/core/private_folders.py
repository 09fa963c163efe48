"""Folders of one process: the lock on a storage folder, and temporary files, which the next start removes;
files that appear complete or not at all; and sentences without folder names."""

from __future__ import annotations

import atexit
import contextlib
import getpass
import glob
import os
import re
import shutil
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import IO

_guard = threading.Lock()
_held: dict[Path, tuple[IO[str], int]] = {}  # lock files and how many in this process hold them
_own: Path | None = None
LOCK = ".lock"


def hold(storage: Path) -> None:
    """Lock the storage folder for this process, until as many calls of `let_go`, or its end. ValueError, one
    sentence, where another process has it. Nothing happens where the folder cannot be written to, or its file
    system has no locks: no process can write there."""
    path = Path(storage).resolve() / LOCK
    with _guard:
        if path in _held:
            file, count = _held[path]
            _held[path] = (file, count + 1)
            return
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            file = path.open("a+")
        except OSError:
            return
        try:
            _lock(file)
        except BlockingIOError:
            file.seek(0)
            other = file.read(20).strip()
            file.close()
            who = f"process {other}" if other.isdigit() else "another process"
            raise ValueError(
                f"{storage} is used by {who}; stop that one, or name another folder in OMNIDEMO_STORAGE"
            ) from None
        except OSError:
            file.close()
            return
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        _held[path] = (file, 1)


def let_go(storage: Path) -> None:
    path = Path(storage).resolve() / LOCK
    with _guard:
        file, count = _held.pop(path, (None, 0))
        if file is not None and count > 1:
            _held[path] = (file, count - 1)
        elif file is not None:
            file.close()


def _lock(file: IO[str]) -> None:
    """BlockingIOError where another process holds the file, OSError where it cannot be locked. The lock ends
    with the process."""
    try:
        import fcntl
    except ImportError:  # Windows
        import msvcrt

        file.seek(1 << 20)  # after the contents: a locked byte cannot be read
        try:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
        except OSError as error:
            raise BlockingIOError(str(error)) from None
        return
    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def temporary_folder() -> Path:
    """A folder of this process that nobody else can read. It is removed at exit; the remains of killed
    processes are removed now."""
    global _own
    with _guard:
        if _own is None or not _own.is_dir():
            root = Path(tempfile.gettempdir()) / f"omnidemo-{_user()}"
            root.mkdir(mode=0o700, exist_ok=True)
            # another user made it first
            if hasattr(os, "getuid") and (root.is_symlink() or root.stat().st_uid != os.getuid()):
                root = Path(tempfile.mkdtemp(prefix="omnidemo-"))
            sweep(root)
            _own = root / str(os.getpid())
            _own.mkdir(mode=0o700, exist_ok=True)
            atexit.register(shutil.rmtree, _own, ignore_errors=True)
        return _own


def sweep(root: Path) -> None:
    """Remove the folders of processes that are gone."""
    for folder in root.iterdir():
        if folder.name.isdigit() and int(folder.name) != os.getpid() and not _alive(int(folder.name)):
            shutil.rmtree(folder, ignore_errors=True)


def _alive(pid: int) -> bool:
    import psutil

    with contextlib.suppress(Exception):
        return bool(psutil.pid_exists(pid))
    return True


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """`with replacing(path) as partial`: the contents written to `partial` become `path` at once, or not at
    all. The remains of killed processes are removed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    for left in path.parent.glob(f".new-{glob.escape(path.name)}.*"):
        pid = left.suffix[1:].partition("-")[0]
        if pid.isdigit() and not _alive(int(pid)):
            left.unlink(missing_ok=True)
    partial = path.with_name(f".new-{path.name}.{os.getpid()}-{threading.get_ident()}")
    try:
        yield partial
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def _user() -> str:
    with contextlib.suppress(Exception):
        return "".join(char for char in getpass.getuser() if char.isalnum())[:32] or "user"
    return "user"


def without_folders(sentence: str) -> str:
    """A server's sentence for a visitor: file names stay, their folders are removed."""
    return re.sub(r"(?:[A-Za-z]:)?[\\/](?:[^\s\\/'\"]+[\\/])+", "", sentence)
