"""What a torture found: how often each thing was tried, and a sentence for everything that did not hold."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path


@dataclass(slots=True)
class Outcome:
    tried: int = 0
    failed: list[str] = field(default_factory=list)

    @property
    def survived(self) -> int:
        return self.tried - len(self.failed)


@dataclass(slots=True)
class Report:
    outcomes: dict[str, Outcome] = field(default_factory=dict)
    seconds: float = 0.0

    def note(self, what: str, held: bool, why: str = "") -> None:
        outcome = self.outcomes.setdefault(what, Outcome())
        outcome.tried += 1
        if not held:
            outcome.failed.append(why or what)

    @property
    def held(self) -> bool:
        return not self.troubles()

    def rows(self) -> list[list[str]]:
        """(what, tried, survived, lost) as text."""
        return [[what, f"{one.tried:,}", f"{one.survived:,}", f"{len(one.failed):,}"] for what, one in self.outcomes.items()]

    def troubles(self) -> list[str]:
        """A sentence for everything that did not hold."""
        return [f"{what}: {why}" for what, one in self.outcomes.items() for why in one.failed]


def tracebacks(log: Path) -> list[str]:
    """The last line of each traceback in a log."""
    found: list[str] = []
    inside = False
    for line in log.read_text(errors="replace").splitlines():
        if line.startswith("Traceback (most recent call last)"):
            inside = True
        elif inside and line and not line.startswith((" ", "\t")):
            found.append(line[:300])
            inside = False
    return found
