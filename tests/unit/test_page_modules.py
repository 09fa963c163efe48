"""The page's modules: node runs the unit tests of the pure ones, and no module asks for what there is not."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PARTS = ROOT / "assets" / "ui"
TESTS = sorted((ROOT / "tests" / "page").glob("*.test.mjs"))
NODE = 18  # the oldest with a test runner


def node() -> str | None:
    """The path of a node that is new enough, or None."""
    path = shutil.which("node")
    if path is None:
        return None
    version = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=60).stdout
    return path if int(re.sub(r"^v(\d+).*", r"\1", version.strip()) or 0) >= NODE else None


def test_the_unit_tests_of_the_page_pass() -> None:
    if (path := node()) is None:
        pytest.skip(f"node {NODE} or newer is not installed (Debian: apt-get install nodejs)")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("NODE_")}
    ran = subprocess.run(
        [path, "--test", *map(str, TESTS)], capture_output=True, text=True, timeout=300, env=environment
    )
    assert ran.returncode == 0, ran.stdout[-6000:] + ran.stderr[-2000:]
    passed = re.search(r"^. pass (\d+)$", ran.stdout, re.M)
    assert passed is not None and int(passed[1]) >= len(TESTS)


def test_every_import_of_a_module_is_there_and_page_js_reaches_all() -> None:
    imports = re.compile(r'(?:import|export)\s+(?:\{([^}]*)\}\s+from\s+)?"(\.[^"]+)"')
    reached, left = set[Path](), [PARTS / "page.js"]
    while left:
        module = left.pop()
        if module in reached:
            continue
        reached.add(module)
        for names, path in imports.findall(module.read_text("utf-8")):
            other = (module.parent / path).resolve()
            assert other.is_file(), f"{module.name} imports {path}"
            text = other.read_text("utf-8")
            for name in filter(None, (name.strip() for name in names.split(","))):
                made = rf"export (?:async )?(?:const|let|function) {name}\b|export \{{[^}}]*\b{name}\b"
                assert re.search(made, text), f"{module.name} imports {name} of {path}"
            left.append(other)
    assert reached == set(PARTS.rglob("*.js"))
