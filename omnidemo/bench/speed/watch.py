"""Which passes an answer made of a model, and what the same passes cost with nothing around them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import torch
from torch import Tensor

from omnidemo import engine
from omnidemo.bench.speed.floor import Pass
from omnidemo.bench.speed.machine import synchronise
from omnidemo.core.contexts import Cache
from omnidemo.runtime.models import LanguageModel
from omnidemo.runtime.runners import Runner


@dataclass(frozen=True, slots=True)
class Read:
    """One call of `Cache.extend`: positions before, the ids, and how many rows of logits were wanted."""

    start: int
    ids: Sequence[int]
    rows: int

    @property
    def shape(self) -> Pass:
        return Pass(self.start, len(self.ids), self.rows)


class Watched:
    """A runner that notes what is read through it; a note costs well under a microsecond."""

    def __init__(self, runner: Runner) -> None:
        self.runner = runner
        self.rows, self.limit, self.parameters = runner.rows, runner.limit, runner.parameters
        self.device, self.dtype = runner.device, runner.dtype
        self.reads: list[Read] = []

    def new_cache(self) -> Cache:
        return WatchedCache(self.runner.new_cache(), self.reads)

    def copy(self) -> Runner:
        return Watched(self.runner.copy())

    def weights(self) -> dict[str, Tensor]:
        return self.runner.weights()

    def overwrite(self, named: Mapping[str, Tensor]) -> None:
        self.runner.overwrite(named)


class WatchedCache:
    def __init__(self, cache: Cache, reads: list[Read]) -> None:
        self.cache, self.length, self.limit = cache, cache.length, cache.limit
        self._reads = reads

    @property
    def states(self) -> Any:
        return getattr(self.cache, "states", None)

    def extend(self, ids: Sequence[int], rows: int) -> Tensor:
        self._reads.append(Read(self.length, ids, rows))
        logits = self.cache.extend(ids, rows)
        self.length = self.cache.length
        return logits

    def rollback(self, length: int) -> None:
        self.cache.rollback(length)
        self.length = self.cache.length


def watched(model: LanguageModel) -> LanguageModel:
    """The same loaded model, watched."""
    return replace(model, runner=Watched(model.runner))


def reads_of(model: LanguageModel) -> list[Read]:
    assert isinstance(model.runner, Watched)
    return model.runner.reads


@torch.inference_mode()
def bare(model: LanguageModel, reads: Sequence[Read], counts: Callable[[Read], bool] = lambda read: True) -> float:
    """Seconds of the same passes in the same order, each waited for, on a cache of their own; only those that count."""
    runner = model.runner.runner if isinstance(model.runner, Watched) else model.runner
    cache, seconds = runner.new_cache(), 0.0
    for read in reads:
        cache.rollback(read.start)
        synchronise(runner.device)
        began = perf_counter()
        cache.extend(read.ids, read.rows)
        synchronise(runner.device)
        seconds += (perf_counter() - began) * counts(read)
    return seconds


@contextmanager
def waiting_clock(device: torch.device) -> Iterator[None]:
    """Have the engine's clock wait for the device, so that each stage of a round is told its own time. It slows rounds down by a
    little, so speeds are not measured within."""

    def clock() -> float:
        synchronise(device)
        return perf_counter()

    before = engine.perf_counter
    engine.perf_counter = clock
    try:
        yield
    finally:
        engine.perf_counter = before
