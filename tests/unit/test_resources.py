"""What a container is given counts, in both versions of control groups, and not what its machine has."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from omnidemo.core import resources
from omnidemo.models.gguf import places

GB = 2**30


@pytest.fixture
def groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine of 64 cores and 256 GB, 200 of them free."""
    monkeypatch.setattr(resources, "GROUPS", tmp_path / "groups")
    monkeypatch.setattr(resources, "MEMBERSHIP", tmp_path / "membership")
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: range(64), raising=False)
    memory = SimpleNamespace(available=200 * GB, total=256 * GB)
    monkeypatch.setattr(resources.psutil, "virtual_memory", lambda: memory)
    resources.usable_cores.cache_clear()
    yield tmp_path
    resources.usable_cores.cache_clear()


def put(root: Path, place: str, files: dict[str, str]) -> None:
    folder = root / "groups" / place
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name).write_text(f"{text}\n")


def found() -> tuple[int, float, float]:
    resources.usable_cores.cache_clear()
    return resources.usable_cores(), resources.free_memory() / GB, resources.all_memory() / GB


def test_without_limits_it_is_the_machine(groups: Path) -> None:
    assert found() == (64, 200, 256)
    (groups / "membership").write_text("0::/\n")
    put(groups, "", {"cpu.max": "max 100000", "memory.max": "max", "memory.current": "5"})
    assert found() == (64, 200, 256)


def test_limits_of_the_second_version(groups: Path) -> None:
    (groups / "membership").write_text("0::/\n")
    put(groups, "", {
        "cpu.max": "250000 100000", "memory.max": str(8 * GB), "memory.current": str(5 * GB),
        "memory.stat": f"anon 1\ninactive_file {2 * GB}\nslab 7",
    })  # fmt: skip
    assert found() == (2, 5, 8)
    put(groups, "", {"cpu.max": "50000 100000", "memory.current": str(9 * GB), "memory.stat": "anon 1"})
    assert found() == (1, 0, 8)


def test_the_narrowest_group_on_the_way_to_the_root_counts(groups: Path) -> None:
    (groups / "membership").write_text("0::/a/b\n")
    put(groups, "a", {"cpu.max": "300000 100000", "memory.max": str(16 * GB), "memory.current": str(GB)})
    put(groups, "a/b", {"cpu.max": "max 100000", "memory.max": str(32 * GB), "memory.current": str(GB)})
    assert found() == (3, 15, 16)


def test_limits_of_the_first_version(groups: Path) -> None:
    lines = ("9:cpu,cpuacct:/docker/x", "4:memory:/docker/x", "1:name=systemd:/", "0::/")
    (groups / "membership").write_text("\n".join(lines))
    (groups / "groups").mkdir()
    (groups / "groups" / "cpu,cpuacct").mkdir()
    (groups / "groups" / "cpu").symlink_to(groups / "groups" / "cpu,cpuacct")
    put(groups, "cpu", {"cpu.cfs_quota_us": "765000", "cpu.cfs_period_us": "100000"})
    put(groups, "memory", {
        "memory.limit_in_bytes": str(4 * GB), "memory.usage_in_bytes": str(3 * GB),
        "memory.stat": f"cache 1\ntotal_inactive_file {GB}",
    })  # fmt: skip
    assert found() == (7, 2, 4), "whole cores: one more thread would be stopped with all others"
    put(groups, "cpu", {"cpu.cfs_quota_us": "-1"})
    put(groups, "memory", {"memory.limit_in_bytes": str(2**63 - 4096)})
    assert found() == (64, 200, 256)


def test_what_cannot_be_read_is_no_limit(groups: Path) -> None:
    (groups / "membership").write_text("nonsense\n0::\n::\n")
    put(groups, "", {"cpu.max": "some", "memory.max": "", "memory.stat": "x"})
    assert found() == (64, 200, 256)


def test_a_user_without_a_home_has_a_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """As `docker run --user 12345`: the number has no name, and HOME is not said."""

    def unknown() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.delenv("OMNIDEMO_MODELS", raising=False)
    monkeypatch.setattr(Path, "home", unknown)
    assert resources.home().is_dir() and places.models_root().is_relative_to(resources.home())
    assert places.ollama_roots() and places.lm_studio_roots()
