"""What belongs to one process: its storage folder, its temporary files, its machine code; and what a killed one leaves behind."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from omnidemo import load_pair, private_folders
from omnidemo.backends import compile_kernels
from omnidemo.config import Settings
from omnidemo.serving.services import Services
from omnidemo.ui import downloads

ROOT = Path(__file__).parents[2]
TAKE = """
import sys, time
from pathlib import Path
from omnidemo import private_folders
private_folders.hold(Path(sys.argv[1]))
"""
HOLDER = TAKE + "print('held', flush=True); time.sleep(60)"
KEEPER = """
import time
from omnidemo import private_folders
folder = private_folders.temporary_folder()
(folder / "secret.csv").write_text("x")
print(folder, flush=True)
"""


def start(code: str, *arguments: str, **options: object) -> subprocess.Popen[str]:
    environment = os.environ | {"PYTHONPATH": str(ROOT)} | options  # type: ignore[operator]
    return subprocess.Popen([sys.executable, "-c", code, *arguments], stdout=subprocess.PIPE, text=True, env=environment)


def test_a_storage_folder_serves_one_process_at_a_time(tmp_path: Path) -> None:
    storage = tmp_path / "storage"
    with start(HOLDER, str(storage)) as other:
        assert other.stdout and other.stdout.readline() == "held\n"
        try:
            with pytest.raises(ValueError, match=f"is used by process {other.pid}; stop that one, or name another folder in OMNI"):
                Services(Settings(storage=storage, training="off"))
            with pytest.raises(ValueError, match="is used by process"):
                load_pair(storage=storage)
        finally:
            os.kill(other.pid, signal.SIGKILL)
    services = Services(Settings(storage=storage, training="off"))  # a lock ends with its process, however that ended
    again = Services(Settings(storage=storage, training="off"))  # the same process may
    services.close()
    with start(TAKE, str(storage)) as other:
        assert other.wait(60) == 1
    again.close()
    with start(TAKE, str(storage)) as other:
        assert other.wait(60) == 0


def test_a_folder_that_cannot_be_locked_stops_nobody(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    private_folders.hold(tmp_path / "file")
    private_folders.let_go(tmp_path / "file")


def test_temporary_files_are_private_and_go_at_the_next_start(tmp_path: Path) -> None:
    with start(KEEPER + "time.sleep(60)", TMPDIR=str(tmp_path)) as other:
        assert other.stdout
        folder = Path(other.stdout.readline().strip())
        assert folder.is_relative_to(tmp_path)
        for one in (folder, folder.parent):
            assert stat.S_IMODE(one.stat().st_mode) == 0o700
        private_folders.sweep(folder.parent)
        assert (folder / "secret.csv").exists()  # its process lives
        os.kill(other.pid, signal.SIGKILL)
    private_folders.sweep(folder.parent)
    assert not folder.exists()
    with start(KEEPER, TMPDIR=str(tmp_path)) as other:
        assert other.wait(60) == 0
    assert not list(folder.parent.iterdir())


def test_exported_files_go_with_their_history() -> None:
    for place in (downloads.temporary("omnidemo-requests.csv"), downloads.uploads() / "ab" / "omnidemo-requests.csv"):
        place.parent.mkdir(exist_ok=True)
        place.write_text("secret")
    downloads.forget_files()
    assert not list(private_folders.temporary_folder().rglob("*.csv"))


def test_the_compiling_process_ends_with_its_parent(tmp_path: Path) -> None:
    code = "import time\nfrom omnidemo.backends import compile_kernels\ncompile_kernels.prepare()\ntime.sleep(600)"
    with start(code, NUMBA_CACHE_DIR=str(tmp_path)) as parent:
        compiles: list[int] = []
        until = time.monotonic() + 60
        while not compiles and time.monotonic() < until:
            compiles = _children(parent.pid)
            time.sleep(0.1)
        assert compiles
        time.sleep(3.0)  # it has read what ends it
        os.kill(parent.pid, signal.SIGKILL)
    until = time.monotonic() + 20
    while any(_running(pid) for pid in compiles) and time.monotonic() < until:
        time.sleep(0.1)
    left = [pid for pid in compiles if _running(pid)]
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert not left


def _children(pid: int) -> list[int]:
    import psutil

    return [child.pid for child in psutil.Process(pid).children(recursive=True)]


def _running(pid: int) -> bool:
    import psutil

    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE


def test_damaged_machine_code_is_compiled_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """By its sums where they tell, else once more after a process that failed on it."""
    code = tmp_path / "compiled" / "one.nbc"
    code.parent.mkdir()
    code.write_bytes(b"machine code")
    compile_kernels._note_sums(tmp_path)
    (code.parent / "two.nbc").write_bytes(b"of a later process")
    compile_kernels._drop_damaged(tmp_path)
    assert code.exists() and not caplog.text
    code.write_bytes(b"machine cod\xff")
    compile_kernels._drop_damaged(tmp_path)
    assert not code.exists() and tmp_path.is_dir() and "damaged and compiled again" in caplog.text
    (tmp_path / compile_kernels.SUMS).write_text("[")
    compile_kernels._drop_damaged(tmp_path)
    assert not (tmp_path / compile_kernels.SUMS).exists()


def test_a_process_that_fails_on_machine_code_is_followed_by_one_without_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = tmp_path / "machine-code"
    kept.mkdir()
    (kept / "index.nbi").write_bytes(b"damaged")
    ran: list[bool] = []

    def run(*_: object, **options: object) -> None:
        ran.append((kept / "index.nbi").exists())
        if ran[-1]:
            raise subprocess.CalledProcessError(-11, "compile")

    monkeypatch.setattr(compile_kernels, "_folder", lambda: str(kept))
    monkeypatch.setattr(subprocess, "run", run)
    from numba import config

    before, folder = compile_kernels._ready, config.CACHE_DIR
    try:
        compile_kernels._prepare()
        assert ran == [True, False] and compile_kernels._ready is not None
    finally:
        compile_kernels._ready, config.CACHE_DIR = before, folder
