"""OmniDemo: online, cross-vocabulary speculative decoding with one small drafter for every target model.

from omnidemo import load_pair

pair = load_pair(target="bundled/large", drafter="bundled/drafter")
print(pair.generate("What is 37 + 25?").text)
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from omnidemo.api import load_pair
    from omnidemo.core.records import Generation, Reading, Round
    from omnidemo.pair.pair import Pair

os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")  # read by huggingface_hub when it is imported
__all__ = ["Generation", "Pair", "Reading", "Round", "load_pair"]
_HOMES = {
    "load_pair": "omnidemo.api",
    "Pair": "omnidemo.pair.pair",
    "Generation": "omnidemo.core.records",
    "Reading": "omnidemo.core.records",
    "Round": "omnidemo.core.records",
}


def __getattr__(name: str) -> Any:
    """Load torch and transformers only when something that needs them is asked for."""
    if name not in _HOMES:
        raise AttributeError(f"module 'omnidemo' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
