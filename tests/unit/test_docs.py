"""The README names every setting with its default, and every command."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from omnidemo.config import Settings

README = (Path(__file__).parents[2] / "README.md").read_text()


@pytest.mark.parametrize("name", Settings.model_fields)
def test_the_readme_has_every_setting_with_its_default_and_help(name: str) -> None:
    field = Settings.model_fields[name]
    default = field.default
    shown = "(empty)" if default == "" else str(default).lower() if isinstance(default, bool) else str(default)
    assert f"| `OMNIDEMO_{name.upper()}` | {shown} | {field.description} |" in README


def test_the_readme_names_no_setting_that_does_not_exist() -> None:
    named = set(re.findall(r"OMNIDEMO_([A-Z_]+)", README))
    assert named <= {name.upper() for name in Settings.model_fields}


def test_the_readme_shows_every_command() -> None:
    from typer.main import get_command

    from omnidemo.__main__ import app

    for command in get_command(app).commands:  # type: ignore[attr-defined]
        assert f"python -m omnidemo {command}" in README


@pytest.mark.parametrize("program", ["omnidemo", "lab"])
def test_commands_that_pages_show_exist(program: str) -> None:
    from importlib import import_module

    from click import Context
    from typer.main import get_command

    group = get_command(import_module(f"{program}.__main__").app)
    there = set(group.list_commands(Context(group)))  # type: ignore[attr-defined]
    root = Path(__file__).parents[2]
    pages = [*root.glob("*.md"), root / "lab" / "README.md", *root.glob("assets/models/*/README.md")]
    pages = [page for page in pages if page.stem != "CHANGELOG"]  # which names commands as they were
    shown = {name for page in pages for name in re.findall(rf"python -m {program} ([a-z][a-z-]*)", page.read_text(encoding="utf-8"))}
    assert shown and shown <= there


def test_files_that_the_readme_shows_exist() -> None:
    root = Path(__file__).parents[2]
    for path in re.findall(r"\]\((?!https?:)([^)#]+)\)", README):
        assert (root / path).exists(), path


@pytest.mark.parametrize("page", ["docs/architecture.md", "omnidemo/backends/README.md"])
def test_files_that_the_page_names_exist(page: str) -> None:
    root = Path(__file__).parents[2]
    places = [root, root / "omnidemo", (root / page).parent, root / "omnidemo" / "backends" / "kernels"]
    named = set(re.findall(r"`([\w/.-]+(?:\.py|\.md|/))`", (root / page).read_text(encoding="utf-8")))
    assert named
    assert not [name for name in named if not any((place / name).exists() for place in places)]


def test_the_architecture_fits_one_page() -> None:
    assert len((Path(__file__).parents[2] / "docs" / "architecture.md").read_text(encoding="utf-8").splitlines()) <= 130
