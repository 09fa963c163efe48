"""The place of the project's files: within the package in a wheel, beside it in a checkout."""

from __future__ import annotations

from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]
ASSETS = PACKAGE / "assets" if (PACKAGE / "assets").is_dir() else PACKAGE.parent / "assets"
