"""The side with the GPU: a pair in a process that may be forked for one answer, or kept from an earlier
one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from omnidemo.models.load import LanguageModel
from omnidemo.models.parked import ParkedModel
from omnidemo.pair.remote.messages import Call, Message
from omnidemo.pair.remote.writing_pair import WritingPair, told

START_SECONDS = 15.0  # to move the weights
TOKEN_SECONDS, SPARE = 0.05, 1.5  # of a token without measurements; factor on the expected time
MOST_SECONDS = 120  # for one answer


@dataclass(slots=True)
class FixedPair:
    """The models that every process of the app has from its start. `limits`: options of `Pair`."""

    target: LanguageModel
    drafter: LanguageModel
    limits: dict[str, Any]
    here: dict[int, GpuPair] = field(default_factory=dict)  # by process id: a fork makes its own


class GpuPair(WritingPair):
    """Writes one answer at a time."""

    lines_kept = 4

    def __init__(self, fixed: FixedPair) -> None:
        super().__init__(_unparked(fixed.target), _unparked(fixed.drafter), **fixed.limits)

    def _prepare(self, domain: str, call: Call) -> None:
        super()._prepare(domain, call)
        with self._lock:
            line = self._line(domain)
            line.cost_model = call.knowledge  # with the GPU's prices


def answer(fixed: FixedPair, call: Call) -> Iterator[Message]:
    """Write an answer in this process; yields its rounds and `Finished`, or `Failed`."""

    def write() -> Iterator[Message]:
        if os.getpid() not in fixed.here:
            fixed.here[os.getpid()] = GpuPair(fixed)
        yield from fixed.here[os.getpid()].serve(call, lambda: os.path.exists(call.stop))

    yield from told(write(), "has the GPU")


def seconds(call: Call) -> int:
    """Seconds for which the GPU is requested: a visitor's quota pays for them, and the answer ends with
    them."""
    each = call.knowledge.token_seconds or TOKEN_SECONDS
    return min(MOST_SECONDS, round(START_SECONDS + SPARE * each * call.options["max_new_tokens"]))


def _unparked(model: LanguageModel) -> LanguageModel:
    assert isinstance(model.runner, ParkedModel)
    runner = model.runner.unpark()
    return replace(model, runner=runner, device=runner.device)
