"""The app's side of a pair on ZeroGPU: it asks for answers, shows, records and learns, and computes nothing itself."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from itertools import count
from pathlib import Path
from secrets import token_hex
from time import perf_counter
from typing import Any

import torch
from safetensors.torch import save
from torch import Tensor

from omnidemo.adapters.acceptance_head import NumpyHead
from omnidemo.config import GenerationConfig
from omnidemo.pair.conversation_pool import DOMAIN
from omnidemo.pair.ngram_memory import remember
from omnidemo.pair.pair import Pair
from omnidemo.records import Generation, Prompt, Round, Trace
from omnidemo.zerogpu.gpu_pair import FixedPair
from omnidemo.zerogpu.messages import Adapter, Call, Failed, Finished, Message, changes, entries

BASE = Adapter()
Ask = Callable[[Call], Iterator[Message]]  # writes an answer in the process that has the GPU


class ZeroPair(Pair):
    """A pair whose answers are written elsewhere. What they depend on goes with each, and what they leave behind comes back as values."""

    replays = False  # the target computes for visitors alone: nobody pays for a GPU while nobody asks

    def __init__(self, fixed: FixedPair, ask: Ask) -> None:
        cpu = torch.device("cpu")  # of the vocabulary map and the n-grams here
        super().__init__(replace(fixed.target, device=cpu), replace(fixed.drafter, device=cpu), maps=fixed.maps, **fixed.limits)
        self._fixed, self._ask = fixed, ask
        self._adapters: dict[str, Adapter] = {}
        self._serials = count(1)
        self._answering = 0
        self._stops = Path(tempfile.mkdtemp(prefix="omnidemo-stops-"))

    def stream(
        self, prompt: Prompt, *, cancelled: Callable[[], bool] = lambda: False, note: bool = True, **options: Any
    ) -> Generator[Round, None, Generation]:
        """As `Pair.stream`. RuntimeError, one sentence, where there is no GPU to be had, or the answer took longer than was asked for."""
        asked = GenerationConfig.of(**options)
        self._method(asked.method)  # what the pair cannot do is told before a GPU is asked for
        ids = tuple(self.prompt_ids(prompt))
        stop = self._stops / token_hex(12)
        with self._lock:
            line, ngrams = self._line(asked.domain), self._memory.of(asked.domain)
            if self._fixed.beginning is None:
                self._fixed.beginning = entries(self.ngrams)
            adapter, known = self._adapters.get(asked.domain, BASE), line.cost_model
            traced, since = asked.learn and bool(self.learners), changes(ngrams, self._fixed.beginning)
            call = Call(ids, asked.model_dump(), note, traced, adapter, since, known, line.plain_at, str(stop))
            self._answering += 1
        rounds: list[Round] = []
        began, first = perf_counter(), None
        messages = self._ask(call)
        try:
            while not isinstance(message := _next(messages), Finished):
                first = first if first is not None else perf_counter() - began
                if asked.learn:
                    with self._lock:
                        remember(ngrams, message)
                rounds.append(message)
                for listener in self.round_listeners if note else ():
                    listener(message)
                if cancelled():
                    stop.touch()
                yield message
            for _ in messages:  # to its end, which gives the GPU back
                pass
        finally:
            if isinstance(messages, Generator):
                with suppress(OSError):
                    stop.touch()
                messages.close()
            stop.unlink(missing_ok=True)
            with self._lock:
                self._answering -= 1
                ngrams.clock += int(asked.learn)
            self._memory.save()
        with self._lock:
            if line.cost_model is known:  # of answers at the same time the first one's is kept, and none after `forget`
                line.cost_model, line.plain_at = message.knowledge, message.plain_at
                if self._adapters.get(asked.domain, BASE) is not adapter:
                    line.cost_model.renew()
            self.mismatches += message.mismatches
        self._learn(message.traces)
        metrics = {**message.generation.metrics, "time_to_first_token": first}
        return replace(message.generation, rounds=tuple(rounds), metrics=metrics)

    def publish(self, version: int, weights: Mapping[str, Tensor], head: Mapping[str, Tensor] | None = None, domain: str = DOMAIN) -> None:
        """Have these weights draft for a domain from the next answer on."""
        adapter = Adapter(next(self._serials), version, _bytes(weights), _bytes(head or {}))
        with self._lock:
            line = self._line(domain)
            line.version, line.head = version, NumpyHead(head) if head else None
            line.cost_model.renew()
            self._adapters[domain] = adapter

    def drop_domain(self, domain: str) -> None:
        super().drop_domain(domain)
        with self._lock:
            self._adapters.pop(domain, None)

    def warm_up(self) -> None:
        """Nothing: a GPU is had for a visitor's question alone."""

    def record(self, *_: Any) -> tuple[tuple[int, ...], Trace] | None:
        """ValueError: the target computes for visitors alone."""
        raise ValueError("on ZeroGPU the target answers visitors alone, so nothing is recorded while nobody asks")

    @property
    def in_flight(self) -> int:
        return self._answering

    def summary(self) -> dict[str, Any]:
        return {**super().summary(), "device": "ZeroGPU"}

    def _learn(self, traces: tuple[Trace, ...]) -> None:
        for trace in traces:
            for learner in self.learners:
                learner(trace)


def _next(messages: Iterator[Message]) -> Round | Finished:
    """The next message; what went wrong as one sentence, whoever says it."""
    try:
        message = next(messages, None)
    except Exception as error:  # no quota, no GPU, a process that was ended: `spaces` says it with Gradio's error
        said = " ".join(str(getattr(error, "message", error)).split()) or type(error).__name__
        raise RuntimeError(f"ZeroGPU did not answer: {said}") from error
    if message is None:
        raise RuntimeError("The process that has the GPU ended before the answer did; ask again.")
    if isinstance(message, Failed):
        raise (ValueError if message.mistake else RuntimeError)(message.text)
    return message


def _bytes(weights: Mapping[str, Tensor]) -> bytes:
    return save({name: weight.detach().cpu().contiguous().clone() for name, weight in weights.items()}) if weights else b""
