"""The rows of docs/settings.md, from the table of settings. Run as a program, this module writes them."""

from __future__ import annotations

import re
from pathlib import Path

from omnidemo.core.config import Settings

PAGE = Path(__file__).parents[2] / "docs" / "settings.md"


def row(name: str) -> str:
    field = Settings.model_fields[name]
    default = str(field.default).lower() if isinstance(field.default, bool) else str(field.default)
    return f"| `OMNIDEMO_{name.upper()}` | {default or '(empty)'} | {field.description} |"


def written(page: str) -> str:
    """The page with its rows as the table has them."""
    return re.sub(r"(?m)^\| `OMNIDEMO_(\w+)` \|.*$", lambda found: row(found[1].lower()), page)


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
