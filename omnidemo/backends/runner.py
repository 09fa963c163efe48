"""The interface of a loaded model. `fused_llama.py` implements it here, `models/transformers_runner.py` for
all other models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import torch
from torch import Tensor

from omnidemo.core.config.refusals import ModelError as ModelError
from omnidemo.decoding.backend import KVCache


class Runner(Protocol):
    """A loaded model that reads token ids. One runner serves many caches (conversations) at once."""

    rows: int  # width of a row of logits; may exceed the tokenizer's vocabulary
    max_positions: int  # positions the model can hold
    parameters: int
    device: torch.device
    dtype: torch.dtype

    def new_cache(self) -> KVCache:
        """An empty cache of its own."""
        ...

    def spare(self, most: int) -> int:
        """Free idle buffers beyond `most` bytes; returns the bytes of those that stay."""
        ...

    def copy(self) -> Runner:
        """The same model with weights of its own."""
        ...

    def weights(self) -> dict[str, Tensor]:
        """The live weights by the names of `transformers`. They change with `overwrite`, so copy what must
        stay."""
        ...

    def overwrite(self, named: Mapping[str, Tensor]) -> None:
        """Copy new values into weights, in place, by the same names. Caches filled before are stale
        afterwards. ValueError, and nothing has changed, for an unknown name or another shape."""
        ...


def check_ids(ids: Sequence[int], length: int, limit: int, rows: int) -> None:
    """ValueError for ids that a model with `limit` positions and `rows` embeddings cannot read after `length`
    others."""
    if not ids:
        raise ValueError("nothing to read: give at least one token id")
    if length + len(ids) > limit:
        raise ValueError(
            f"the context is full: {length} + {len(ids)} tokens exceed the model's window of {limit}; start a"
            " new chat"
        )
    if min(ids) < 0 or max(ids) >= rows:
        raise ValueError(
            f"token ids {min(ids)} to {max(ids)} do not fit the model's {rows} embeddings; the tokenizer"
            " belongs to another model"
        )


def overwrite_named(weights: Mapping[str, Tensor], named: Mapping[str, Tensor]) -> None:
    """Copy `named` into `weights`, all or nothing. ValueError as in `Runner.overwrite`."""
    for name, value in named.items():
        if name not in weights:
            raise ValueError(f"the model has no weight {name!r}; the adapter belongs to another base model")
        if weights[name].shape != value.shape:
            raise ValueError(
                f"{name} is {list(weights[name].shape)} in the model, not {list(value.shape)}: the adapter"
                " belongs to another base"
            )
    with torch.no_grad():
        for name, value in named.items():
            weights[name].copy_(value)
