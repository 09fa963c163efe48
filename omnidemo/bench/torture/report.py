"""What a torture found: outcomes counted by kind, the books, and a sentence for everything that did not hold."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from omnidemo.bench.torture.ledger import Found


@dataclass(slots=True)
class Outcome:
    tried: int = 0
    survived: int = 0
    failed: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Report:
    outcomes: dict[str, Outcome] = field(default_factory=dict)
    found: Found = field(default_factory=Found)
    raw: list[str] = field(default_factory=list)  # of the server's log
    foreign: list[str] = field(default_factory=list)
    different: list[str] = field(default_factory=list)  # prompts whose greedy answer is not what plain decoding says
    repeated: int = 0
    seconds: float = 0.0

    def note(self, what: str, held: bool, why: str = "") -> None:
        outcome = self.outcomes.setdefault(what, Outcome())
        outcome.tried += 1
        outcome.survived += held
        if not held:
            outcome.failed.append(why or what)

    @property
    def held(self) -> bool:
        found = self.found
        broken = any(one.failed for one in self.outcomes.values())
        return not (broken or found.lost or found.doubled or found.altered or found.raw or self.raw or self.foreign or self.different)

    def rows(self) -> list[list[str]]:
        """(what, tried, survived, lost) as text."""
        found = self.found
        shown = [[what, f"{one.tried:,}", f"{one.survived:,}", f"{len(one.failed):,}"] for what, one in self.outcomes.items()]
        broken = len(found.lost) + len(found.doubled) + len(found.altered)
        shown.append(
            ["acknowledged answers, held against the history", f"{found.acknowledged:,}", f"{found.acknowledged - broken:,}", f"{broken:,}"]
        )
        same = self.repeated - len(self.different)
        shown.append(
            [
                "answers at temperature 0, decoded again plainly by one process",
                f"{self.repeated:,}",
                f"{same:,}",
                f"{len(self.different):,}",
            ]
        )
        shown.append(["bad inputs (raw errors)", f"{found.bad:,}", f"{found.bad - len(found.raw):,}", f"{len(found.raw):,}"])
        shown.append(["tracebacks in the server's log", "–", "–", f"{len(self.raw):,}"])
        return shown

    def troubles(self) -> list[str]:
        """A sentence for everything that did not hold."""
        found = self.found
        told = [f"{what}: {why}" for what, one in self.outcomes.items() for why in one.failed]
        for name, prompts in (("lost", found.lost), ("doubled", found.doubled), ("altered", found.altered), ("raw error", found.raw)):
            told += [f"{name}: {prompt}" for prompt in prompts]
        told += [f"different: {prompt}" for prompt in self.different]
        return told + [f"log: {line}" for line in self.raw] + [f"foreign: {what}" for what in self.foreign]


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
