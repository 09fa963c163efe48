"""The size of the tree, package by package, held by a table: `make sizes` writes it anew.

A commit that deletes lowers the table. One that adds a feature may raise it, and says by how much. Git joins
what two commits did to the table line by line, so a package may have several lines; the least counts.
"""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
TABLE = Path(__file__).with_suffix(".txt")


@cache
def measured() -> dict[str, int]:
    """Lines of each package of `omnidemo`, of laboratory, tests, and the page's scripts and styles."""
    found: dict[str, int] = {}
    for path in _files():
        package = _package(path.relative_to(ROOT))
        if package is not None:
            found[package] = found.get(package, 0) + len(path.read_text("utf-8").splitlines())
    return dict(sorted(found.items()))


def allowed() -> dict[str, int]:
    """The table: the most lines of each package."""
    found: dict[str, int] = {}
    for line in TABLE.read_text("utf-8").splitlines():
        package, lines = line.rsplit(maxsplit=1)
        found[package] = min(int(lines.replace(",", "")), found.get(package, 10**9))
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


def _package(path: Path) -> str | None:
    top, kind = path.parts[0], path.suffix
    if top == "omnidemo" and kind == ".py":
        return "/".join(path.parts[:2]) if len(path.parts) > 2 else top
    if top in ("lab", "tests") and kind in (".py", ".mjs"):
        return top
    return f"{kind[1:]} of the page" if top == "assets" and kind in (".js", ".css") else None


if __name__ == "__main__":
    found = measured()
    TABLE.write_text("".join(f"{package} {lines:,}\n" for package, lines in found.items()), "utf-8")
    product = sum(lines for package, lines in found.items() if package.startswith("omnidemo"))
    print(f"omnidemo {product:,} lines; all in {TABLE.relative_to(ROOT)}")
