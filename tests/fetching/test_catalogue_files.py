"""Files of the catalogue by every name that a person may write, before and after they are fetched; the
command; and what the catalogue pins."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from omnidemo.core import catalogue_file
from omnidemo.core.config import ModelError, Settings
from omnidemo.models import catalogue as models
from omnidemo.models import names
from omnidemo.models.catalogue import list_models
from omnidemo.models.fetching.fetch import fetchable, where
from omnidemo.models.gguf import identity, places, sources
from omnidemo.models.gguf.header import read_header
from omnidemo.models.gguf.identity import CatalogueFile, known_name
from omnidemo.models.load import load_model
from tests.support.cli import Cli, refused
from tests.support.gguf_files import tiny_model, write_gguf
from tests.support.wheels import in_parts


@pytest.fixture(scope="module")
def contents(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, str]:
    """A tiny model's file, and the name that it is known by."""
    path = write_gguf(tmp_path_factory.mktemp("gguf") / "tiny.F32.gguf", tiny_model())
    return path.read_bytes(), known_name(read_header(path))


@pytest.fixture
def entry(
    contents: tuple[bytes, str], index: Path, downloads: list[str], home: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> CatalogueFile:  # fmt: skip
    """The only file of a catalogue."""
    data, known = contents
    entry = replace(in_parts(index, [data[:100_000], data[100_000:]]), known=known, default=1)
    listed: dict[str, Any] = {
        "name": entry.hub_name, "known": known, "title": entry.title, "role": "target", "parameters": 100_000,
        "bytes": entry.bytes, "licence": entry.licence, "author": entry.author,
        "short": entry.name, "sha256": entry.sha256, "default": True,
    }  # fmt: skip
    monkeypatch.setattr(identity, "files", lambda: (entry,))
    for module in (catalogue_file, models):
        monkeypatch.setattr(module, "entries", lambda: {entry.hub_name: listed})
    return entry


def test_every_name_means_it(entry: CatalogueFile, home: Path, downloads: list[str]) -> None:
    written = (entry.name, entry.file, entry.hub_name, entry.known)
    for name in written:
        assert sources.is_gguf(name) and fetchable(name) is entry
        with pytest.raises(sources.NotHere):
            sources.find(name)
        missing = names.resolve(name, Settings())
        assert missing == names.Resolved(entry.hub_name, entry.hub_name), "until it is here"
    assert names.resolve("auto", Settings()).name == "bundled/large" and not downloads
    path = names.gguf_file(entry.name)
    assert path == places.models_root() / entry.file == home / ".cache" / "omnidemo" / "models" / entry.file
    assert len(downloads) == 2
    assert names.resolve(str(path), Settings()).name == entry.known
    sources._known.clear()
    for name in written:
        assert sources.find(name).path == path
        assert names.resolve(name, Settings()) == names.Resolved(entry.known, str(path))
    assert names.resolve("auto", Settings()).name == entry.known
    assert load_model(entry.name, device="cpu", absent=True).name == entry.known and len(downloads) == 2


def test_where_it_is_put_is_a_setting(entry: CatalogueFile, tmp_path: Path, home: Path) -> None:
    settings = Settings(models=str(tmp_path / "own"))
    loaded = load_model(entry.name, device="cpu", absent=True, models=settings.models)
    assert loaded.folder == tmp_path / "own" / entry.file == where(entry, settings)
    assert names.resolve(entry.name, settings).name == entry.known
    assert not (home / ".cache").exists()


def test_a_first_use_tells_how_far_it_is_and_needs_leave(entry: CatalogueFile, downloads: list[str]) -> None:
    with pytest.raises(
        ModelError, match="downloads are switched off; allow them with OMNIDEMO_TRUST_HUB=true"
    ):
        names.gguf_file(entry.known, hub=False)
    with pytest.raises(ModelError, match="needs about"):
        names.gguf_file(entry.name, free=1000)
    assert not downloads
    told: list[tuple[str, float]] = []
    names.gguf_file(entry.name, progress=lambda stage, fraction: told.append((stage, fraction)))
    fractions = [fraction for stage, fraction in told if stage == "downloading"]
    assert (
        fractions
        and fractions == sorted(fractions)
        and {stage for stage, _ in told} <= {"files", "downloading"}
    )


def test_it_is_listed(entry: CatalogueFile) -> None:
    (card,) = [one for one in list_models(Settings(device="cpu")) if one.name == entry.hub_name]
    assert (card.availability, card.bytes, card.type) == ("downloadable", entry.bytes, "F32")
    names.gguf_file(entry.name)
    sources._known.clear()
    cards = [one for one in list_models(Settings(device="cpu")) if one.title == entry.title]
    assert [(one.name, one.source, one.availability) for one in cards] == [(entry.known, "fetched", "cached")]


def test_any_file_in_the_folder_has_its_bare_name(
    contents: tuple[bytes, str], home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(home)
    for place in (places.models_root(), tmp_path / "more"):
        place.mkdir(parents=True)
        (place / f"{place.name}.gguf").write_bytes(contents[0])
    more = [str(tmp_path / "more")]
    found = [sources.find(name, more) for name in ("models.gguf", "more.gguf")]
    assert [one.source for one in found] == ["fetched", "folder"]
    with pytest.raises(ModelError, match=r"more\.gguf is not there"):
        sources.find("more.gguf")
    (home / "more.gguf").write_bytes(contents[0])
    assert sources.find("more.gguf", more).path == home / "more.gguf", "what lies here comes first"


def test_the_usual_folder(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "linux")
    assert places.models_root() == home / ".cache/omnidemo/models"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert places.models_root() == tmp_path / "xdg/omnidemo/models"
    monkeypatch.setattr("sys.platform", "darwin")
    assert places.models_root() == home / "Library/Caches/omnidemo/models"
    monkeypatch.setattr("sys.platform", "win32")
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "local"))
    assert places.models_root() == tmp_path / "local/omnidemo/models"
    monkeypatch.setenv("OMNIDEMO_MODELS", "~/mine")
    assert places.models_root() == home / "mine" and places.models_root("/other") == Path("/other")


# The command


def test_the_command_lists_and_fetches(entry: CatalogueFile, cli: Cli, home: Path) -> None:
    listed = cli("fetch")
    assert listed.code == 0 and re.search(r"tiny +Tiny +0 MB +Apache-2.0 +can be fetched", listed.out), (
        listed.out
    )
    fetched = cli("fetch", "tiny")
    path = home / ".cache" / "omnidemo" / "models" / entry.file
    assert fetched.code == 0 and fetched.out == f"{path}\n" and path.is_file()
    assert str(path) in cli("fetch").out.replace("\n", "")
    assert cli("fetch", entry.file).out == f"{path}\n"


def test_what_the_command_refuses(entry: CatalogueFile, index: Path, cli: Cli) -> None:
    refused(
        cli("fetch", "tinny"),
        "tinny is not in the catalogue of files that can be fetched; did you mean tiny?",
    )
    for path in index.iterdir():
        path.unlink()
    half = places.models_root()
    half.mkdir(parents=True)
    (half / f"{entry.file}.partial").write_bytes(b"x" * 3_000_000)
    assert "0 MB of it are here" in cli("fetch").out  # no more than it has
    refused(cli("fetch", "x"), "these are: tiny")


# What is pinned


@pytest.mark.parametrize("one", identity.files(), ids=lambda one: one.name)
def test_the_catalogues_own(one: CatalogueFile) -> None:
    assert sum(wheel.bytes for wheel in one.wheels) == one.bytes and min(w.bytes for w in one.wheels) > 0
    hashes = [one.sha256, *(wheel.sha256 for wheel in one.wheels)]
    assert all(re.fullmatch("[0-9a-f]{64}", digest) for digest in hashes) and len(set(hashes)) == len(hashes)
    assert one.licence == "Apache-2.0" and one.file.endswith(".gguf") and one.known.startswith("gguf/")
    assert not [wheel for wheel in one.wheels if wheel.member.startswith("/") or ".." in wheel.member]
    assert len({wheel.package for wheel in one.wheels}) == len(one.wheels)
