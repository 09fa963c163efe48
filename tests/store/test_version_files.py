"""What is taken out of a shared database: lines of everybody, and only files that versions have."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from omnidemo.models.adapters import adapter_state, version_folders
from omnidemo.storage import version_files
from omnidemo.storage.version_files import Noted
from omnidemo.storage.visitors import OWN

NAMES = ("target", "drafter")


def fetched(storage: Path, known: list[Noted], contents: dict[str, bytes]) -> dict[str, int] | None:
    answers: list[Any] = [known, *[contents] * len(known)]
    return version_files.fetch(lambda query, otherwise: answers.pop(0), *NAMES, storage)


def test_a_version_is_copied_and_a_visitors_line_is_not(tmp_path: Path) -> None:
    files = dict.fromkeys((adapter_state.WEIGHTS, adapter_state.CONFIG, version_folders.MANIFEST), b"{}")
    known = [Noted(domain, 1, "sum", True, False) for domain in ("poems", f"{OWN}somebody")]
    assert fetched(tmp_path, known, files) == {"poems": 1}
    assert {path.name for path in tmp_path.rglob("*.json")} == {
        adapter_state.CONFIG,
        version_folders.MANIFEST,
    }
    assert len(list(tmp_path.rglob(adapter_state.WEIGHTS))) == 1


@pytest.mark.parametrize("name", ["../../outside.json", "/tmp/outside.json", "code.py"])
def test_a_file_that_no_version_has_is_not_written(
    tmp_path: Path, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    files = {adapter_state.WEIGHTS: b"{}", name: b"evil"}
    fetched(tmp_path / "storage", [Noted("poems", 1, "sum", False, False)], files)
    assert not [
        path for path in tmp_path.rglob("*") if path.is_file() and path.read_bytes() in (b"evil", b"{}")
    ]
    assert "is left out" in caplog.text
