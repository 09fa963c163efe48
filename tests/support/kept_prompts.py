"""The few prompts of each topic that are kept to score drafters."""

from __future__ import annotations

import json

from omnidemo.learning.lines.sample_prompts import FOLDER


def kept_prompts(topic: str) -> list[str]:
    rows = map(json.loads, (FOLDER / "probes.jsonl").read_text(encoding="utf-8").splitlines())
    return [row["prompt"] for row in rows if row["topic"] == topic]
