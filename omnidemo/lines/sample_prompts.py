"""The sample prompts that ship with the project, by topic."""

from __future__ import annotations

import json
import random
from functools import cache

from omnidemo.asset_files import ASSETS

FOLDER = ASSETS / "prompts"
TOPICS = ("maths", "code", "stories", "howto", "news", "chat")


@cache
def prompts(topic: str, kind: str = "test") -> tuple[str, ...]:
    """Prompts of a topic: "test" ones (never trained on), or "train" ones for playing traffic. ValueError for
    an unknown topic."""
    if topic not in TOPICS:
        raise ValueError(f"unknown topic {topic!r}; choose one of {', '.join(TOPICS)}")
    path = FOLDER / "train" / f"{topic}.jsonl" if kind == "train" else FOLDER / f"{topic}.jsonl"
    if not path.exists():
        path = FOLDER / f"{topic}.jsonl"
    return tuple(
        json.loads(row)["prompt"] for row in path.read_text(encoding="utf-8").splitlines() if row.strip()
    )


def sample(topic: str, count: int, seed: int = 0, kind: str = "test") -> list[str]:
    """`count` prompts in a seeded order; each comes again only after all the others."""
    known = list(prompts(topic, kind))
    rng = random.Random(seed)
    drawn: list[str] = []
    while len(drawn) < count and known:
        rng.shuffle(known)
        drawn += known
    return drawn[:count]


@cache
def examples(target: str) -> tuple[dict[str, str], ...]:
    """The page's hand-picked examples for a target in the order of the page: kind, label, prompt. The
    embedded models know little but what they were trained on; a public one is asked what people ask."""
    name, kind = ("examples", "domain") if target.startswith("bundled/") else ("questions", "kind")
    rows = (FOLDER / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return tuple(
        {"kind": row[kind], "label": row["label"], "prompt": row["prompt"]} for row in map(json.loads, rows)
    )


@cache
def probes(topic: str) -> tuple[str, ...]:
    """The few prompts of a topic on which drafters are measured. They are in no other file, so that nobody
    plays or presses them."""
    rows = (FOLDER / "probes.jsonl").read_text(encoding="utf-8").splitlines()
    return tuple(row["prompt"] for row in map(json.loads, rows) if row["domain"] == topic)
