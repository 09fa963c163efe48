"""Which passes an answer made of a model, and what the same passes cost with nothing around them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import torch
from torch import Tensor

from lab.races import floor
from lab.races.machine import synchronise
from omnidemo.backends.fused_llama import FusedCache, FusedLlama
from omnidemo.backends.runner import Runner
from omnidemo.decoding.backend import KVCache, Pass
from omnidemo.decoding.rollout import Rollout, RolloutRequest
from omnidemo.decoding.sampling import Logits
from omnidemo.models.load import LanguageModel
from omnidemo.pair.pair import Pair


@dataclass(frozen=True, slots=True)
class Read:
    """One call of `KVCache.forward`: positions before, the ids, and how many rows of logits were wanted."""

    start: int
    ids: Sequence[int]
    rows: int
    order: tuple[int, int] = (0, 0)  # grows from read to read, of whichever model

    @property
    def shape(self) -> floor.Pass:
        return floor.Pass(self.start, len(self.ids), self.rows)


_order = itertools.count()


class Watched:
    """A runner that notes what is read through it: positions before, ids, rows, a number that grows, and how
    many draws were read after that. A note costs well under a microsecond."""

    def __init__(self, runner: Runner) -> None:
        self.runner = runner
        self.rows, self.max_positions, self.parameters = runner.rows, runner.max_positions, runner.parameters
        self.device, self.dtype = runner.device, runner.dtype
        self.notes: list[tuple[int, Sequence[int], int, int, int]] = []

    def new_cache(self) -> KVCache:
        cache: WatchedFusedCache | WatchedCache
        if isinstance(self.runner, FusedLlama):
            cache = WatchedFusedCache(self.runner)
        else:
            cache = WatchedCache(self.runner.new_cache())
        cache.notes = self.notes
        return cache

    def spare(self, most: int) -> int:
        return self.runner.spare(most)

    def copy(self) -> Runner:
        return Watched(self.runner.copy())

    def weights(self) -> dict[str, Tensor]:
        return self.runner.weights()

    def overwrite(self, named: Mapping[str, Tensor]) -> None:
        self.runner.overwrite(named)


class WatchedCache:
    """A cache around another, whose passes are noted."""

    notes: list[Any]

    def __init__(self, cache: KVCache) -> None:
        self.cache, self.length, self.max_positions = cache, cache.length, cache.max_positions

    @property
    def nbytes(self) -> int:
        return self.cache.nbytes

    def forward(self, ids: Sequence[int], last: int, stats_at: float | None = None) -> Pass:
        self.notes.append((self.length, ids, last, next(_order), 0))
        read = self.cache.forward(ids, last, stats_at)
        self.length = self.cache.length
        return read

    def trim(self, length: int) -> int:
        self.length = self.cache.trim(length)
        return self.length


class WatchedFusedCache(FusedCache):
    """The same for a cache that backends know, and that makes more than passes."""

    notes: list[Any]

    def forward(self, ids: Sequence[int], last: int, stats_at: float | None = None) -> Pass:
        self.notes.append((self.length, ids, last, next(_order), 0))
        return super().forward(ids, last, stats_at)

    def roll_out(
        self, order: RolloutRequest, ids: Sequence[int], row: Logits | None, state: Any
    ) -> Rollout | None:
        before, noted = self.length, len(self.notes)
        found = super().roll_out(order, ids, row, state)
        if found is not None:
            del self.notes[noted:]  # what it read by a pass of its own is a part of this
            self.notes.append((before, ids, 1, next(_order), len(found.read)))
        return found


def watched(model: LanguageModel) -> LanguageModel:
    """The same loaded model, watched."""
    return replace(model, runner=Watched(model.runner))


def take_reads(model: LanguageModel) -> list[Read]:
    """What was read since the last call; nothing of a model that is not watched."""
    if not isinstance(model.runner, Watched):
        return []
    reads: list[Read] = []
    for start, ids, rows, order, drawn in model.runner.notes:
        reads += [Read(start, ids, rows, (order, 0))] if ids else []
        # what a token says does not change what its pass costs
        reads += [Read(start + len(ids) + place, [0], 1, (order, place + 1)) for place in range(drawn)]
    model.runner.notes.clear()
    return reads


def own_runner(model: LanguageModel) -> Runner:
    """The runner of a model, without what watches it."""
    return model.runner.runner if isinstance(model.runner, Watched) else model.runner


def unwatched_cache(model: LanguageModel) -> KVCache:
    """A cache whose passes are not noted."""
    return own_runner(model).new_cache()


@torch.inference_mode()
def bare(device: torch.device, *made: tuple[KVCache, Sequence[Read]]) -> float:
    """Seconds of these passes alone, in the order in which they were made, each waited for. What a cache
    lacks before a pass is read first, untimed, and what only reads a prompt takes no time here: it is no part
    of a round."""
    seconds = 0.0
    for read, cache in sorted(
        ((read, cache) for cache, reads in made for read in reads), key=lambda one: one[0].order
    ):
        cache.trim(read.start)
        if cache.length < read.start:
            cache.forward([0] * (read.start - cache.length), 0)
        synchronise(device)
        began = perf_counter()
        cache.forward(read.ids, read.rows)
        synchronise(device)
        seconds += (perf_counter() - began) * (read.rows > 0)
    return seconds


@contextmanager
def waiting_clock(pair: Pair) -> Iterator[None]:
    """Have the pair's clock wait for its device, so that each stage of a round is told its own time. It slows
    rounds down by a little, so speeds are not measured within."""

    def clock() -> float:
        synchronise(pair.target.device)
        return before()

    before, pair.clock = pair.clock, clock
    try:
        yield
    finally:
        pair.clock = before
