"""What clients were told, held against what the server's history has."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from omnidemo.bench.torture.report import Outcome

ACKNOWLEDGED, BAD = "acknowledged answers, held against the history", "bad inputs (raw errors)"
LOST = "lost: "  # how the sentence on a lost answer begins


def entries(files: list[Path]) -> list[dict[str, Any]]:
    """The lines of ledgers; a last one that a kill cut off is left out."""
    found = []
    for file in files:
        for line in file.read_text(encoding="utf-8").splitlines() if file.exists() else []:
            try:
                found.append(json.loads(line))
            except ValueError:
                continue
    return found


def acknowledged(files: list[Path]) -> int:
    return sum(bool(entry.get("acknowledged")) for entry in entries(files))


def compare(files: list[Path], history: Iterable[tuple[str, str]]) -> dict[str, Outcome]:
    """Of what the ledgers say: the acknowledged answers that are not in the history's (prompt, answer) once and as they were told, and the
    errors as a library words them."""
    told, bad, kept = Outcome(), Outcome(), defaultdict[str, list[str]](list)
    for prompt, answer in history:
        kept[prompt].append(answer)
    for entry in entries(files):
        bad.tried += entry["kind"] == "bad"
        if entry.get("raw"):
            bad.failed.append(f"{entry.get('event', 'chat')} with {str(entry.get('data', entry.get('prompt')))[:160]}: {entry['raw']}")
        if entry.get("acknowledged"):
            told.tried += 1
            answers = kept[entry["prompt"]]
            if answers != [entry["answer"]]:
                told.failed.append((LOST if not answers else "doubled: " if len(answers) > 1 else "altered: ") + entry["prompt"])
    return {ACKNOWLEDGED: told, BAD: bad}


def greedy(files: list[Path]) -> dict[tuple[str, int], set[str]]:
    """The acknowledged answers at temperature 0, by prompt and most tokens."""
    found: dict[tuple[str, int], set[str]] = {}
    for entry in entries(files):
        if entry.get("acknowledged") and entry["temperature"] == 0.0:
            found.setdefault((entry["prompt"], entry["tokens"]), set()).add(entry["answer"])
    return found
