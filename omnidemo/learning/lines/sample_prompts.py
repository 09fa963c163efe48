"""The prompts of the project's files, which `assets/prompts/README.md` describes."""

from __future__ import annotations

import json
import random
from functools import cache
from typing import Any

from omnidemo.core.asset_files import ASSETS

FOLDER = ASSETS / "prompts"
TOPICS = ("maths", "code", "sql", "summaries", "letters", "explain", "howto")


@cache
def prompts(topic: str, kind: str = "test") -> tuple[str, ...]:
    """Prompts of a topic: held-out ones ("test"), or those of traffic ("train"). ValueError for an unknown
    topic."""
    if topic not in TOPICS:
        raise ValueError(f"unknown topic {topic!r}; choose one of {', '.join(TOPICS)}")
    return tuple(row["prompt"] for row in _rows(f"train/{topic}" if kind == "train" else topic))


def sample(topic: str, count: int, seed: int = 0, kind: str = "test") -> list[str]:
    """`count` prompts in a seeded order; one comes again only after all others."""
    known = list(prompts(topic, kind))
    rng = random.Random(seed)
    drawn: list[str] = []
    while len(drawn) < count and known:
        rng.shuffle(known)
        drawn += known
    return drawn[:count]


@cache
def examples(target: str) -> tuple[dict[str, str], ...]:
    """The page's examples for a target, in order: kind, label, prompt. Bundled targets have examples of their
    own."""
    rows = _rows("examples_large" if target.startswith("bundled/") else "examples")
    return tuple({name: row[name] for name in ("kind", "label", "prompt")} for row in rows)


def _rows(name: str) -> list[dict[str, Any]]:
    """The lines of a prompt file."""
    text = (FOLDER / f"{name}.jsonl").read_text(encoding="utf-8")
    return [json.loads(row) for row in text.splitlines() if row.strip()]
