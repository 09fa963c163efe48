"""What belongs to one process: its storage folder, its temporary files, its machine code; and what a killed
one leaves behind."""

from __future__ import annotations

import os
import signal
import stat
from pathlib import Path

import pytest

from omnidemo import load_pair
from omnidemo.core import private_folders
from omnidemo.core.config import Settings
from omnidemo.serving.services import Services
from omnidemo.ui import downloads
from tests.support.processes import start

ROOT = Path(__file__).parents[2]
TAKE = """
import sys, time
from pathlib import Path
from omnidemo.core import private_folders
private_folders.hold(Path(sys.argv[1]))
"""
HOLDER = TAKE + "print('held', flush=True); time.sleep(60)"
KEEPER = """
import time
from omnidemo.core import private_folders
folder = private_folders.temporary_folder()
(folder / "secret.csv").write_text("x")
print(folder, flush=True)
"""


def test_a_storage_folder_serves_one_process_at_a_time(tmp_path: Path) -> None:
    storage = tmp_path / "storage"
    with start(HOLDER, str(storage)) as other:
        assert other.stdout and other.stdout.readline() == "held\n"
        try:
            with pytest.raises(
                ValueError,
                match=f"is used by process {other.pid}; stop that one, or name another folder in OMNI",
            ):
                Services(Settings(storage=storage, training="off"))
            with pytest.raises(ValueError, match="is used by process"):
                load_pair(storage=storage)
        finally:
            os.kill(other.pid, signal.SIGKILL)
    # a lock ends with its process, however that ended
    services = Services(Settings(storage=storage, training="off"))
    again = Services(Settings(storage=storage, training="off"))  # the same process may
    services.close()
    with start(TAKE, str(storage)) as other:
        assert other.wait(60) == 1
    again.close()
    with start(TAKE, str(storage)) as other:
        assert other.wait(60) == 0


def test_a_file_is_replaced_whole_and_what_a_killed_process_left_goes(tmp_path: Path) -> None:
    path = tmp_path / "map.npz"
    with start("pass") as other:
        assert other.wait(60) == 0
    for left in (
        f".new-map.npz.{other.pid}-1",
        f".new-map.npz.{os.getppid()}-1",
        f".new-other.npz.{other.pid}-1",
    ):
        (tmp_path / left).write_text("half")
    with pytest.raises(RuntimeError), private_folders.replacing(path) as partial:
        partial.write_text("half")
        raise RuntimeError
    assert not path.exists()
    with private_folders.replacing(path) as partial:
        partial.write_text("whole")
    assert path.read_text() == "whole"
    assert {one.name for one in tmp_path.glob(".new-*")} == {
        f".new-map.npz.{os.getppid()}-1",
        f".new-other.npz.{other.pid}-1",
    }


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
    for place in (
        downloads.temporary("omnidemo-requests.csv"),
        downloads.private_folder("gradio") / "ab" / "omnidemo-requests.csv",
    ):
        place.parent.mkdir(exist_ok=True)
        place.write_text("secret")
    downloads.forget_files("")
    assert not list(private_folders.temporary_folder().rglob("*.csv"))
