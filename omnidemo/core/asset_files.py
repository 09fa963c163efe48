"""Where the files are that come with the project: a wheel has them in the package, a checkout beside it."""

from __future__ import annotations

from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]
ASSETS = PACKAGE / "assets" if (PACKAGE / "assets").is_dir() else PACKAGE.parent / "assets"
