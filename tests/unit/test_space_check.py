"""`space-check` finds each thing that stops a checkout on a Space, and nothing in a sound one."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from omnidemo.core.config import Settings
from omnidemo.pair.zerogpu.sign import DRAFTER, TARGET
from omnidemo.serving.hosting import space_check
from omnidemo.serving.hosting.space_check import SpaceReport, check

FRONT = """---
title: A test
sdk: gradio
sdk_version: 6.31.0
python_version: "3.12"
app_file: app.py
suggested_hardware: cpu-upgrade
tags: [testing]
---
# A test
"""
Look = Callable[..., SpaceReport]


@pytest.fixture(scope="module", autouse=True)
def _installed_packages_are_listed_once() -> Iterator[None]:
    """They stay the same while these tests run, and listing them takes longer than all else that a check
    does."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(space_check, "packages_distributions", cache(space_check.packages_distributions))
        patched.setattr(space_check, "requires", cache(space_check.requires))
        yield


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A small checkout that a Space would start."""
    root = tmp_path / "checkout"
    (root / "omnidemo").mkdir(parents=True)
    (root / "README.md").write_text(FRONT)
    (root / "requirements.txt").write_text("gradio>=6.20,<7\nnumpy>=2.0,<3  # sums\n")
    (root / "app.py").write_text("if __name__ == '__main__':\n    import gradio\n")
    (root / "omnidemo" / "__init__.py").write_text(
        "import json\nimport numpy\n\ndef later():\n    import torch\n"
    )
    (root / "pyproject.toml").write_text('[project]\nname = "test"\nrequires-python = ">=3.11"\n')
    git(root, "init", "-q")
    return root


@pytest.fixture
def look(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Look:
    for name in [name for name in os.environ if name.startswith("OMNIDEMO_")]:
        monkeypatch.delenv(name)

    def look(environment: dict[str, str] | None = None, **settings: Any) -> SpaceReport:
        git(root, "add", "-A")
        return check(root, Settings(**{"storage": tmp_path / "storage", **settings}), environment or {})

    return look


def git(root: Path, *arguments: str) -> None:
    subprocess.run(["git", "-C", str(root), *arguments], check=True, capture_output=True)


def only(report: SpaceReport, *words: str) -> None:
    """One sentence with these words stops it, and says what to do after a semicolon."""
    assert len(report.stops) == 1, report.stops
    for word in words:
        assert word in report.stops[0]
    assert "; " in report.stops[0] and "\n" not in report.stops[0]


def test_a_sound_checkout_passes(look: Look) -> None:
    report = look()
    assert report.stops == []
    assert any("OMNIDEMO_OPERATOR_KEY" in said for said in report.notes) and any(
        "OMNIDEMO_BACKUP" in said for said in report.notes
    )


def test_what_a_public_app_has_is_not_asked_for(look: Look, tmp_path: Path) -> None:
    assert look(operator_key="secret", backup=str(tmp_path)).notes == []


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("sdk: gradio", "sdk: docker", ("sdk is 'docker'",)),
        ("6.31.0", "5.0.1", ("sdk_version", ">=6.20")),
        ("6.31.0", "newest", ("sdk_version", "newest")),
        ("sdk_version: 6.31.0\n", "", ("sdk_version is None",)),
        ("app_file: app.py", "app_file: main.py", ("main.py",)),
        ('"3.12"', '"3.10"', ("python_version", ">=3.11")),
        ('"3.12"', "3.10", ("drops a zero",)),
        ('python_version: "3.12"\n', "", ("python_version is missing", "3.10")),
        ('"3.12"', '"three"', ("no version",)),
        ("tags: [testing]\n", "", ("tags",)),
        ("cpu-upgrade", "quantum", ("suggested_hardware", "quantum")),
    ],
)
def test_front_matter(root: Path, look: Look, old: str, new: str, words: tuple[str, ...]) -> None:
    assert old in FRONT
    (root / "README.md").write_text(FRONT.replace(old, new))
    only(look(), *words)


def test_no_front_matter(root: Path, look: Look) -> None:
    (root / "README.md").write_text("# A test\n")
    only(look(), "no front matter")
    (root / "README.md").write_text("---\nsdk: [\n---\n")
    only(look(), "no YAML")
    (root / "README.md").unlink()
    only(look(), "no README.md")


def test_a_large_file_needs_lfs(root: Path, look: Look) -> None:
    (root / "weights.bin").write_bytes(bytes(11 * 2**20))
    only(look(), "weights.bin", "11.0 MB", "git lfs track")
    (root / ".gitattributes").write_text("weights.bin -text -filter\n")
    only(look(), "weights.bin")
    git(root, "config", "filter.lfs.clean", "cat")
    (root / ".gitattributes").write_text("*.bin filter=lfs diff=lfs merge=lfs -text\n")
    assert look().stops == []


def test_small_binaries_are_a_note(root: Path, look: Look) -> None:
    (root / "picture.png").write_bytes(b"\x89PNG\0\0")
    report = look()
    assert report.stops == [] and any("picture.png" in said and "hf upload" in said for said in report.notes)


def test_without_git_nobody_can_say(tmp_path: Path, root: Path, look: Look) -> None:
    look()
    for path in sorted((root / ".git").rglob("*"), reverse=True):
        path.unlink() if path.is_file() else path.rmdir()
    (root / ".git").rmdir()
    only(check(root, Settings(storage=tmp_path / "storage"), {}), "no git checkout")


def test_a_package_that_no_requirement_brings(root: Path, look: Look) -> None:
    (root / "omnidemo" / "page.py").write_text("import fastapi\nfrom somewhere_else import thing\n")
    only(look(), "omnidemo/page.py", "somewhere_else")  # fastapi comes with gradio
    (root / "omnidemo" / "page.py").unlink()
    (root / "omnidemo" / "bench").mkdir()
    # the page takes its tables from there
    (root / "omnidemo" / "bench" / "report_tables.py").write_text("import somewhere_else\n")
    only(look(), "report_tables.py", "somewhere_else")
    (root / "omnidemo" / "bench" / "report_tables.py").unlink()
    (root / "requirements.txt").write_text("# nothing\n")
    assert any("missing or empty" in said for said in look().stops)


def test_an_app_that_builds_at_import(root: Path, look: Look) -> None:
    (root / "app.py").write_text(
        "import threading, time\nthreading.Thread(target=time.sleep, args=(2,), name='early bird').start()\n"
    )
    only(look(), "early bird")
    (root / "app.py").write_text("raise OSError('no disk')\n")
    only(look(), "no disk")


def test_storage_that_cannot_be_written(look: Look, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    only(look(storage=tmp_path / "file" / "storage"), "OMNIDEMO_STORAGE")
    only(look(backup=str(tmp_path / "file")), "OMNIDEMO_BACKUP")


@pytest.mark.parametrize(("setting", "value"), [("port", 8080), ("host", "127.0.0.1"), ("public", "false")])
def test_variables_that_hide_or_open_the_app(look: Look, setting: str, value: Any) -> None:
    only(look(**{setting: value}), f"OMNIDEMO_{setting.upper()}", "leave it out")


def test_zero_gpu_needs_a_decorated_function(root: Path, look: Look) -> None:
    sentence = "No @spaces.GPU function detected during startup"
    only(look({"SPACES_ZERO_GPU": "true"}), sentence)
    pair = f"zero-a10g\nmodels: [{TARGET}, {DRAFTER}]\npreload_from_hub: [{TARGET}, {DRAFTER}]"
    (root / "README.md").write_text(FRONT.replace("cpu-upgrade", pair))
    only(look(), sentence)
    (root / "omnidemo" / "gpu.py").write_text(
        "def start(spaces, work):\n    return spaces.GPU(duration=5)(work)\n"
    )
    assert look().stops == []


def test_zero_gpu_models_are_listed(root: Path, look: Look) -> None:
    (root / "omnidemo" / "gpu.py").write_text(
        "def start(spaces, work):\n    return spaces.GPU(duration=5)(work)\n"
    )
    listed = (
        "suggested_hardware: zero-a10g\nmodels: [some/target, some/drafter]\npreload_from_hub: [some/target"
        " config.json, some/drafter]"
    )
    (root / "README.md").write_text(FRONT.replace("suggested_hardware: cpu-upgrade", listed))
    assert look(target="some/target", drafter="some/drafter").stops == []
    report = look(target="other/target", drafter="some/drafter")
    assert len(report.stops) == 2 and all("other/target" in said for said in report.stops)
    report = look(target="bundled/large", drafter="some/drafter")
    assert any("OMNIDEMO_TARGET is bundled/large" in said for said in report.stops)
    only(look(target="some/target", drafter="some/drafter", quantization="4bit"), "OMNIDEMO_QUANTIZATION")


def test_this_checkout_would_start(tmp_path: Path, look: Look) -> None:
    here = Path(__file__).resolve().parents[2]
    assert (here / "app.py").is_file()
    if not (here / ".git").exists():
        pytest.skip("this copy of the project is no git checkout")
    assert check(here, Settings(storage=tmp_path), {}).stops == []
