"""What clients were told, held against what the server's history has."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from contextlib import closing
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


def kept(database: Path) -> dict[str, list[str]]:
    """The answers of each prompt in the history."""
    found: dict[str, list[str]] = {}
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True, timeout=30)) as connection:
        for prompt, answer in connection.execute("SELECT prompt, answer FROM requests WHERE prompt IS NOT NULL"):
            found.setdefault(prompt, []).append(answer)
    return found


def is_sound(database: Path) -> bool:
    with closing(sqlite3.connect(database, timeout=30)) as connection:
        whole = connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        return whole and connection.execute("PRAGMA foreign_key_check").fetchall() == []


def compare(files: list[Path], database: Path) -> Found:
    found, rows = Found(), kept(database)
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
