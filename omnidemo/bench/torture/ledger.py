"""What clients were told, held against what the server's history has."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(slots=True)
class Found:
    """`raw`: errors as a library words them, `lost`, `doubled` and `altered` the prompts whose acknowledged answers are so."""

    acknowledged: int = 0
    asked: int = 0
    hung_up: int = 0
    away: int = 0
    bad: int = 0
    lost: list[str] = field(default_factory=list)
    doubled: list[str] = field(default_factory=list)
    altered: list[str] = field(default_factory=list)
    raw: list[str] = field(default_factory=list)
    refusals: Counter[str] = field(default_factory=Counter)  # sentences for good requests, and how often


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


def kept(answers: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """The answers of each prompt."""
    found: dict[str, list[str]] = {}
    for prompt, answer in answers:
        found.setdefault(prompt, []).append(answer)
    return found


def compare(files: list[Path], history: Iterable[tuple[str, str]]) -> Found:
    """What the ledgers say, and what of it is not in the history's (prompt, answer)."""
    found, rows = Found(), kept(history)
    for entry in entries(files):
        kind = entry["kind"]
        found.asked += kind == "asked"
        found.hung_up += kind == "hung up"
        found.away += kind == "away"
        found.bad += kind == "bad"
        if entry.get("raw"):
            found.raw.append(f"{entry.get('event', 'chat')} with {str(entry.get('data', entry.get('prompt')))[:160]}: {entry['raw']}")
        if kind == "chat" and entry["error"]:
            found.refusals[entry["error"][:120]] += 1
        if kind == "chat" and entry["acknowledged"]:
            found.acknowledged += 1
            answers = rows.get(entry["prompt"], [])
            if not answers:
                found.lost.append(entry["prompt"])
            elif len(answers) > 1:
                found.doubled.append(entry["prompt"])
            elif answers[0] != entry["answer"]:
                found.altered.append(entry["prompt"])
    return found


def greedy(files: list[Path]) -> dict[tuple[str, int], set[str]]:
    """The acknowledged answers at temperature 0, by prompt and most tokens."""
    found: dict[tuple[str, int], set[str]] = {}
    for entry in entries(files):
        if entry["kind"] == "chat" and entry["acknowledged"] and entry["temperature"] == 0.0:
            found.setdefault((entry["prompt"], entry["tokens"]), set()).add(entry["answer"])
    return found
