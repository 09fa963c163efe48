"""What a reader copies from README.md and docs/ works: commands are parsed by their own parser, links lead
somewhere, Python compiles. A page of lab/notebook may have a command of a past commit: its links and its form
are held, its commands are not."""

from __future__ import annotations

import re
import shlex
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest
from click import Command, Context
from typer.main import get_command

ROOT = Path(__file__).parents[2]
NOTEBOOK = ROOT / "lab" / "notebook"
MANUAL = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BESIDE = [ROOT / "lab" / "README.md", *sorted(NOTEBOOK.glob("*.md")), ROOT / "omnidemo/backends/README.md"]
BESIDE += sorted(ROOT.glob("assets/models/*/README.md"))
PAGES = {page.relative_to(ROOT).as_posix(): page for page in [*MANUAL, *BESIDE]}
COPIED = [page.relative_to(ROOT).as_posix() for page in MANUAL]
QUESTIONS = [page for page in PAGES if page.startswith("lab/notebook/") and not page.endswith("/README.md")]
SCREEN = 45  # lines
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.M | re.S)
CALL = re.compile(r"(?:\bpython -m (omnidemo|lab)|^\s*(omnidemo)) (?=[a-z])")


def text(page: str) -> str:
    return PAGES[page].read_text(encoding="utf-8")


def commands(page: str) -> list[tuple[str, list[str]]]:
    """Program and arguments of each command in a block for the shell."""
    blocks = [block for language, block in BLOCK.findall(text(page)) if language in ("", "bash", "sh")]
    calls = []
    for line in "\n".join(blocks).replace("\\\n", " ").splitlines():
        for part in line.split("#")[0].split("&&"):
            if at := CALL.search(part):
                calls.append((at[1] or at[2], shlex.split(part[at.end() :])))
    return calls


@cache
def group_of(program: str) -> Command:
    return get_command(import_module(f"{program}.__main__").app)


def parse(program: str, arguments: list[str]) -> None:
    """Raises where the program would refuse the arguments; nothing of the command runs."""
    group = group_of(program)
    command = group.get_command(Context(group), arguments[0])  # type: ignore[attr-defined]
    assert command is not None, f"{program} has no command {arguments[0]}"
    command.make_context(arguments[0], arguments[1:])


def anchors(page: Path) -> set[str]:
    """Of a page's headings, as GitHub makes them."""
    plain = BLOCK.sub("", page.read_text(encoding="utf-8"))
    titles = re.findall(r"^#+ (.*)$", plain, re.M)
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", COPIED)
def test_commands_are_understood(page: str) -> None:
    for program, arguments in commands(page):
        try:
            parse(program, arguments)
        except Exception as error:
            raise AssertionError(f"{page}: {program} {' '.join(arguments)}: {error}") from error


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    plain = BLOCK.sub("", text(page))
    links = re.findall(r"\]\(([^)\s]+)\)|(?:src|href)=\"([^\"]+)\"", plain)
    for link in (in_markdown or in_html for in_markdown, in_html in links):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        place = PAGES[page].parent / path if path else PAGES[page]
        assert place.exists(), link
        assert not anchor or anchor in anchors(place), link


@pytest.mark.parametrize("page", PAGES)
def test_python_compiles(page: str) -> None:
    for language, block in BLOCK.findall(text(page)):
        if language == "python":
            compile(block, page, "exec")


@pytest.mark.parametrize("page", QUESTIONS)
def test_a_page_of_the_notebook_is_a_dated_question_and_fits_three_screens(page: str) -> None:
    lines = text(page).splitlines()
    assert re.fullmatch(r"# .+\?", lines[0])
    assert re.match(r"20\d\d-\d\d-\d\d\b", lines[2]), "the date of the measurement"
    sections = [line for line in lines if re.match(r"#+ ", line)][1:]
    assert sections == ["## Question", "## Command", "## Table", "## What follows"]
    assert len(lines) <= 3 * SCREEN
    for line in lines:
        if line.startswith("|"):
            assert all(len(cell) <= 200 for cell in line.split("|")), line
        else:
            assert len(line) <= 400, line


def test_the_index_of_the_notebook_has_every_page() -> None:
    rows = [line for line in text("lab/notebook/README.md").splitlines() if line.startswith("| ")]
    named = [link for row in rows for link in re.findall(r"\]\(([^)#]+)\)", row)]
    assert sorted(named) == sorted(PAGES[page].name for page in QUESTIONS)


def test_the_readme_fits_one_screen() -> None:
    lines = text("README.md").splitlines()
    assert len(lines) <= 115
    assert not [line for line in lines if len(line) > 400 and not line.startswith("|")]
