"""The catalogue of models in `assets/catalog.json`."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from omnidemo.core.asset_files import ASSETS

CATALOG = ASSETS / "catalog.json"


@cache
def entries() -> dict[str, dict[str, Any]]:
    """The entries by name. `short`, `sha256`: of a file that can be fetched (`models/gguf/identity.py`);
    `sampling`: the model's manner, with a sentence on its source (`models/manner.py`); `system`: the system
    prompt of a chat that has none; `default`: the rank among the default targets, `needs`: their bytes of
    memory (`models/names.py`). Of a drafter: `read`, the targets of whose answers it was made, and
    `learning`, its learning settings for these."""
    return {entry["name"]: entry for entry in json.loads(CATALOG.read_text(encoding="utf-8"))}


def entry_of(name: str) -> dict[str, Any]:
    """The entry of a model, also by a file's short or public name; empty without one."""
    return entries().get(name) or next(
        (entry for entry in entries().values() if name in (entry.get("known"), entry.get("short"))), {}
    )
