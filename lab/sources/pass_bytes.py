"""Bytes of weights that a pass reads: what a part of one costs where memory limits it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from omnidemo.gguf.architecture import plan_of
from omnidemo.gguf.header import read_header

HEAD, EMBEDDING = "lm_head.weight", "model.embed_tokens.weight"


@dataclass(frozen=True, slots=True)
class Parts:
    """Bytes of each layer, and of the output layer, which may be the embedding."""

    layers: Sequence[int]
    head: int

    @property
    def whole(self) -> int:
        return sum(self.layers) + self.head


def sizes_in_file(path: Path) -> dict[str, int]:
    """Bytes of each weight in a GGUF file, by its name in `transformers`."""
    header = read_header(path)
    return {weight: header.tensors[name].size for weight, name in plan_of(header).names.items()}


def sizes_in_memory(model: Any) -> dict[str, int]:
    return {name: weight.numel() * weight.element_size() for name, weight in model.named_parameters()}


def parts_of(sizes: Mapping[str, int], layers: int) -> Parts:
    each = [
        sum(size for name, size in sizes.items() if name.startswith(f"model.layers.{number}."))
        for number in range(layers)
    ]
    return Parts(each, sizes.get(HEAD, sizes[EMBEDDING]))
