"""Compiling: once for each state of the sources, in a process that ends with ours, again where the machine
code is damaged."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import psutil
import pytest

from omnidemo.backends import compile_kernels, processor
from omnidemo.backends.fused_llama import FusedLlama
from tests.support.processes import start
from tests.support.runners import close, make, reference, some_ids


def test_what_waits_for_compiled_code_is_done_once() -> None:
    calls: list[str] = []
    compile_kernels.when_ready(lambda: calls.append("ready"))
    assert compile_kernels.wait() and calls == ["ready"]
    compile_kernels.when_ready(lambda: calls.append("at once"))
    assert calls == ["ready", "at once"]


def test_machine_code_is_kept_per_state_of_the_sources(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "code"))
    copy = tmp_path / "backends"
    shutil.copytree(Path(compile_kernels.__file__).parent, copy, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(compile_kernels, "__file__", str(copy / "compile_kernels.py"))
    before = compile_kernels._folder()
    assert Path(before).parent == tmp_path / "code" and compile_kernels._folder() == before
    with (copy / "thread_pool.py").open("a") as file:
        file.write("# changed\n")
    assert compile_kernels._folder() != before
    (tmp_path / "file").touch()
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "file"))
    with pytest.raises(OSError, match="NUMBA_CACHE_DIR"):
        compile_kernels._folder()


@pytest.fixture
def anew(monkeypatch: pytest.MonkeyPatch) -> Path:
    """As in a process that has not begun to compile; the folder of the machine code, which is there."""
    assert compile_kernels.wait()
    monkeypatch.setattr(compile_kernels, "_ready", None)
    monkeypatch.setattr(compile_kernels, "_thread", None)
    return Path(compile_kernels._folder())


def test_machine_code_that_is_whole_is_loaded_at_once(anew: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    features = processor.told()
    assert compile_kernels._complete(anew, features) and not compile_kernels._complete(
        anew, "of another processor"
    )
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: pytest.fail("a process was started"))
    assert compile_kernels.wait()
    source = compile_kernels._sources()[0]
    # as if their dates had changed
    monkeypatch.setattr(compile_kernels, "_sources", lambda: [source, source])
    assert not compile_kernels._complete(anew, features)


def test_machine_code_of_which_a_file_is_gone_or_changed_is_not_whole(tmp_path: Path) -> None:
    for name in ("one.nbc", "one.nbi"):
        (tmp_path / name).write_bytes(b"machine code")
    assert not compile_kernels._complete(tmp_path, None)
    for name in ("one.nbc", "one.nbi"):
        compile_kernels._note_sums(tmp_path, None)
        assert compile_kernels._complete(tmp_path, None)
        (tmp_path / name).write_bytes(b"machine cod\xff")
        assert not compile_kernels._complete(tmp_path, None)
        (tmp_path / name).unlink()
        assert not compile_kernels._complete(tmp_path, None)


def test_a_compiler_that_fails_is_told_once_and_done_without(
    anew: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(compile_kernels, "_complete", lambda *_: False)
    monkeypatch.setattr(compile_kernels.sys, "executable", "/no/such/python")
    assert not compile_kernels.wait()
    assert [record.getMessage() for record in caplog.records if "slower" in record.getMessage()]
    model, ids = make("qwen2"), some_ids(20)
    assert close(FusedLlama(model).new_cache().forward(ids, 5).logits, reference(model, ids)[-5:])


COMPILES = """
import os, sys, time
from omnidemo.backends import compile_kernels
os.chdir(sys.argv[1])
compile_kernels.prepare()
time.sleep(600)
"""


def test_the_compiling_process_begins_in_any_folder_and_ends_with_its_parent(tmp_path: Path) -> None:
    with start(COMPILES, str(tmp_path), NUMBA_CACHE_DIR=str(tmp_path)) as parent:
        compiles: list[int] = []
        until = time.monotonic() + 60
        while not compiles and time.monotonic() < until:
            compiles = _children(parent.pid)
            time.sleep(0.1)
        assert compiles
        while not any(map(_compiling, compiles)):
            assert time.monotonic() < until, "it does not begin"
            time.sleep(0.05)
        os.kill(parent.pid, signal.SIGKILL)
    until = time.monotonic() + 20
    while any(_running(pid) for pid in compiles) and time.monotonic() < until:
        time.sleep(0.1)
    left = [pid for pid in compiles if _running(pid)]
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert not left


def _children(pid: int) -> list[int]:
    return [child.pid for child in psutil.Process(pid).children(recursive=True)]


def _compiling(pid: int) -> bool:
    """Whether it has read what ends it, which comes before the compiler."""
    if not hasattr(psutil.Process, "memory_maps"):  # as on macOS
        time.sleep(3.0)
        return True
    with contextlib.suppress(psutil.Error):
        return any("llvmlite" in mapped.path for mapped in psutil.Process(pid).memory_maps())
    return False


def _running(pid: int) -> bool:
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE


def test_damaged_machine_code_is_compiled_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """By its sums where they tell, else once more after a process that failed on it."""
    code = tmp_path / "compiled" / "one.nbc"
    code.parent.mkdir()
    code.write_bytes(b"machine code")
    compile_kernels._note_sums(tmp_path, None)
    (code.parent / "two.nbc").write_bytes(b"of a later process")
    compile_kernels._drop_damaged(tmp_path)
    assert code.exists() and not caplog.text
    code.write_bytes(b"machine cod\xff")
    compile_kernels._drop_damaged(tmp_path)
    assert not code.exists() and tmp_path.is_dir() and "damaged and compiled again" in caplog.text
    (tmp_path / compile_kernels.SUMS).write_text("[")
    compile_kernels._drop_damaged(tmp_path)
    assert not (tmp_path / compile_kernels.SUMS).exists()


def test_a_process_that_fails_on_machine_code_is_followed_by_one_without_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
