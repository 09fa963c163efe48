"""The memory that a model needs: its weights, the activations of a pass, and the keys and values of a
conversation."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any

from omnidemo.core.catalogue_file import entries
from omnidemo.models.model_files import MARGIN, SMALLER, check_memory
from omnidemo.models.transformers_runner import context_limit

LEAST = 2048  # positions of a conversation for which there has to be room; a smaller window is read whole
LEARNING = 0.7e9  # bytes of the process that trains: 0.59e9 were measured with a drafter of 2.9 M parameters
OF_FILE = 1.4  # bytes in memory for one of a GGUF file of four to eight bits, at most

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Need:
    """Bytes of a loaded model, of a conversation of `positions`, and of a process that trains its drafter."""

    model: float
    conversation: float
    positions: int
    learning: float = 0.0

    @property
    def total(self) -> float:
        return self.model + self.conversation + self.learning

    def __str__(self) -> str:
        beside = (
            (self.conversation, f"of it for a conversation of {self.positions:,} tokens"),
            (self.learning, "for the process that learns"),
        )
        said = " and ".join(f"{size / 1e9:.1f} {what}" for size, what in beside if size >= 5e7)
        return f"about {self.total / 1e9:.1f} GB{f', {said},' if said else ''}"


def least_need(weights: float, config: Any, itemsize: int, learning: float = 0.0) -> Need:
    """The least need of a loaded model: its `weights` (bytes, as passes read them) with the activations, and
    a conversation of LEAST tokens, or of a smaller window. The window does not shrink: a longer conversation
    takes more memory when it is read."""
    positions = min(context_limit(config), LEAST)
    return Need(weights * MARGIN, cache_bytes(config, positions, itemsize), positions, learning)


def smaller(name: str, free: float) -> str:
    """What to choose instead of a model that does not fit: the largest target among the catalogue's GGUF
    files that fits."""
    there = [entry for entry in entries().values() if "known" in entry and name not in entry.values()]
    fit = [entry for entry in there if entry["bytes"] * OF_FILE * MARGIN < free]
    best = max(fit, key=lambda entry: int(entry["bytes"]), default={"title": "bundled/large"})
    return f"a smaller model, such as {best['title']}"


def whole_need(weights: float, config: Any, itemsize: int) -> Need:
    """`least_need` with a conversation that fills the window."""
    positions = context_limit(config)
    return Need(weights * MARGIN, cache_bytes(config, positions, itemsize), positions)


def check_room(name: str, least: Need, whole: Need, free: float, place: str, packed: bool) -> None:
    """TooLarge where the least need does not fit; a warning in the log where a conversation that fills the
    window does not. `packed`: whether the weights are."""
    instead = smaller(name, free - least.learning) if packed else SMALLER
    check_memory(name, least.total, free, place, str(least), instead)
    if whole.total > free:
        log.warning(
            "%s needs %s and %.1f GB are free; shorter conversations are answered",
            name,
            str(whole).rstrip(","),
            free / 1e9,
        )


def cache_bytes(config: Any, positions: int, itemsize: int) -> int:
    """Bytes of keys and values: layers × 2 × key heads × head dimension × positions × itemsize. 0 where the
    configuration lacks a number."""
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
