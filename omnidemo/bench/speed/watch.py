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

from omnidemo.backends.compiled_rounds import MadeRound, RoundsRequest
from omnidemo.backends.fused_cache import FusedCache
from omnidemo.backends.fused_llama import FusedLlama
from omnidemo.backends.runner import Runner
from omnidemo.bench.speed import floor
from omnidemo.bench.speed.machine import synchronise
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
    """A runner that notes what is read through it: positions before, ids, rows, a number that grows, and what was drawn and read after
    that. A note costs well under a microsecond."""

    def __init__(self, runner: Runner) -> None:
        self.runner = runner
        self.rows, self.max_positions, self.parameters = runner.rows, runner.max_positions, runner.parameters
        self.device, self.dtype = runner.device, runner.dtype
        self.notes: list[tuple[int, Sequence[int], int, int, Sequence[int]]] = []

    def new_cache(self) -> KVCache:
        if isinstance(self.runner, FusedLlama):
            return WatchedFusedCache(self.runner, self.notes)
        return WatchedCache(self.runner.new_cache(), self.notes)

    def copy(self) -> Runner:
        return Watched(self.runner.copy())

    def weights(self) -> dict[str, Tensor]:
        return self.runner.weights()

    def overwrite(self, named: Mapping[str, Tensor]) -> None:
        self.runner.overwrite(named)


class WatchedCache:
    def __init__(self, cache: KVCache, notes: list[Any]) -> None:
        self.cache, self.length, self.max_positions = cache, cache.length, cache.max_positions
        self._notes = notes

    def forward(self, ids: Sequence[int], last: int, stats_at: float | None = None) -> Pass:
        self._notes.append((self.length, ids, last, next(_order), ()))
        read = self.cache.forward(ids, last, stats_at)
        self.length = self.cache.length
        return read

    def trim(self, length: int) -> int:
        self.length = self.cache.trim(length)
        return self.length


class WatchedFusedCache(FusedCache):
    """The same for a cache that backends know, and that makes more than passes."""

    def __init__(self, runner: FusedLlama, notes: list[Any]) -> None:
        super().__init__(runner)
        self._notes = notes

    def forward(self, ids: Sequence[int], last: int, stats_at: float | None = None) -> Pass:
        self._notes.append((self.length, ids, last, next(_order), ()))
        return super().forward(ids, last, stats_at)

    def roll_out(self, order: RolloutRequest, ids: Sequence[int], row: Logits | None, state: Any) -> Rollout | None:
        before, noted = self.length, len(self._notes)
        found = super().roll_out(order, ids, row, state)
        if found is not None:
            del self._notes[noted:]  # what it read by a pass of its own is a part of this
            self._notes.append((before, ids, 1, next(_order), [*found.read, *[0] * found.vain]))
        return found

    def make_rounds(
        self, drafter: FusedCache, wanted: RoundsRequest, unread: Sequence[int], given: Sequence[int], row: Logits | None, state: Any
    ) -> list[MadeRound] | None:
        """Of both models."""
        rounds = super().make_rounds(drafter, wanted, unread, given, row, state)
        before, theirs, newest = self.length + len(unread), drafter.length + len(given), list(unread)
        for made in rounds or ():
            if isinstance(drafter, WatchedFusedCache):
                drafted = [*made.drafted[: made.read], *[0] * made.vain]
                drafter._notes.append((theirs + made.lengths[1] - len(made.given), made.given, 1, next(_order), drafted))
            if made.proposal is not None:
                read, rows = [*newest, *made.proposal], len(made.proposal) + 1
                self._notes.append((before + made.lengths[0] - len(newest), read, rows, next(_order), ()))
                newest = (made.written or [])[-1:]
        return rounds


def watched(model: LanguageModel) -> LanguageModel:
    """The same loaded model, watched."""
    return replace(model, runner=Watched(model.runner))


def take_reads(model: LanguageModel) -> list[Read]:
    """What was read since the last call."""
    assert isinstance(model.runner, Watched)
    reads: list[Read] = []
    for start, ids, rows, order, drawn in model.runner.notes:
        reads += [Read(start, ids, rows, (order, 0))] if ids else []
        reads += [Read(start + len(ids) + place, [token], 1, (order, place + 1)) for place, token in enumerate(drawn)]
    model.runner.notes.clear()
    return reads


def share_among(model: LanguageModel, threads: int) -> None:
    """Use so many threads for a model's compiled passes, if it has any."""
    runner = model.runner.runner if isinstance(model.runner, Watched) else model.runner
    if isinstance(runner, FusedLlama):
        runner.threads = threads


@torch.inference_mode()
def bare(*models: tuple[LanguageModel, Sequence[Read]]) -> float:
    """Seconds of the same passes in the same order, each waited for, on caches of their own. What only reads a prompt takes no time here:
    it is no part of a round."""
    runners = [model.runner.runner if isinstance(model.runner, Watched) else model.runner for model, _ in models]
    caches, seconds = [runner.new_cache() for runner in runners], 0.0
    reads = [(read, which) for which, (_, mine) in enumerate(models) for read in mine]
    for read, which in sorted(reads, key=lambda one: one[0].order):
        caches[which].trim(read.start)
        synchronise(runners[which].device)
        began = perf_counter()
        caches[which].forward(read.ids, read.rows)
        synchronise(runners[which].device)
        seconds += (perf_counter() - began) * (read.rows > 0)
    return seconds


@contextmanager
def waiting_clock(pair: Pair) -> Iterator[None]:
    """Have the pair's clock wait for its device, so that each stage of a round is told its own time. It slows rounds down by a
    little, so speeds are not measured within."""

    def clock() -> float:
        synchronise(pair.target.device)
        return before()

    before, pair.clock = pair.clock, clock
    try:
        yield
    finally:
        pair.clock = before
