"""Markdown as a tree: what stands in an answer is read once, the same whether it comes at once or in pieces,
and none of it is HTML."""

from __future__ import annotations

import json
import random
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omnidemo.ui.markdown_tree import DEEPEST, LONGEST, SHARE, LiveMarkdown, Node, tree

NAMES = {
    "p",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "ul",
    "ol",
    "li",
    "blockquote",
    "strong",
    "em",
    "del",
    "code",
    "fence",
    "a",
    "br",
    "hr",
}
NAMES |= {"table", "thead", "tbody", "tr", "th", "td"}
PIECES = [
    "# ",
    "a",
    "b **c** ",
    "`d`",
    "\n",
    "\n\n",
    "- ",
    "1. ",
    "> ",
    "```",
    "```py\n",
    "|",
    "|-|-|",
    "| x | y |",
    "    ",
    "  ",
    "***",
    "=",
    "-",
]
PIECES += [
    "[e](http://f.g)",
    "[h]: http://i.j",
    "<b>",
    "~~k~~",
    "\\",
    "![l](http://m.n/o.png)",
    "<http://p.q>",
    "\t",
    "\r\n",
    "2) ",
    "+ ",
    "&amp;",
    "😀",
]


def elements(nodes: list[Node]) -> list[list[Any]]:
    """All elements, the outer one first."""
    return [one for node in nodes if isinstance(node, list) for one in (node, *elements(node[1]))]


def words(nodes: list[Node]) -> str:
    return "".join(node if isinstance(node, str) else words(node[1]) for node in nodes)


def joined(nodes: list[Node]) -> list[Node]:
    """With neighbouring texts as one, which the browser shows alike."""
    made: list[Node] = []
    for node in nodes:
        if isinstance(node, list):
            made.append([node[0], joined(node[1]), *node[2:]])
        elif made and isinstance(made[-1], str):
            made[-1] += node
        else:
            made.append(node)
    return made


def test_what_people_know_of_markdown_is_read() -> None:
    text = (
        "# A\n\nb **c** *d* `e` ~~f~~\ng\n\n- h\n  1. i\n\n3. j\n\n> k\n\n|l|m|\n|:-|-:|\n|1|2|\n\n```py"
        " title\nx = '<b>'\n```\n\n---\n"
    )
    assert tree(text) == [
        ["h1", ["A"]],
        ["p", ["b ", ["strong", ["c"]], " ", ["em", ["d"]], " ", ["code", ["e"]], " ", ["del", ["f"]],
            ["br", []], "g"]],
        ["ul", [["li", ["h", ["ol", [["li", ["i"]]]]]]]],
        ["ol", [["li", ["j"]]], 3],
        ["blockquote", [["p", ["k"]]]],
        ["table", [
            ["thead", [["tr", [["th", ["l"], "left"], ["th", ["m"], "right"]]]]],
            ["tbody", [["tr", [["td", ["1"], "left"], ["td", ["2"], "right"]]]]],
        ]],
        ["fence", ["x = '<b>'\n"], "py"],
        ["hr", []],
    ]  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        "<script>window.hit = 1</script>",
        "<img src=x onerror='window.hit = 1'>",
        "<div>\n<p onclick=x>\n</div>",
        "[a](javascript:alert(1))",
        "[a](JaVaScRiPt:alert(1))",
        "[a](&#106;avascript:alert(1))",
        "[a](data:text/html,<b>)",
        "[a](vbscript:x)",
        "[a](file:///etc/passwd)",
        "[a](/visitor/forget)",
        "[a](//evil.example)",
        "<javascript:alert(1)>",
        "![a](javascript:x)",
        "![a](/b.png)",
    ],
)
def test_html_and_other_addresses_stay_text(text: str) -> None:
    assert {node[0] for node in elements(tree(text))} <= {"p", "br"}
    assert words(tree(text)).strip()


def test_a_picture_is_a_link_and_a_link_keeps_its_address() -> None:
    assert tree("![a cat](https://b.example/c.png)") == [["p", [["a", ["a cat"], "https://b.example/c.png"]]]]
    assert tree("[a](mailto:b@c.example) <https://d.example>") == [
        ["p", [["a", ["a"], "mailto:b@c.example"], " ", ["a", ["https://d.example"], "https://d.example"]]]
    ]


@pytest.mark.parametrize(
    "piece", ["> ", "- ", "1. ", "*a **b ", "[", "![", "`a``", "<a ", "\\[", "|a|\n|-|\n", "~~a~ ", "    "]
)
def test_nothing_that_is_repeated_takes_long_or_is_lost(piece: str) -> None:
    text = piece * 2000 + "end"
    began = time.process_time()
    made = tree(text)
    assert time.process_time() - began < 10
    assert words(made).rstrip().endswith("end")
    assert json.dumps(made)


def test_what_is_nested_too_deeply_or_too_long_is_shown_as_it_was_written() -> None:
    assert tree("> " * (DEEPEST + 5) + "x\n> y") == [["p", ["> " * (DEEPEST + 5) + "x", ["br", []], "> y"]]]
    assert tree("before\n\n" + "- " * (DEEPEST + 5) + "x")[0] == ["p", ["before"]]
    long = "**" * LONGEST
    assert tree(long) == [["p", [long]]]


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=40), st.randoms(use_true_random=False))
def test_an_answer_in_pieces_is_the_same_as_at_once(pieces: list[str], chance: random.Random) -> None:
    live, settled, text = LiveMarkdown(clock=lambda: 0.0), list[Node](), "".join(pieces)
    at = 0
    while at < len(text):
        step = chance.randint(1, 5)
        live.add(text[at : at + step])
        at += step
        if live.due():
            done, left = live.blocks()
            settled += done
            if not text[:at].endswith("\r"):  # half a line's end
                assert joined(settled + left) == joined(tree(text[:at]))
    settled += live.blocks(ended=True)[0]
    assert joined(settled) == joined(tree(text))
    assert {node[0] for node in elements(settled)} <= NAMES


def test_python_without_a_fence_is_code() -> None:
    code = "import math\n\ndef double(n):\n    # twice\n    return 2 * n\n\nprint(__name__)"
    lines = "import math\n\ndef double(n):\n    # twice\n    return 2 * n\n"
    assert tree(f"Here:\n{lines}\n**Done.**") == [
        ["p", ["Here:"]],
        ["fence", [lines], "python"],
        ["p", [["strong", ["Done."]]]],
    ]
    assert tree("def f(\n    a,\n):\n    return a\nprint(f(1))\nIt is *good*.")[0] == [
        "fence",
        ["def f(\n    a,\n):\n    return a\nprint(f(1))\n"],
        "python",
    ]
    assert tree(code)[-1][0] == "p", "what stands apart from it is prose again"
    for prose in (
        "import duties are high",
        "class is over: go home",
        "a def f(x): in a line",
        "from here on we import tea, sugar.",
    ):
        assert tree(prose) == [["p", [prose]]]


def test_finished_blocks_are_given_once_and_the_last_one_while_it_grows() -> None:
    live = LiveMarkdown(clock=lambda: 0.0)
    live.add("one\n\ntwo **b")
    assert live.due() and live.blocks() == ([], [["p", ["one"]], ["p", ["two **b"]]])
    live.add("**\n\n```py\nx")
    assert live.blocks()[1][-1] == ["fence", ["x"], "py"], "an open block of code is one already"
    live.add(" = 1\ny = 2\n")
    assert live.blocks() == (
        [["p", ["one"]], ["p", ["two ", ["strong", ["b"]]]]],
        [["fence", ["x = 1\ny = 2\n"], "py"]],
    )
    live.add("```\n")
    assert live.blocks(ended=True) == (
        [["fence", ["x = 1\ny = 2\n"], "py"]],
        [],
    ), "and is given no second time"


def test_a_long_block_is_sent_seldom_and_a_slow_reading_waits() -> None:
    live, sent = LiveMarkdown(clock=lambda: 0.0), 0
    for _ in range(4000):
        live.add("- word\n")
        if live.due():
            sent += len(json.dumps(live.blocks()))
    assert sent < 60 * 4000 * len("- word\n"), "linear in the text, not square"

    now = 0.0
    slow = LiveMarkdown(clock=lambda: now)
    slow.add("a")
    began = slow._clock
    ticks = iter([0.0, 1.0])
    slow._clock = lambda: next(ticks)  # it took a second
    slow.blocks()
    slow._clock = began
    slow.add("b" * 50)
    now = 1.0 / SHARE - 1.0
    assert not slow.due()
    now = 1.0 / SHARE + 0.1
    assert slow.due()
