"""The names of adapter lines."""

from __future__ import annotations

from dataclasses import dataclass

AUTO = "auto"  # in place of a line's name: choose one by the prompt
LONGEST_NAME = 40  # characters


@dataclass(frozen=True, slots=True)
class LineInfo:
    """A line of a pair, in memory or on disk. Version 0: the base drafter."""

    domain: str
    version: int
    requests_seen: int
    in_memory: bool


def check_domain(name: str) -> str:
    """The name of an adapter line, stripped. ValueError, one sentence, for an impossible name."""
    name = str(name).strip()
    if not name or len(name) > LONGEST_NAME or not name.isprintable():
        raise ValueError(
            f"A topic line's name has 1 to {LONGEST_NAME} printable characters; {name[:LONGEST_NAME]!r} does"
            " not."
        )
    if name == AUTO:
        raise ValueError(
            "“auto” chooses a topic line by the prompt and is not one itself; name another line."
        )
    return name
