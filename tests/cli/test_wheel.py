"""What a wheel holds: `omnidemo` alone, with its assets, so that its commands work in any folder."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that the build of a wheel packs."""
    folder = tmp_path_factory.mktemp("build")
    (folder / "facts").mkdir()
    command = [
        sys.executable,
        "setup.py",
        "-q",
        "egg_info",
        "--egg-base",
        str(folder / "facts"),
        "build",
        "--build-base",
        str(folder),
    ]
    subprocess.run(
        [*command, "--build-lib", str(folder / "wheel")],
        cwd=ROOT,
        check=True,
        capture_output=True,
        timeout=200,
    )
    return folder / "wheel"


def installed(built: Path, folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Run Python in a folder that is no checkout, with the package as it would be installed."""
    environment = os.environ | {
        "PYTHONPATH": str(built),
        "OMNIDEMO_BACKEND": "reference",
        "OMP_NUM_THREADS": "1",
    }
    return subprocess.run(
        [sys.executable, *command], cwd=folder, env=environment, capture_output=True, text=True, timeout=200
    )


def test_a_wheel_has_the_package_and_its_assets_and_nothing_else(built: Path) -> None:
    assert [path.name for path in built.iterdir()] == ["omnidemo"]

    def modules(root: Path) -> set[str]:
        return {path.relative_to(root).as_posix() for path in root.rglob("*.py")}

    def assets(root: Path) -> set[str]:
        files = {path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()}
        return {name for name in files if not name.startswith("screenshots/") and not name.endswith(".svg")}

    assert modules(built / "omnidemo") == modules(ROOT / "omnidemo")
    assert assets(built / "omnidemo" / "assets") == assets(ROOT / "assets")


def test_commands_of_a_wheel_work_in_any_folder(built: Path, tmp_path: Path) -> None:
    """Both in one process, for to import everything takes longer than either."""
    code = """
import sys
from contextlib import suppress
from omnidemo.__main__ import program
from omnidemo.core.asset_files import ASSETS
from omnidemo.learning.lines.sample_prompts import prompts
asked = ["generate", "What is 2 + 3?", "--target", "bundled/large", "--max-new-tokens", "4"]
for arguments in (["models", "--json"], asked):
    sys.argv[1:] = arguments
    with suppress(SystemExit):
        program()
    print("---")
print(len(prompts("maths")), ASSETS / "ui")
"""
    done = installed(built, tmp_path, "-c", code)
    assert done.returncode == 0, done.stderr
    listed, told, found = done.stdout.split("---\n")
    there = {card["name"]: card["availability"] for card in json.loads(listed)}
    assert there["bundled/large"] == there["bundled/drafter"] == "bundled", done.stderr
    assert told.strip(), done.stderr
    assert found.split() == ["30", str(built / "omnidemo" / "assets" / "ui")]


def test_the_laboratory_is_not_there(built: Path, tmp_path: Path) -> None:
    assert "No module named lab" in installed(built, tmp_path, "-m", "lab", "torture").stderr
    refused = installed(built, tmp_path, "-m", "omnidemo", "torture")
    assert refused.returncode == 2 and refused.stderr == "Error: No such command 'torture'.\n"
