"""Downloads of GGUF files and of folders against a Hub on the loopback: progress, stops, resumption, and what
goes wrong."""

from __future__ import annotations

import errno
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from huggingface_hub.utils import _http

from omnidemo.models import model_files, names
from omnidemo.models.fetching import hub_downloads
from omnidemo.models.fetching.fetch_job import FetchStopped
from omnidemo.models.gguf import sources
from omnidemo.models.model_files import ModelError
from tests.support.gguf_files import tiny_model, write_gguf
from tests.support.hub_double import CHUNK, HubDouble, hub_double

REPOSITORY, FILE = "some-org/tiny-GGUF", "tiny.F32.gguf"
NAME = f"{REPOSITORY}:{FILE}"


@pytest.fixture(scope="module")
def contents(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return write_gguf(tmp_path_factory.mktemp("gguf") / FILE, tiny_model()).read_bytes()


@pytest.fixture
def hub(contents: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[HubDouble]:
    monkeypatch.setattr(hub_downloads, "LARGE", 4 * CHUNK)
    assert len(contents) > 8 * CHUNK
    with hub_double(
        {(REPOSITORY, FILE): contents, (REPOSITORY, "README.md"): b"about"}, tmp_path / "cache", monkeypatch
    ) as hub:
        yield hub


def stop_after(fraction: float) -> Callable[[str, float], None]:
    def progress(stage: str, done: float) -> None:
        if done >= fraction:
            raise FetchStopped("stopped")

    return progress


def kept(tmp_path: Path) -> list[str]:
    """The blobs of the repository that are whole or begun."""
    return sorted(path.name for path in (tmp_path / "cache").glob("models--*/blobs/*"))


def test_a_file_is_downloaded_once_and_known_by_its_name(
    hub: HubDouble, contents: bytes, tmp_path: Path
) -> None:
    told: list[float] = []
    assert sources.is_gguf(NAME)
    with pytest.raises(sources.NotHere, match="downloads are switched off"):
        names.gguf_file(NAME, hub=False)
    path = names.gguf_file(NAME, progress=lambda stage, fraction: told.append(fraction))
    assert path is not None and path.read_bytes() == contents
    assert told == sorted(told) and told[0] == 0 and told[-1] == 1 and len(told) > 8
    assert len(hub.asked) == 1 and not [name for name in kept(tmp_path) if name.endswith(".incomplete")]
    assert names.gguf_file(NAME, hub=False) == path and len(hub.asked) == 1
    found = sources.find(NAME)
    assert found.source == "hub" and found.spec == NAME and found.name.startswith("gguf/Tiny-Test-F32-")
    assert [one.name for one in sources.installed() if one.source == "hub"] == [found.name]
    assert sources.find(found.name).path == path


def test_a_stopped_download_goes_on_from_there(hub: HubDouble, contents: bytes, tmp_path: Path) -> None:
    with pytest.raises(FetchStopped):
        names.gguf_file(NAME, progress=stop_after(0.5))
    (part,) = kept(tmp_path)
    assert part.endswith(".incomplete") and not list((tmp_path / "cache").rglob("*.gguf"))
    begun = hub_downloads.begun(REPOSITORY)
    assert len(contents) * 0.4 < begun < len(contents)
    with pytest.raises(sources.NotHere):
        sources.find(NAME)
    told: list[float] = []
    path = names.gguf_file(NAME, progress=lambda stage, fraction: told.append(fraction))
    assert path is not None and path.read_bytes() == contents
    assert hub.asked[1][1] == f"bytes={begun}-" and told[1] > 0.4  # where it was


def test_a_connection_that_is_lost_is_taken_up_again(hub: HubDouble, contents: bytes) -> None:
    hub.cuts = [3 * CHUNK, 2 * CHUNK]
    path = names.gguf_file(NAME)
    assert path is not None and path.read_bytes() == contents
    assert [begin for _, begin in hub.asked][:2] == [None, f"bytes={3 * CHUNK}-"] and len(hub.asked) == 3


def test_a_connection_that_stays_lost_is_one_sentence_and_nothing_half_is_taken_for_whole(
    hub: HubDouble, contents: bytes
) -> None:
    hub.cuts = [2 * CHUNK] + [0] * 20
    with pytest.raises(ModelError, match="the Hub cannot be reached; check the connection"):
        names.gguf_file(NAME)
    hub.cuts = []
    path = names.gguf_file(NAME)
    assert path is not None and path.read_bytes() == contents and hub.asked[-1][1] == f"bytes={2 * CHUNK}-"


def test_a_server_without_ranges_begins_anew(hub: HubDouble, contents: bytes) -> None:
    with pytest.raises(FetchStopped):
        names.gguf_file(NAME, progress=stop_after(0.5))
    hub.ranges = False
    path = names.gguf_file(NAME)
    assert path is not None and path.read_bytes() == contents


def test_what_is_not_the_file_is_thrown_away(hub: HubDouble, contents: bytes, tmp_path: Path) -> None:
    hub.lie = True
    with pytest.raises(ModelError, match="its sha256 differs"):
        names.gguf_file(NAME)
    assert kept(tmp_path) == []
    hub.lie = False
    path = names.gguf_file(NAME)
    assert path is not None and path.read_bytes() == contents


@pytest.mark.parametrize(
    ("status", "code", "words"),
    [
        (401, "RepoNotFound", "knows no model"),
        (404, "RepoNotFound", "knows no model"),
        (403, "GatedRepo", "is gated: accept its licence at https://huggingface.co/some-org/tiny-GGUF,"),
        (500, "", "answered 500"),
    ],
)
def test_what_the_hub_refuses(
    hub: HubDouble, status: int, code: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # the client waits before it asks again
    monkeypatch.setattr(_http, "time", SimpleNamespace(**vars(time) | {"sleep": lambda seconds: None}))
    hub.status = status, code
    with pytest.raises(ModelError, match=words) as caught:
        names.gguf_file(NAME)
    assert "\n" not in str(caught.value) and not hub.asked


@pytest.mark.parametrize(("code", "said"), [(errno.ENOSPC, "the disk is full"), (errno.EROFS, "set HF_HOME")])
def test_a_disk_that_takes_nothing_is_said(code: int, said: str) -> None:
    assert said in hub_downloads.hub_sentence(NAME, OSError(code, "no"))


def test_a_file_that_its_repository_does_not_have(hub: HubDouble) -> None:
    with pytest.raises(ModelError, match=r"some-org/tiny-GGUF has no file other\.gguf on the Hub; https://"):
        names.gguf_file(f"{REPOSITORY}:other.gguf")


def test_memory_and_disk_are_looked_at_first(
    hub: HubDouble, contents: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ModelError, match="needs about"):
        names.gguf_file(NAME, free=len(contents) // 2)
    monkeypatch.setattr(hub_downloads, "SPARE", 2**60)
    with pytest.raises(ModelError, match=r"of disk, and .* are free"):
        names.gguf_file(NAME)
    assert not hub.asked


def test_all_parts_of_a_split_model(hub: HubDouble, contents: bytes, tmp_path: Path) -> None:
    parts = [f"deep/x-0000{n}-of-00002.gguf" for n in (1, 2)]
    hub.files |= {(REPOSITORY, part): bytes([number]) * 6 * CHUNK for number, part in enumerate(parts)}
    told: list[float] = []
    with pytest.raises(ModelError, match="is no GGUF file"):  # what these are is said once they are here
        names.gguf_file(f"{REPOSITORY}:{parts[1]}", progress=lambda stage, fraction: told.append(fraction))
    assert told == sorted(told) and told[-1] == 1 and len(hub.asked) == 2
    found = sources.hub_file(f"{REPOSITORY}:{parts[1]}")
    assert found == (REPOSITORY, parts[0]) and sources.hub_parts(parts[0]) == parts


def test_a_folder_of_safetensors_stops_and_goes_on_too(hub: HubDouble, tmp_path: Path) -> None:
    whole = bytes(range(256)) * 40 * 64
    hub.files |= {
        ("some/model", "model.safetensors"): whole,
        ("some/model", "config.json"): b"{}",
        ("some/model", "tokenizer.json"): b"[]",
    }
    with pytest.raises(FetchStopped):
        model_files.find("some/model", progress=stop_after(0.5))
    assert model_files.cached_folder("some/model") is None
    begun = hub_downloads.begun("some/model")
    assert begun > 0
    told: list[float] = []
    folder = model_files.find("some/model", progress=lambda stage, fraction: told.append(fraction))
    assert (folder / "model.safetensors").read_bytes() == whole and told == sorted(told) and told[-1] == 1
    assert hub.asked[1][1] == f"bytes={begun}-" and model_files.cached_names() == ["some/model"]
