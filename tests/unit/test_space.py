"""This checkout would start on a Space of the Hugging Face Hub: the front matter of README.md, from which a
Space reads its settings, the packages, the files, and what importing app.py brings along."""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, packages_distributions, requires
from pathlib import Path
from typing import Any

import pytest
from huggingface_hub import SpaceHardware, metadata_load
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from omnidemo.pair.zerogpu.sign import DRAFTER, TARGET

ROOT = Path(__file__).resolve().parents[2]
LARGEST = 10 * 2**20  # bytes of a file that the Hub takes without LFS
PROBE = """
import sys, threading
import app
slow = ("torch", "gradio", "transformers", "omnidemo.serving.services")
print([name for name in slow if name in sys.modules], threading.active_count())
"""


def requirements() -> dict[str, Requirement]:
    lines = (ROOT / "requirements.txt").read_text("utf-8").splitlines()
    listed = [Requirement(text) for line in lines if (text := line.partition("#")[0].strip())]
    return {canonicalize_name(one.name): one for one in listed}


def test_the_front_matter() -> None:
    front: dict[str, Any] = dict(metadata_load(ROOT / "README.md") or {})
    assert front["sdk"] == "gradio" and (ROOT / front["app_file"]).is_file() and front["tags"]
    assert requirements()["gradio"].specifier.contains(front["sdk_version"])
    python = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["requires-python"]
    version = front["python_version"]
    assert isinstance(version, str), "a number drops a zero at its end"
    assert SpecifierSet(python).contains(version)
    assert front["suggested_hardware"] == "zero-a10g" in [flavor.value for flavor in SpaceHardware]
    for field in ("models", "preload_from_hub"):  # what ZeroGPU loads without settings
        assert {TARGET, DRAFTER} <= {name.split()[0] for name in front[field]}


def test_requirements_bring_what_modules_import_at_their_top() -> None:
    waiting = list(requirements())
    brought, owners = set(waiting), packages_distributions()
    while waiting:
        try:
            wanted = [Requirement(line) for line in requires(waiting.pop()) or ()]
        except PackageNotFoundError:
            continue
        needed = [one for one in wanted if not one.marker or one.marker.evaluate({"extra": ""})]
        names = {canonicalize_name(one.name) for one in needed}
        waiting += names - brought
        brought |= names
    for path in (ROOT / "omnidemo").rglob("*.py"):
        for name in imported(path) - sys.stdlib_module_names - {"omnidemo"}:
            assert not brought.isdisjoint(map(canonicalize_name, owners.get(name, [name]))), (path, name)


def imported(path: Path) -> set[str]:
    """The packages that a file imports at its top, outside functions and TYPE_CHECKING."""
    body = ast.parse(path.read_text("utf-8")).body
    plain = {alias.name for node in body if isinstance(node, ast.Import) for alias in node.names}
    named = {node.module for node in body if isinstance(node, ast.ImportFrom) and node.module}
    return {name.split(".")[0] for name in plain | named}


def test_the_hub_takes_every_file() -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("this copy of the project is no git checkout")
    listed = ["git", "-C", str(ROOT), "ls-files", "-z", ":(exclude,attr:filter=lfs)"]
    names = subprocess.run(listed, capture_output=True, text=True, check=True).stdout.split("\0")[:-1]
    assert names
    assert not [name for name in names if (ROOT / name).is_file() and (ROOT / name).stat().st_size > LARGEST]


def test_importing_the_app_builds_nothing() -> None:
    """A Space's tools import it, and on ZeroGPU `spaces` is imported before torch."""
    done = subprocess.run(
        [sys.executable, "-c", PROBE], cwd=ROOT, capture_output=True, text=True, timeout=120
    )
    assert done.stdout.strip() == "[] 1", done.stderr
