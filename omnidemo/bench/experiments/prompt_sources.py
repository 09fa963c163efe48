"""Where an experiment's prompts come from: bundled topics or files, split into traffic and held out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from omnidemo.bench.adapt import hold_out
from omnidemo.bench.compare_methods import read_prompts
from omnidemo.lines.sample_prompts import prompts

Sources = dict[str, list[str]]


def bundled(topics: Sequence[str], limit: int) -> tuple[Sources, Sources]:
    """(traffic, held out) of bundled topics: the prompts to distil from, and the first `limit` of those to test with.
    ValueError for an unknown topic."""
    held = {topic: list(dict.fromkeys(prompts(topic)))[:limit] for topic in topics}
    traffic = {topic: [one for one in dict.fromkeys(prompts(topic, "train")) if one not in held[topic]] for topic in topics}
    return traffic, held


def files(paths: Sequence[Path], limit: int) -> tuple[Sources, Sources]:
    """(traffic, held out) of JSON Lines files, a topic each, named after the file: its last `limit` prompts are held out.
    ValueError for a file that cannot serve, and for two of one name."""
    traffic: Sources = {}
    held: Sources = {}
    for path in paths:
        if path.stem in traffic:
            raise ValueError(f"two prompt files are called {path.stem}; rename one, as the name stands for the topic")
        traffic[path.stem], held[path.stem] = hold_out(read_prompts(path), None, limit)
        traffic[path.stem] = list(dict.fromkeys(traffic[path.stem]))
    return traffic, held


def numbers(text: str) -> list[int]:
    """The seeds of a list such as "0,1,2", each once. ValueError for other text, or none."""
    try:
        found = [int(part) for part in text.split(",") if part.strip()]
    except ValueError:
        found = []
    if not found:
        raise ValueError(f"seeds are whole numbers with commas between, not {text!r}")
    return list(dict.fromkeys(found))
