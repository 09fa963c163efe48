"""Whether the app runs on ZeroGPU, and its pair there; without heavy imports."""

from __future__ import annotations

import os

from omnidemo.core.config import DEFAULT, Settings

SIGN = "SPACES_ZERO_GPU"  # set by ZeroGPU
# defaults: the bundled pair is not worth a GPU call
TARGET, DRAFTER = "Qwen/Qwen2.5-7B-Instruct", "JackFram/llama-68m"


def on() -> bool:
    return os.environ.get(SIGN, "").lower() in ("1", "t", "true")


def names(settings: Settings) -> tuple[str, str]:
    """Target and drafter: those of the settings where set, else the defaults."""
    given = settings.model_fields_set
    drafter = settings.drafter if "drafter" in given and settings.drafter != DEFAULT else DRAFTER
    return settings.target if "target" in given else TARGET, drafter
