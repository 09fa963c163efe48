"""Reading the shards that `answers.py` writes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(slots=True)
class Recorded:
    """An answer: see `Answer` in `batched.py`. Without `top` it is a text that people wrote."""

    set: str
    order: str
    target: str
    temperature: float
    reason: str
    prompt: list[int]
    ids: list[int]
    top: NDArray[Any] | None = None
    logprobs: NDArray[Any] | None = None
    penalty: float = 1.0


def read_shards(folder: Path, target: str | None = None) -> Iterator[Recorded]:
    """The answers of all shards in a folder and those below it, or of one target's."""
    for path in sorted(folder.rglob(f"{target or '*'}-*.jsonl")):
        yield from read_shard(path)


def read_shard(path: Path) -> Iterator[Recorded]:
    """The answers of the shard whose lines are in `path`."""
    with np.load(path.with_suffix(".npz")) as arrays:
        top, logprobs = arrays["top"], arrays["logprobs"]
    at = 0
    for line in path.read_text().splitlines():
        record = json.loads(line)
        end = at + len(record["answer"])
        yield Recorded(
            record["set"], record["order"], record["target"], record["temperature"], record["reason"],
            record["prompt"],
            record["answer"], top[at:end], logprobs[at:end], record.get("penalty", 1.0),
        )  # fmt: skip
        at = end
