"""An answer's Markdown as a tree of texts and named elements, for the browser, which builds it from an
allow-list. Pure: no gradio.

A node is a text or a list [name, children, attribute]: names are those of HTML's elements, and `fence` for a
block of code. The attribute is the address of an `a`, the first number of an `ol`, the alignment of a `th` or
`td`, the language of a `fence`; else it is left out. `ui/code_colours.py` adds `span`, a part of code, whose
attribute is its kind. No HTML is made or passed on: what looks like it is text, as are addresses of any other
kind than http, https and mailto.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.token import Token

Node = str | list[Any]
DEEPEST = 40  # levels of lists and quotes in each other; what goes deeper is shown as it was written
LONGEST = 100_000  # characters of one block; a longer one is shown as it was written
SHARE = 0.03  # of the time, at most, goes into reading Markdown while an answer is written
# a block that is still written is sent again when it has grown by one part in so many, so that all it takes
# stays linear
GROWTH = 16
ADDRESS = re.compile(r"(https?://|mailto:)[^\s<>]+", re.IGNORECASE)
LANGUAGE = re.compile(r"[\w+#.-]{1,24}")
# Lines of Python that stand in an answer without a fence, as small models write them; and lines that go on
# with them.
CODE = re.compile(
    r"(async )?def \w+ ?\(.*|class \w+ ?[(:].*|import [\w.]+( as \w+)?|from [\w.]+ import [\w, *]+"
)
MORE_CODE = re.compile(
    r"@\w.*|[)\]}].*|#.*|\w[\w., ]* ="
    r" .*|(print|assert|return|for|while|if|elif|else|with|try|except|finally)\b.*[:)\]\w]"
)
# A definition of an address further down would change what was read above.
PARSER = MarkdownIt("js-default", {"breaks": True, "maxNesting": 2 * DEEPEST}).disable("reference")
NAMES = {"s": "del"}


def _bare_code(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """A rule of the parser: Python without a fence is a block of code, up to the first line that is no part
    of it."""

    def text(line: int) -> str:
        return str(state.src[state.bMarks[line] + state.tShift[line] : state.eMarks[line]])

    if state.sCount[start] != state.blkIndent or not CODE.fullmatch(text(start)):
        return False
    if silent:
        return True
    line = stop = start + 1
    while line < end and (state.isEmpty(line) or state.sCount[line] >= state.blkIndent):
        if not state.isEmpty(line):
            again = CODE.fullmatch(text(line)) or (line == stop and MORE_CODE.fullmatch(text(line)))
            if state.sCount[line] == state.blkIndent and not again:
                break
            stop = line + 1
        line += 1
    token = state.push("fence", "code", 0)
    token.info, token.map = "python", [start, stop]
    token.content = state.getLines(start, stop, state.blkIndent, False) + "\n"
    state.line = stop
    return True


PARSER.block.ruler.before("paragraph", "bare_code", _bare_code, {"alt": ["paragraph", "blockquote", "list"]})


def tree(text: str) -> list[Node]:
    """The blocks of a text."""
    return _blocks(_parse(text), text)


class LiveMarkdown:
    """The blocks of a text that grows: those that are finished are given once, the last one again and
    again."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._rest = ""  # from the beginning of the block that may still change
        self._half = ""  # of the end of a line
        self._read = 0  # characters of it that were given
        self._not_before = 0.0

    def add(self, text: str) -> None:
        """The text goes on."""
        text = self._half + text
        self._half = "\r" if text.endswith("\r") else ""
        self._rest += text.removesuffix("\r").replace("\r\n", "\n").replace("\r", "\n")

    def due(self) -> bool:
        """Whether it is time to give what is new."""
        return len(self._rest) - self._read > self._read // GROWTH and self._clock() >= self._not_before

    def blocks(self, ended: bool = False) -> tuple[list[Node], list[Node]]:
        """(blocks that are finished and were not given before, blocks that may still change); `ended`: the
        text does not go on."""
        began = self._clock()
        text = self._rest
        tokens = _parse(text)
        starts = [
            place
            for place, token in enumerate(tokens)
            if not token.level and token.map and token.nesting >= 0
        ]
        line = (tokens[starts[-1]].map or [0])[0] if len(starts) > 1 else 0
        whole = text.count("\n")
        # What a block is, and so where the one before it ends, is known after its first two lines.
        cut = starts[-1] if line and line + 2 <= whole else 0
        done = _blocks(tokens if ended else tokens[:cut], text)
        left = [] if ended else _blocks(tokens[cut:], text)
        if cut:
            text = text.split("\n", line)[line]
        self._rest = "" if ended else text
        self._read = len(self._rest)
        now = self._clock()
        self._not_before = now + (now - began) * (1 / SHARE - 1)
        return done, left


def _parse(text: str) -> list[Token]:
    if len(text) <= LONGEST:
        return PARSER.parse(text)
    return [Token("plain", "", 0, map=[0, text.count("\n") + 1])]


def _blocks(tokens: Sequence[Token], text: str) -> list[Node]:
    """The top-level blocks of some of the tokens of a text."""
    blocks: list[Node] = []
    begin = 0
    for place, token in enumerate(tokens):
        if token.level or token.nesting > 0:
            continue
        block = tokens[begin : place + 1]
        begin = place + 1
        if token.type == "plain" or any(one.level >= DEEPEST for one in block):
            first, last = block[0].map or [0, 0]
            blocks.append(["p", _lines("\n".join(text.split("\n")[first:last]))])
        else:
            blocks += _nodes(block)
    return blocks


def _nodes(tokens: Iterable[Token]) -> list[Node]:
    """The nodes of tokens, of which each one that opens is closed."""
    found: list[Node] = []
    open_ones: list[list[Node]] = [found]
    for token in tokens:
        here = open_ones[-1]
        if token.nesting > 0:
            children: list[Node] = []
            name = _name(token)
            if token.hidden or not name:  # a paragraph of a tight list; an address that is not followed
                open_ones.append(here)
                continue
            attribute = _attribute(token, name)
            here.append([name, children] if attribute is None else [name, children, attribute])
            open_ones.append(children)
        elif token.nesting < 0:
            open_ones.pop()
        elif token.type == "inline":
            here += _nodes(token.children or [])
        else:
            here += _leaf(token)
    return found


def _name(token: Token) -> str:
    """The name of an element that opens; empty for a link to an address of another kind."""
    if token.type == "link_open" and not ADDRESS.fullmatch(str(token.attrGet("href"))):
        return ""
    return NAMES.get(token.tag, token.tag)


def _attribute(token: Token, name: str) -> str | int | None:
    if name == "a":
        return str(token.attrGet("href"))
    if name == "ol":
        start = token.attrGet("start")
        return int(start) if start is not None and str(start) != "1" else None
    if name in ("th", "td"):
        return str(token.attrGet("style") or "").partition(":")[2] or None
    return None


def _leaf(token: Token) -> list[Node]:
    """The nodes of a token that encloses nothing."""
    if token.type in ("fence", "code_block"):
        language = LANGUAGE.match(token.info.strip())
        return [["fence", [token.content], language[0] if language else ""]]
    if token.type == "code_inline":
        return [["code", [token.content]]]
    if token.type in ("softbreak", "hardbreak"):
        return [["br", []]]
    if token.type == "hr":
        return [["hr", []]]
    if token.type == "image":  # nothing is fetched from elsewhere
        address, title = str(token.attrGet("src")), token.content or "image"
        return [["a", [title], address]] if ADDRESS.fullmatch(address) else [title]
    return [token.content] if token.content else []


def _lines(text: str) -> list[Node]:
    """A text as it was written."""
    nodes: list[Node] = []
    for line in text.split("\n"):
        nodes += [line, ["br", []]]
    return nodes[:-1]
