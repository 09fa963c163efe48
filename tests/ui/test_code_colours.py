"""Code in answers is cut into parts that have a colour, and stays the text that it was."""

from __future__ import annotations

import json
from typing import Any

import pytest

from omnidemo.ui import answer_lines
from omnidemo.ui.code_colours import LONGEST, coloured
from omnidemo.ui.markdown_tree import Node, tree

PYTHON = (
    '\n\n@wraps\ndef twice(x):\n    """Two of it."""\n    # a comment\n    return 2 * x + 0.5 if x else'
    " None\n\n"
)


def joined(node: Node) -> str:
    return node if isinstance(node, str) else "".join(joined(one) for one in node[1])


def parts(node: list[Any]) -> set[tuple[str, str]]:
    return {(one[2], joined(one).strip()) for one in node[1] if not isinstance(one, str)}


def test_python_has_colours_and_stays_the_same_text() -> None:
    (fence,) = coloured([["fence", [PYTHON], "python"]])
    assert joined(fence) == PYTHON and fence[2] == "python"
    wanted = {
        ("keyword", "def"),
        ("name", "twice"),
        ("text", '"""Two of it."""'),
        ("comment", "# a comment"),
        ("number", "2"),
    }
    assert isinstance(fence, list) and wanted <= parts(fence)


@pytest.mark.parametrize("language", ["sql", "js", "json", "html", "bash", "c++", "diff", "css"])
@pytest.mark.parametrize(
    "code", ["SELECT a FROM b WHERE c = 'd';", "\t\n  x\r\n", "<b>é</b> \x00 {", "'", "", "/* \n"]
)
def test_no_language_loses_or_adds_a_character(language: str, code: str) -> None:
    (fence,) = coloured([["fence", [code], language]])
    assert joined(fence).replace("\r\n", "\n") == code.replace("\r\n", "\n")


def test_what_is_no_known_language_or_too_long_stays_as_it_is() -> None:
    for node in (
        ["fence", ["def x"], ""],
        ["fence", ["def x"], "nonsense"],
        ["fence", ["x = 1\n" * LONGEST], "python"],
        ["code", ["def x"]],
    ):
        assert coloured([node]) == [node]


def test_code_within_lists_is_coloured_and_open_blocks_are_not() -> None:
    blocks = tree("- one\n\n  ```sql\n  SELECT 1;\n  ```\n")
    line = json.loads(answer_lines.markdown_line(blocks, [["fence", ["SELECT 1"], "sql"]]))
    (fence,) = (node for node in line["b"][0][1][0][1] if node[0] == "fence")
    assert ("keyword", "SELECT") in parts(fence)
    assert line["o"] == [["fence", ["SELECT 1"], "sql"]]
