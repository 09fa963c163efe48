"""The side with the GPU: a pair in a process that may be forked for one answer, or kept and stale."""

from __future__ import annotations

import logging
import os
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from safetensors.torch import load

from omnidemo.models.load import LanguageModel
from omnidemo.models.parked import ParkedModel
from omnidemo.pair.pair import Pair
from omnidemo.records import Trace
from omnidemo.zerogpu.messages import Call, Failed, Finished, Message, Ngrams, become

log = logging.getLogger(__name__)
LINES = 4  # adapter lines whose drafters a process keeps
START_SECONDS, TOKEN_SECONDS, SPARE = 15.0, 0.05, 1.5  # to move the weights; of a token while nothing is known; what is asked for beyond
MOST_SECONDS = 120  # for one answer


@dataclass(slots=True)
class FixedPair:
    """What every process of the app has from its beginning. `limits` are those of `Pair`; `beginning` is set before the first answer."""

    target: LanguageModel
    drafter: LanguageModel
    maps: Path
    limits: dict[str, Any]
    beginning: Ngrams | None = None
    here: dict[int, GpuPair] = field(default_factory=dict)  # by process id: a fork makes its own


class GpuPair(Pair):
    """Writes answers as a `Call` says, whatever this process remembers of others."""

    def __init__(self, fixed: FixedPair) -> None:
        super().__init__(_unparked(fixed.target), _unparked(fixed.drafter), maps=fixed.maps, **fixed.limits)
        self._beginning = fixed.beginning or {}
        self._serials: OrderedDict[str, int] = OrderedDict()  # of what drafts for each domain; the newest last

    def serve(self, call: Call) -> Iterator[Message]:
        domain = call.options["domain"]
        self._prepare(domain, call)
        traces: list[Trace] = []
        self.learners = [traces.append] if call.traced else []
        before = self.mismatches
        steps = self.stream(call.ids, cancelled=lambda: os.path.exists(call.stop), note=call.note, **call.options)
        while True:
            try:
                yield next(steps)
            except StopIteration as finished:
                generation = finished.value
                break
        line = self._line(domain)
        yield Finished(replace(generation, rounds=()), tuple(traces), line.cost_model, line.plain_at, self.mismatches - before)

    def _prepare(self, domain: str, call: Call) -> None:
        adapter = call.adapter
        with self._lock:
            line = self._line(domain)
            if adapter.serial != self._serials.get(domain, 0):
                line.published = adapter.version, _tensors(adapter.weights), _tensors(adapter.head)
                self._swap(domain, line)
            line.cost_model, line.plain_at = call.knowledge, call.plain_at
            become(self._memory.of(domain), self._beginning, call.ngrams)
        self._serials[domain] = adapter.serial
        self._serials.move_to_end(domain)
        while len(self._serials) > LINES:
            self.forget_domain(self._serials.popitem(last=False)[0])


def answer(fixed: FixedPair, call: Call) -> Iterator[Message]:
    """Write an answer in this process: its rounds, and `Finished`; or `Failed`, for an exception would arrive without its text."""
    try:
        if os.getpid() not in fixed.here:
            fixed.here[os.getpid()] = GpuPair(fixed)
        yield from fixed.here[os.getpid()].serve(call)
    except Exception as error:
        said = " ".join(str(error).split()) or type(error).__name__
        known = isinstance(error, (ValueError, RuntimeError))
        log.warning("an answer failed: %s", said, exc_info=not known)
        yield Failed(said if known else f"{type(error).__name__} in the process that has the GPU: {said}", isinstance(error, ValueError))


def seconds(call: Call) -> int:
    """How long the GPU is asked for; a visitor's quota pays for it, and the answer ends with it."""
    each = call.knowledge.token_seconds or TOKEN_SECONDS
    return min(MOST_SECONDS, round(START_SECONDS + SPARE * each * call.options["max_new_tokens"]))


def _unparked(model: LanguageModel) -> LanguageModel:
    assert isinstance(model.runner, ParkedModel)
    runner = model.runner.unpark()
    return replace(model, runner=runner, device=runner.device)


def _tensors(data: bytes) -> dict[str, Any]:
    return load(data) if data else {}
