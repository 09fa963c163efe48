"""Small random models in memory, what a plain pass says of them, and how near that two results have to be."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from lab.equality.tiny import random_model

VOCABULARY = 90

LEAN = ("llama", "llama grouped, wide heads", "llama linear", "llama 3.1", "qwen2", "qwen3", "qwen3 yarn")


def make(shape: str, **changes: Any) -> Any:
    return random_model(shape, VOCABULARY, seed=1, **changes)


def some_ids(count: int, seed: int = 0) -> list[int]:
    return torch.randint(0, VOCABULARY, (count,), generator=torch.Generator().manual_seed(seed)).tolist()


def reference(model: Any, ids: list[int]) -> NDArray[np.float32]:
    """Logits of one plain pass without any cache."""
    with torch.no_grad():
        logits: NDArray[np.float32] = model(torch.tensor([ids]), use_cache=False).logits[0].float().numpy()
    return logits


def close(left: NDArray[Any], right: NDArray[Any], relative: float = 1e-5) -> bool:
    return left.shape == right.shape and float(np.abs(left - right).max()) <= relative * float(
        np.abs(right).max()
    )
