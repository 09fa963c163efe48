"""The size of the tree, wing by wing, held by a table: `make sizes` writes it anew.

A commit that deletes lowers the table. One that adds a feature may raise it, and says by how much. Git joins
what two commits did to the table line by line, so a wing may have several lines; the least counts.
"""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
TABLE = Path(__file__).with_suffix(".txt")


@cache
def measured() -> dict[str, int]:
    """Lines of each wing of `omnidemo`, of the laboratory, the tests, and the page's scripts and styles."""
    found: dict[str, int] = {}
    for path in _files():
        wing = _wing(path.relative_to(ROOT))
        if wing is not None:
            found[wing] = found.get(wing, 0) + len(path.read_text("utf-8").splitlines())
    return dict(sorted(found.items()))


def allowed() -> dict[str, int]:
    """The table: the most lines of each wing."""
    found: dict[str, int] = {}
    for line in TABLE.read_text("utf-8").splitlines():
        wing, lines = line.rsplit(maxsplit=1)
        found[wing] = min(int(lines.replace(",", "")), found.get(wing, 10**9))
    return found


def _files() -> list[Path]:
    """Files that git keeps or would keep, where there is git; else all there are."""
    listed = subprocess.run(
        ["git", "-C", ROOT, "ls-files", "--cached", "--others", "--exclude-standard"],
        capture_output=True, text=True,
    )  # fmt: skip
    if listed.returncode:
        return [
            path
            for folder in ("omnidemo", "lab", "tests", "assets/ui")
            for path in (ROOT / folder).rglob("*")
        ]
    return [path for name in listed.stdout.splitlines() if (path := ROOT / name).is_file()]


def _wing(path: Path) -> str | None:
    top, kind = path.parts[0], path.suffix
    if top == "omnidemo" and kind == ".py":
        return "/".join(path.parts[:2]) if len(path.parts) > 2 else top
    if top in ("lab", "tests") and kind in (".py", ".mjs"):
        return top
    return f"{kind[1:]} of the page" if top == "assets" and kind in (".js", ".css") else None


if __name__ == "__main__":
    found = measured()
    TABLE.write_text("".join(f"{wing} {lines:,}\n" for wing, lines in found.items()), "utf-8")
    product = sum(lines for wing, lines in found.items() if wing.startswith("omnidemo"))
    print(f"omnidemo {product:,} lines; all in {TABLE.relative_to(ROOT)}")
