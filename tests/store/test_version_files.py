"""What is taken out of a shared database: lines of everybody, and only files that versions have."""

from __future__ import annotations

from pathlib import Path

import pytest

from omnidemo.models.adapters import adapter_state, version_folders
from omnidemo.storage.line_store import Noted
from omnidemo.storage.version_store import VersionStore
from omnidemo.storage.visitors import OWN


class Shared:
    """A database with these versions, each of these files."""

    def __init__(self, known: list[Noted], contents: dict[str, bytes]) -> None:
        self._known, self._contents = known, contents

    def noted_versions(self, target: str, drafter: str) -> list[Noted]:
        return self._known

    def version_files(self, target: str, drafter: str, domain: str, version: int) -> dict[str, bytes]:
        return self._contents


def share(storage: Path, known: list[Noted], contents: dict[str, bytes]) -> None:
    VersionStore(storage, Shared(known, contents)).share("target", "drafter")  # type: ignore[arg-type]


def test_a_version_is_copied_and_a_visitors_line_is_not(tmp_path: Path) -> None:
    files = dict.fromkeys((adapter_state.WEIGHTS, adapter_state.CONFIG, version_folders.MANIFEST), b"{}")
    known = [Noted(domain, 1, "sum", True, False) for domain in ("poems", f"{OWN}somebody")]
    share(tmp_path, known, files)
    assert [path.parts[-2] for path in tmp_path.rglob("active")] == [version_folders.safe_name("poems")]
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
    share(tmp_path / "storage", [Noted("poems", 1, "sum", False, False)], files)
    assert not [
        path for path in tmp_path.rglob("*") if path.is_file() and path.read_bytes() in (b"evil", b"{}")
    ]
    assert "is left out" in caplog.text
