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

from omnidemo.bench.speed.floor import Pass
from omnidemo.bench.speed.machine import synchronise
from omnidemo.core.ahead import Order, Rollout, Rounds, Turn
from omnidemo.core.contexts import Cache
from omnidemo.core.peaks import Peaks
from omnidemo.core.sampling import Law
from omnidemo.runtime.lean import LeanLlamaRunner
from omnidemo.runtime.models import LanguageModel
from omnidemo.runtime.pair import Pair
from omnidemo.runtime.runners import Runner


@dataclass(frozen=True, slots=True)
class Read:
    """One call of `Cache.extend`: positions before, the ids, and how many rows of logits were wanted."""

    start: int
    ids: Sequence[int]
    rows: int
    order: tuple[int, int] = (0, 0)  # grows from read to read, of whichever model

    @property
    def shape(self) -> Pass:
        return Pass(self.start, len(self.ids), self.rows)


_order = itertools.count()


class Watched:
    """A runner that notes what is read through it: positions before, ids, rows, a number that grows, and what was drawn and read after
    that. A note costs well under a microsecond."""

    def __init__(self, runner: Runner) -> None:
        self.runner = runner
        self.rows, self.limit, self.parameters = runner.rows, runner.limit, runner.parameters
        self.device, self.dtype = runner.device, runner.dtype
        self.notes: list[tuple[int, Sequence[int], int, int, Sequence[int]]] = []

    def new_cache(self) -> Cache:
        return WatchedCache(self.runner.new_cache(), self.notes)

    def copy(self) -> Runner:
        return Watched(self.runner.copy())

    def weights(self) -> dict[str, Tensor]:
        return self.runner.weights()

    def overwrite(self, named: Mapping[str, Tensor]) -> None:
        self.runner.overwrite(named)


class WatchedCache:
    def __init__(self, cache: Cache, notes: list[Any]) -> None:
        self.cache, self.length, self.limit = cache, cache.length, cache.limit
        self._notes = notes

    @property
    def states(self) -> Any:
        return getattr(self.cache, "states", None)

    def extend(self, ids: Sequence[int], rows: int) -> Tensor:
        self._notes.append((self.length, ids, rows, next(_order), ()))
        logits = self.cache.extend(ids, rows)
        self.length = self.cache.length
        return logits

    def tell(self, ids: Sequence[int], rows: int, heat: float) -> Peaks | None:
        tell = getattr(self.cache, "tell", None)
        peaks: Peaks | None = tell(ids, rows, heat) if tell is not None else None
        if peaks is not None:
            self._notes.append((self.length, ids, rows, next(_order), ()))
            self.length = self.cache.length
        return peaks

    @property
    def rolls(self) -> bool:
        return getattr(self.cache, "rolls", False)

    @property
    def strides(self) -> int:
        return getattr(self.cache, "strides", 1)

    def roll_out(self, order: Order, ids: Sequence[int], row: Law | None, state: Any) -> Rollout | None:
        found: Rollout | None = self.cache.roll_out(order, ids, row, state)  # type: ignore[attr-defined]
        if found is not None:
            self._notes.append((self.length, ids, 1, next(_order), [*found.read, *[0] * found.vain]))
            self.length = self.cache.length
        return found

    def rounds_with(
        self, drafter: Any, wanted: Rounds, unread: Sequence[int], given: Sequence[int], row: Law | None, state: Any
    ) -> list[Turn] | None:
        """The same of both models."""
        make = getattr(self.cache, "rounds_with", None)
        turns: list[Turn] | None = make(drafter.cache, wanted, unread, given, row, state) if make is not None else None
        before, theirs, newest = self.length + len(unread), drafter.length + len(given), list(unread)
        for turn in turns or ():
            drafted = [*turn.drafted[: turn.read], *[0] * turn.vain]
            drafter._notes.append((theirs + turn.lengths[1] - len(turn.given), turn.given, 1, next(_order), drafted))
            if turn.proposal is not None:
                read, rows = [*newest, *turn.proposal], len(turn.proposal) + 1
                self._notes.append((before + turn.lengths[0] - len(newest), read, rows, next(_order), ()))
                newest = (turn.written or [])[-1:]
        return turns

    def keep(self, length: int) -> None:
        self.cache.keep(length)  # type: ignore[attr-defined]
        self.length = length

    def rollback(self, length: int) -> None:
        self.cache.rollback(length)
        self.length = self.cache.length


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
    """Have so many threads share a model's compiled passes, if it has any."""
    runner = model.runner.runner if isinstance(model.runner, Watched) else model.runner
    if isinstance(runner, LeanLlamaRunner):
        runner.threads = threads


@torch.inference_mode()
def bare(*models: tuple[LanguageModel, Sequence[Read]]) -> float:
    """Seconds of the same passes in the same order, each waited for, on caches of their own. What only reads a prompt takes no time here:
    it is no part of a round."""
    runners = [model.runner.runner if isinstance(model.runner, Watched) else model.runner for model, _ in models]
    caches, seconds = [runner.new_cache() for runner in runners], 0.0
    reads = [(read, which) for which, (_, mine) in enumerate(models) for read in mine]
    for read, which in sorted(reads, key=lambda one: one[0].order):
        caches[which].rollback(read.start)
        synchronise(runners[which].device)
        began = perf_counter()
        caches[which].extend(read.ids, read.rows)
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
