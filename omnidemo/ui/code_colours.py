"""Blocks of code in an answer's Markdown tree, cut by what their words are, for the browser to colour. Pure:
no gradio.

The text of a block stays the same; a part that has a colour becomes a node ["span", [text], kind], whose kind
is one of those in KINDS. It is done once, for blocks that are finished: while one is written it is plain.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pygments.lexers import get_lexer_by_name
from pygments.token import Token
from pygments.util import ClassNotFound

from omnidemo.ui.markdown_tree import Node

LONGEST = 20_000  # characters of a block; a longer one stays plain
KINDS = (
    (Token.Comment, "comment"),
    (Token.Keyword, "keyword"),
    (Token.Operator.Word, "keyword"),
    (Token.Literal.String, "text"),
    (Token.Literal.Number, "number"),
    (Token.Name.Function, "name"),
    (Token.Name.Class, "name"),
    (Token.Name.Tag, "name"),
)


def coloured(nodes: Sequence[Node]) -> list[Node]:
    """The nodes, with blocks of code in a language that Pygments knows cut into parts, also those within
    lists and quotes."""
    return [_node(node) for node in nodes]


def _node(node: Node) -> Node:
    if isinstance(node, str):
        return node
    if node[0] == "fence":
        text, language = "".join(node[1]), str(node[2]) if len(node) > 2 else ""
        return (
            ["fence", list(_parts(text, language)), language] if language and len(text) <= LONGEST else node
        )
    return [node[0], coloured(node[1]), *node[2:]]


def _parts(text: str, language: str) -> Iterator[Node]:
    try:
        lexer = get_lexer_by_name(language, stripnl=False, ensurenl=False)
    except ClassNotFound:
        yield text
        return
    kind, part = "", ""
    for token, value in lexer.get_tokens(text):
        found = next((name for above, name in KINDS if token in above), "")
        if found != kind and value.strip():  # space has no colour, so it ends no part
            if part:
                yield ["span", [part], kind] if kind else part
            kind, part = found, ""
        part += value
    if part:
        yield ["span", [part], kind] if kind else part
