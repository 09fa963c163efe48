"""What clients were told, held against the server's history; how often each thing was tried, and what
failed."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ACKNOWLEDGED, BAD = "acknowledged answers, held against the history", "bad inputs (raw errors)"
LOST = "lost: "  # how the sentence on a lost answer begins
# The first line after a traceback's header that is not indented.
TRACEBACK = re.compile(
    r"^Traceback \(most recent call last\).*\n(?:(?:[ \t].*)?\n)*(\S.{0,299})", re.MULTILINE
)


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
        return [
            [what, f"{one.tried:,}", f"{one.survived:,}", f"{len(one.failed):,}"]
            for what, one in self.outcomes.items()
        ]

    def troubles(self) -> list[str]:
        """A sentence for everything that did not hold."""
        return [f"{what}: {why}" for what, one in self.outcomes.items() for why in one.failed]


def entries(files: list[Path]) -> list[dict[str, Any]]:
    """The lines of ledgers; a last one that a kill cut off is left out."""
    texts = [file.read_text(encoding="utf-8") for file in files if file.exists()]
    return [json.loads(line) for text in texts for line in text.split("\n")[:-1]]


def acknowledged(files: list[Path]) -> int:
    return sum(bool(entry.get("acknowledged")) for entry in entries(files))


def compare(files: list[Path], history: Iterable[tuple[str, str]]) -> dict[str, Outcome]:
    """Of what the ledgers say: the acknowledged answers that are not in the history's (prompt, answer) once
    and as they were told, and the errors as a library words them."""
    told, bad, kept = Outcome(), Outcome(), defaultdict[str, list[str]](list)
    for prompt, answer in history:
        kept[prompt].append(answer)
    for entry in entries(files):
        bad.tried += entry["kind"] == "bad"
        if entry.get("raw"):
            bad.failed.append(
                f"{entry.get('event', 'chat')} with {str(entry.get('data', entry.get('prompt')))[:160]}:"
                f" {entry['raw']}"
            )
        if entry.get("acknowledged"):
            told.tried += 1
            answers = kept[entry["prompt"]]
            if answers != [entry["answer"]]:
                told.failed.append(
                    (LOST if not answers else "doubled: " if len(answers) > 1 else "altered: ")
                    + entry["prompt"]
                )
    return {ACKNOWLEDGED: told, BAD: bad}


def fixed(files: list[Path]) -> dict[tuple[str, int, float], set[str]]:
    """The acknowledged answers by prompt, most tokens and temperature, which fix them: all have the one seed
    of `client.SEED`."""
    found: dict[tuple[str, int, float], set[str]] = {}
    for entry in entries(files):
        if entry.get("acknowledged"):
            found.setdefault((entry["prompt"], entry["tokens"], entry["temperature"]), set()).add(
                entry["answer"]
            )
    return found


def tracebacks(log: Path) -> list[str]:
    """The last line of each traceback in a log."""
    return TRACEBACK.findall(log.read_text(errors="replace"))
