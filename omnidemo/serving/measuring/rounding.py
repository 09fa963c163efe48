"""Whether rounding decides a token: the reference itself, with its logits moved as little as another order
of its sums would move them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch

from omnidemo.backends.runner import Runner
from omnidemo.decoding.backend import KVCache, Pass
from omnidemo.decoding.contexts import common_prefix
from omnidemo.decoding.sampling import as_tensor
from omnidemo.pair.pair import Pair

NEAR = 1e-4  # difference of two scores below which rounding may decide
TRIES = 16  # half of which part, where a border is far nearer than NEAR


def unstable(reference: Pair, case: Mapping[str, Any], wanted: Sequence[int], position: int) -> bool:
    """Whether the answer to a case, `wanted` by the reference, parts from itself just at `position` where all
    logits of both models are moved by less than NEAR.

    For methods that draw from a stream: each of their choices (a draw by running sums, a guess that is kept
    by its probability or by a threshold, a residual of which rounding leaves a trace) has borders, and the
    tokens' logits do not say how near one was. `case`: the options of `Pair.generate`, which must not learn.
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
        """Without statistics, which would be those of the logits before."""
        read = self._cache.forward(ids, last)
        logits = as_tensor(read.logits)
        by = NEAR * (2 * torch.rand(logits.shape, generator=self._random) - 1)
        return Pass(logits + by.to(logits.device), None, read.hidden)
