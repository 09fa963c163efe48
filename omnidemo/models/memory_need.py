"""The memory that a model needs: its weights, what is beside them in a pass, and the keys and values of a
conversation."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from transformers import AutoConfig

from omnidemo.models.model_files import MARGIN
from omnidemo.models.transformers_runner import context_limit

LEAST = 2048  # positions of a conversation for which there has to be room; a smaller window is read whole

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Need:
    """Bytes of a model that is loaded, and of a conversation of so many `positions` beside it."""

    model: float
    conversation: float
    positions: int

    @property
    def total(self) -> float:
        return self.model + self.conversation

    def __str__(self) -> str:
        part = (
            f", {self.conversation / 1e9:.1f} of it for a conversation of {self.positions:,} tokens,"
            if self.conversation >= 5e7
            else ""
        )
        return f"about {self.total / 1e9:.1f} GB{part}"


def least_need(weights: float, config: Any, itemsize: int) -> Need:
    """The least with which a model is loaded: its `weights` (bytes) with what is beside them in a pass, and a
    conversation of LEAST tokens, or of the window where that is smaller. The window stays what it is: a
    longer conversation takes more while it is read. Of a GGUF target these are its weights in float32, which
    have to be there until compiled passes have been timed; where they read the packed ones, a fifth to a
    third stays, and a longer conversation has the rest."""
    positions = min(context_limit(config), LEAST)
    return Need(weights * MARGIN, cache_bytes(config, positions, itemsize), positions)


def whole_need(weights: float, config: Any, itemsize: int) -> Need:
    """As `least_need`, with a conversation that fills the window."""
    positions = context_limit(config)
    return Need(weights * MARGIN, cache_bytes(config, positions, itemsize), positions)


def warn_of_long_chats(name: str, need: Need, free: float) -> None:
    """Say in the log where a conversation that fills the window (`whole_need`) would not fit."""
    if need.total > free:
        log.warning(
            "%s needs %s and %.1f GB are free; shorter conversations are answered",
            name,
            str(need).rstrip(","),
            free / 1e9,
        )


def conversation_in(folder: Path, itemsize: float, most: int | None = None) -> int:
    """Bytes of a conversation that fills the window of the model in a folder, or has `most` tokens where that
    is shorter; 0 where its configuration does not say."""
    try:
        config = _config_in(folder, (folder / "config.json").stat().st_mtime_ns)
        window = context_limit(config)
        return cache_bytes(config, min(window, most or window), int(itemsize))
    except (
        Exception
    ):  # damaged JSON, unknown type, own code: whatever transformers cannot read, which loading tells
        return 0


@lru_cache(256)
def _config_in(folder: Path, time: int) -> Any:
    return AutoConfig.from_pretrained(folder, trust_remote_code=False)


def cache_bytes(config: Any, positions: int, itemsize: int) -> int:
    """Bytes of the keys and values of positions, in numbers of `itemsize` bytes: layers × 2 × key heads ×
    head dimension × positions. 0 where the configuration of a model does not say how many there are."""
    text = config.get_text_config(decoder=True)

    def number(*names: str) -> int:
        found = (getattr(text, name, None) for name in names)
        return next((value for value in found if isinstance(value, int) and value > 0), 0)

    heads = number("num_attention_heads")
    # one head of keys for all
    shared = getattr(text, "multi_query", False) and not getattr(text, "new_decoder_architecture", False)
    key_heads = 1 if shared else number("num_key_value_heads", "num_kv_heads") or heads
    dimension = number("head_dim") or number("hidden_size") // max(1, heads)
    return number("num_hidden_layers") * 2 * key_heads * dimension * positions * itemsize
