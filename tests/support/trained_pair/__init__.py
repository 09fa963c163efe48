"""The trained pair: a target and a drafter with another vocabulary, together less than a million parameters.

For tests that need models which know something. `make.py` trained them on the texts of `patterns.py`; the
drafter has not seen the weather.
"""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parent
TARGET, DRAFTER = str(FOLDER / "target"), str(FOLDER / "drafter")
