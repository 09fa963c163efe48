"""Storage folders of any name: everything lies in the one that was named."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from omnidemo.core import private_folders
from omnidemo.core.config import Settings
from omnidemo.serving.pair_loading import open_store

NAMES = [
    "a place", "100% #1?", "a%20b", "x?mode=memory&cache=shared", "#", "ü;a=b", "file:y", "user:pw@host",
    "[::1]", "a+b", "'quoted\"",
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_the_database_lies_in_the_folder_that_was_named(tmp_path: Path, name: str) -> None:
    settings = Settings(storage=tmp_path / name)
    private_folders.hold(settings.storage)
    store = open_store(settings)
    store.start_session("somebody", keep=True, learn=True)
    assert store.flush() and store.status.ok, store.status
    store.close()
    private_folders.let_go(settings.storage)
    assert [one.name for one in tmp_path.iterdir()] == [name]
    with sqlite3.connect(tmp_path / name / "omnidemo.db") as kept:
        assert kept.execute("SELECT count(*) FROM sessions").fetchone() == (1,)


def test_a_path_of_the_settings_may_begin_at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("OMNIDEMO_STORAGE", "~/kept here")
    monkeypatch.setenv("OMNIDEMO_BACKUP", "~/copies")
    settings = Settings()
    assert (settings.storage, settings.backup) == (tmp_path / "kept here", str(tmp_path / "copies"))
    assert Settings(storage=Path("~nobody-of-that-name/x")).storage == Path("~nobody-of-that-name/x")
