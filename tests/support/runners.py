"""Small random models in memory, what a plain pass says of them, and how near that two results have to be."""

from __future__ import annotations

from typing import Any

import torch

from lab.equality.tiny import random_model

VOCABULARY = 90

LEAN = ("llama", "llama grouped, wide heads", "llama linear", "llama 3.1", "qwen2", "qwen3", "qwen3 yarn")


def make(shape: str, **changes: Any) -> Any:
    return random_model(shape, VOCABULARY, seed=1, **changes)


def some_ids(count: int, seed: int = 0) -> list[int]:
    return torch.randint(0, VOCABULARY, (count,), generator=torch.Generator().manual_seed(seed)).tolist()


def reference(model: Any, ids: list[int]) -> torch.Tensor:
    """Logits of one plain pass without any cache."""
    with torch.no_grad():
        logits: torch.Tensor = model(torch.tensor([ids]), use_cache=False).logits[0].float()
    return logits


def close(left: torch.Tensor, right: torch.Tensor, relative: float = 1e-5) -> bool:
    return left.shape == right.shape and float((left - right).abs().max()) <= relative * float(
        right.abs().max()
    )
