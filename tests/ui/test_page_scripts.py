"""How the page's modules reach the browser: by an address with a hash of all of them."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from omnidemo.core.config import Settings
from omnidemo.ui import app
from tests.support.fakes import FakeServices


def test_modules_are_served_as_scripts_and_kept_by_the_browser() -> None:
    folder, route = app.page_scripts()
    client = TestClient(Starlette(routes=[route]))
    for path in app.PARTS.rglob("*.js"):
        answer = client.get(f"/{folder}/{path.relative_to(app.PARTS).as_posix()}")
        assert answer.content == path.read_bytes()
        assert answer.headers["content-type"].startswith("text/javascript")
        assert "immutable" in answer.headers["cache-control"]
    for other in (
        f"{folder}/none.js",
        f"{folder}/omni.css",
        f"{folder}/../app.py",
        "ui/0123456789abcdef/page.js",
    ):
        assert client.get(f"/{other}").status_code == 404


def test_another_module_has_another_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = app.page_scripts()[0]
    monkeypatch.setattr(app, "PARTS", shutil.copytree(app.PARTS, tmp_path / "ui"))
    assert app.page_scripts()[0] == before
    part = app.PARTS / "shared" / "format.js"
    part.write_text(part.read_text("utf-8") + "// another one\n", "utf-8")
    assert app.page_scripts()[0] != before


def test_the_head_names_every_module_below_the_pages_own_address(tmp_path: Path) -> None:
    options = app.launch_options(FakeServices(settings=Settings(storage=tmp_path)))
    head, folder = options["head"], app.page_scripts()[0]
    listed = re.findall(r'<link rel="modulepreload" href="\./([^"]+)">', head)
    assert {name.removeprefix(f"{folder}/") for name in listed} == {
        path.relative_to(app.PARTS).as_posix() for path in app.PARTS.rglob("*.js")
    }
    assert f'import("./{folder}/page.js")' in head  # relative: the app may lie behind a path
    labels = re.search(r'<script type="application/json" id="omni-labels">(.*?)</script>', head)
    assert labels is not None and json.loads(labels[1])["legend"]
