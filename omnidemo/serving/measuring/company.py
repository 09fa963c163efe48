"""Whether a target's rows have the same bits alone and among others, on this machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from omnidemo.backends.fused_llama import FusedLlama
from omnidemo.core.config import Arithmetic
from omnidemo.decoding.sampling import as_tensor

MOST = 16  # rows of a pass


def differing(runner: FusedLlama, ids: Sequence[int], arithmetic: Arithmetic) -> int:
    """How many logits of a packed target in an arithmetic have other bits in passes of 1, 2, … MOST rows, as
    far as the window reaches, than where the same ids, which are repeated, are read one by one."""
    assert runner.packed is not None
    sizes = [size for size in range(1, MOST + 1) if size * (size + 1) // 2 <= runner.max_positions]
    some = [ids[at % len(ids)] for at in range(sum(sizes))]
    own = runner.copy()
    own.packed = replace(runner.packed, arithmetic=arithmetic)
    own.use(own.passes_over("packed"))
    alone = _logits(own, some, [1] * len(some))
    return int((_logits(own, some, sizes) != alone).sum())


def _logits(runner: FusedLlama, ids: Sequence[int], sizes: Sequence[int]) -> NDArray[np.uint32]:
    cache, made, begin = runner.new_cache(), list[NDArray[np.uint32]](), 0
    for size in sizes:
        rows = as_tensor(cache.forward(ids[begin : begin + size], size).logits)
        made.append(rows.numpy().view(np.uint32))
        begin += size
    return np.concatenate(made)
