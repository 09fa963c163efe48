"""What the order of sums changes: tokens that rounding decides, and rows whose bits depend on other rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from omnidemo.backends.compiled_passes import CompiledPasses
from omnidemo.backends.fused_llama import FusedLlama
from omnidemo.backends.runner import Runner
from omnidemo.core.config import Arithmetic
from omnidemo.decoding.backend import KVCache, Pass
from omnidemo.decoding.contexts import common_prefix
from omnidemo.decoding.sampling import as_tensor
from omnidemo.pair.pair import Pair

NEAR = 1e-4  # difference of two scores below which rounding may decide
TRIES = 16  # half of which part, where a border is far nearer than NEAR
MOST = 16  # rows of a pass


def unstable(reference: Pair, case: Mapping[str, Any], wanted: Sequence[int], position: int) -> bool:
    """Whether the reference's own answer to a case (`wanted`) changes at `position` where all logits of both
    models are moved by less than NEAR. `case`: the options of `Pair.generate`, which must not learn.

    For methods that draw from a stream: each of their choices (a draw by running sums, a guess kept by its
    probability or by a threshold, a residual) has borders, and logits do not show how near a border was.
    """
    for attempt in range(TRIES):
        moved = Pair(
            *(
                replace(model, runner=_Moved(model.runner, 2 * attempt + side))
                for side, model in enumerate((reference.target, reference.drafter))
            )
        )
        moved.ngrams = reference.ngrams
        if common_prefix(moved.generate(**case).token_ids, wanted) == position:
            return True
    return False


def differing(runner: FusedLlama, ids: Sequence[int], arithmetic: Arithmetic) -> int:
    """How many logits of a packed target have other bits in passes of 1, 2, … MOST rows, as far as the window
    reaches, than in passes of one row. The passes read `ids`, repeated."""
    assert runner.packed is not None
    sizes = [size for size in range(1, MOST + 1) if size * (size + 1) // 2 <= runner.max_positions]
    some = [ids[at % len(ids)] for at in range(sum(sizes))]
    own = runner.copy()
    own.packed = replace(runner.packed, arithmetic=arithmetic)
    own.passes = CompiledPasses(own, "packed")
    return int((_bits(own, some, sizes) != _bits(own, some, [1] * len(some))).sum())


def _bits(runner: FusedLlama, ids: Sequence[int], sizes: Sequence[int]) -> NDArray[np.uint32]:
    """The bits of the logits [ids, rows] that passes of these sizes give."""
    cache, made, begin = runner.new_cache(), list[NDArray[np.uint32]](), 0
    for size in sizes:
        rows = as_tensor(cache.forward(ids[begin : begin + size], size).logits)
        made.append(rows.numpy().view(np.uint32))
        begin += size
    return np.concatenate(made)


class _Moved:
    """A runner (`Runner`) whose caches move logits."""

    def __init__(self, runner: Runner, seed: int) -> None:
        self._runner, self._random = runner, torch.Generator().manual_seed(seed)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._runner, name)

    def new_cache(self) -> KVCache:
        return _MovedCache(self._runner.new_cache(), self._random)


class _MovedCache:
    def __init__(self, cache: KVCache, random: torch.Generator) -> None:
        self._cache, self._random = cache, random

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cache, name)

    def forward(self, ids: Sequence[int], last: int, stats_at: float | None = None) -> Pass:
        """Without statistics, which would be of the logits before the move."""
        read = self._cache.forward(ids, last)
        logits = as_tensor(read.logits)
        by = NEAR * (2 * torch.rand(logits.shape, generator=self._random) - 1)
        return Pass(logits + by.to(logits.device), None, read.hidden)
