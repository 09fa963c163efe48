"""The catalogue of models as it is written in `assets/catalog.json`."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from omnidemo.core.asset_files import ASSETS

CATALOG = ASSETS / "catalog.json"


@cache
def entries() -> dict[str, dict[str, Any]]:
    """The entries by name. `embedding`: parameters of an input embedding that is not the output's too;
    `family`: which tokenizer; `short`, `sha256`: of a file that can be fetched (`fetching/fetchable.py`);
    `sampling`: the model's manner, with a sentence that says where it comes from (`models/manner.py`);
    `system`: the system prompt with which the page begins a chat; `default`: the place among the targets that
    are taken where none is named, `needs`: the bytes of memory that this takes (`models/names.py`). Of a
    drafter: `read`, the targets of whose answers it was made, and `learning`, the settings by which it learns
    for these (`models/names.py`)."""
    return {entry["name"]: entry for entry in json.loads(CATALOG.read_text(encoding="utf-8"))}


def entry_of(name: str) -> dict[str, Any]:
    """The catalogue's entry for a model, also for the short name of a file and the one that it is known by;
    empty where it has none."""
    return entries().get(name) or next(
        (entry for entry in entries().values() if name in (entry.get("known"), entry.get("short"))), {}
    )
