"""What papers report of pairs and vocabularies: other people's figures on other machines, each with its source, never ours."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

REPORTED = Path(__file__).parents[2] / "assets" / "reported.json"


@dataclass(frozen=True, slots=True)
class Report:
    """Speedups in tokens/s over plain decoding, from `low` to `high`. `what` says what the range is of, `parameters` the target's size."""

    target: str
    drafter: str
    parameters: int
    low: float
    high: float
    what: str
    source: str

    def __str__(self) -> str:
        speedup = f"{self.low:.2f}×" if self.low == self.high else f"{self.low:.2f} to {self.high:.2f}×"
        return f"{speedup} with {self.target.rpartition('/')[2]} ({self.what}; {self.source})"


@cache
def _file() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(REPORTED.read_text(encoding="utf-8"))
    return found


def reports(target: str, drafter: str, parameters: int) -> tuple[Report, ...]:
    """Reports of this pair; else of the drafter with the next larger target where it lost, for it loses with a smaller one the more."""
    known = [Report(**row) for row in _file()["speedups"] if row["drafter"] == drafter]
    own = [one for one in known if one.target == target]
    larger = sorted((one for one in known if one.parameters >= parameters and one.low < 1), key=lambda one: one.parameters)
    return tuple(own or larger[:1])


def published_overlap(target_family: str | None, drafter_family: str | None) -> tuple[int, int, str] | None:
    """Shared tokens, the target's tokens, and the source."""
    for row in _file()["overlaps"]:
        if (row["target_family"], row["drafter_family"]) == (target_family, drafter_family):
            return row["shared"], row["tokens"], row["source"]
    return None
