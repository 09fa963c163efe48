"""The documents name every setting with its default, and every command, and what they name exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from omnidemo.core.config import Settings
from tests.support import settings_page

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
TEXTS = {page.name: page.read_text(encoding="utf-8") for page in PAGES}


def test_the_page_of_settings_is_what_its_generator_writes() -> None:
    """`python -m tests.support.settings_page` writes it; a new setting needs a row in its section."""
    page = TEXTS["settings.md"]
    assert settings_page.written(page) == page
    assert [name for name in Settings.model_fields if page.count(settings_page.row(name)) != 1] == []


@pytest.mark.parametrize("page", TEXTS)
def test_pages_name_no_setting_that_does_not_exist(page: str) -> None:
    named = set(re.findall(r"OMNIDEMO_([A-Z_]+)", TEXTS[page]))
    assert named <= {name.upper() for name in Settings.model_fields}


def test_every_command_is_shown() -> None:
    from typer.main import get_command

    from omnidemo.__main__ import app

    for command in get_command(app).commands:  # type: ignore[attr-defined]
        assert f"python -m omnidemo {command}" in TEXTS["commands.md"]


@pytest.mark.parametrize("program", ["omnidemo", "lab"])
def test_commands_that_pages_show_exist(program: str) -> None:
    from importlib import import_module

    from click import Context
    from typer.main import get_command

    group = get_command(import_module(f"{program}.__main__").app)
    there = set(group.list_commands(Context(group)))  # type: ignore[attr-defined]
    # the CHANGELOG and the cards of models have commands as they were
    pages = [*PAGES, ROOT / "lab" / "README.md"]
    shown = {
        name
        for page in pages
        for name in re.findall(rf"python -m {program} ([a-z][a-z-]*)", page.read_text(encoding="utf-8"))
    }
    assert shown and shown <= there


@pytest.mark.parametrize(
    "page",
    ["docs/architecture.md", "docs/contributing.md", "docs/kernels.md", "omnidemo/backends/README.md"],
)
def test_files_that_the_page_names_exist(page: str) -> None:
    root = Path(__file__).parents[2]
    folders = (
        "", "omnidemo", "omnidemo/backends", "omnidemo/backends/kernels", "omnidemo/decoding/sources",
        "omnidemo/learning/distill",
    )  # fmt: skip
    places = [*(root / folder for folder in folders), (root / page).parent]
    named = set(re.findall(r"`([\w/.-]+(?:\.py|\.md|/))`", (root / page).read_text(encoding="utf-8")))
    assert named
    assert not [name for name in named if not any((place / name).exists() for place in places)]


@pytest.mark.parametrize("page", ["architecture.md", "contributing.md", "kernels.md"])
def test_names_that_the_page_names_exist(page: str) -> None:
    """Each part of a name in backticks is a word of the source."""
    files = [
        *(ROOT / "omnidemo").rglob("*.py"),
        *(ROOT / "tests").rglob("*.py"),
        *(ROOT / "lab").rglob("*.py"),
    ]
    source = "\n".join(file.read_text(encoding="utf-8") for file in files)
    words = set(re.findall(r"\w+", source)) | {f"OMNIDEMO_{name.upper()}" for name in Settings.model_fields}
    plain = re.sub(r"^```.*?^```", "", TEXTS[page], flags=re.M | re.S)
    named = [
        name for name in re.findall(r"`([A-Za-z_][\w.]*)`", plain) if not name.endswith((".js", ".json"))
    ]
    assert len(named) > 20
    assert not {name for name in named if not set(name.split(".")) <= words}
