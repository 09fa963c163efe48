"""The app's side of a pair that computes in another process: it calls for answers, records them and
learns."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from itertools import count
from time import perf_counter
from typing import Any

import torch
from safetensors.torch import save
from torch import Tensor

from omnidemo.core.metrics import measure
from omnidemo.core.records import Generation, Prompt, Reading, Round
from omnidemo.models.adapters.acceptance_head import NumpyHead
from omnidemo.models.load import LanguageModel
from omnidemo.pair.conversation_pool import DOMAIN
from omnidemo.pair.drafting_line import digest_of
from omnidemo.pair.ngram_memory import remember
from omnidemo.pair.pair import Pair
from omnidemo.pair.remote.messages import Adapter, Behind, Call, Failed, Finished, Insertions, Message
from omnidemo.vocabulary.ngram_cache import NgramCache

BASE = Adapter()
BEGINNING = 64  # ids of a prompt by which its conversation is known


class RemotePair(Pair):
    """A pair whose answers another process writes. A `Call` carries all that an answer depends on, and
    messages bring back all that it leaves behind. A subclass calls for answers (`_ask`) and selects the
    n-grams of a call (`_told`)."""

    here = False
    where: str  # the place of computation, for people
    lost: str  # a sentence for an answer without its end
    failed: str  # a sentence for a failed call; {} is the error

    def __init__(self, target: LanguageModel, drafter: LanguageModel, limits: Mapping[str, Any]) -> None:
        cpu = torch.device("cpu")  # of the vocabulary map and the n-grams here
        super().__init__(replace(target, device=cpu), replace(drafter, device=cpu), **limits)
        self._adapters: dict[str, Adapter] = {}
        self._serials = count(1)
        self._answering = 0

    def _ask(self, call: Call, cancelled: Callable[[], bool]) -> Generator[Message, None, None]:
        """Call for an answer; yields readings, rounds and `Finished`, or `Failed`. `cancelled` is called
        after each of the first two."""
        raise NotImplementedError

    def _told(self, ngrams: NgramCache) -> Insertions:
        """The n-grams of a call. The lock is held."""
        raise NotImplementedError

    def parts(
        self, prompt: Prompt, *, cancelled: Callable[[], bool] = lambda: False, note: bool = True,
        **options: Any,
    ) -> Generator[Reading | Round, None, Generation]:  # fmt: skip
        """As `Pair.parts`, without `begun`. RuntimeError, one sentence, where no process can write it."""
        asked = self.asked(**options).seeded()  # a process that continues the answer writes the same text
        self._method(asked.method)  # raises ValueError before the call
        self.constraint(asked)  # likewise
        ids, traced = tuple(self.prompt_ids(prompt)), asked.learn and bool(self.learners)
        with self._lock:
            line, ngrams = self._line(asked.domain), self._memory.of(asked.domain)
            adapter, costs = self._adapters.get(asked.domain, BASE), line.cost_model
            guesses = self._guesses(asked, line, ngrams)
            call = Call(
                ids, asked.model_dump(), note, traced, adapter, self._told(ngrams), costs,
                conversation=_conversation(prompt, ids, asked.domain),
            )  # fmt: skip
            self._answering += 1
        rounds, began, first = list[Round](), perf_counter(), None
        messages = self._ask(call, cancelled)
        try:
            while not isinstance(message := self._next(messages), Finished):
                if isinstance(message, Reading):
                    yield message
                    continue
                first = first if first is not None else perf_counter() - began
                if asked.learn:
                    with self._lock:
                        remember(ngrams, message)
                rounds.append(message)
                for listener in self.round_listeners if note else ():
                    listener(message)
                yield message
            deque(messages, 0)  # read to the end, which frees its resources
        finally:
            messages.close()
            with self._lock:
                self._answering -= 1
                ngrams.clock += int(asked.learn)
            self._memory.save()
        with self._lock:
            # of simultaneous answers the first one's is kept, and none after `forget`
            if line.cost_model is costs:
                line.cost_model = message.knowledge
                if self._adapters.get(asked.domain, BASE) is not adapter:
                    line.cost_model.renew()
            self.mismatches += message.mismatches
        for trace in message.traces:
            for learner in self.learners:
                learner(trace)
        made = replace(
            message.generation, rounds=tuple(rounds), prompt_tokens=len(ids), seed=asked.seed,
            context_limit=self.target.context, guesses=guesses,
        )  # fmt: skip
        metrics = {**made.metrics, "time_to_first_token": first}
        if message.generation.prompt_tokens == len(ids):
            return replace(made, metrics=metrics)
        # Another process wrote the beginning, and the message is of the last process alone.
        metrics |= measure(rounds, first)
        written = tuple(token.id for done in rounds for token in done.tokens)
        return replace(made, token_ids=written, text="".join(done.text for done in rounds), metrics=metrics)

    def publish(
        self, version: int, weights: Mapping[str, Tensor], head: Mapping[str, Tensor] | None = None,
        domain: str = DOMAIN,
    ) -> None:  # fmt: skip
        """Draft for a domain with these weights from the next answer on, whose call carries them."""
        digest = digest_of(weights, head or {})
        adapter = self._packed(Adapter(next(self._serials), version, _bytes(weights), _bytes(head or {})))
        with self._lock:
            line = self._line(domain)
            line.version, line.head = version, NumpyHead(head) if head else None
            line.digest = digest
            line.cost_model.renew()
            self._adapters[domain] = adapter

    def drop_domain(self, domain: str) -> None:
        super().drop_domain(domain)
        with self._lock:
            self._adapters.pop(domain, None)

    def warm_up(self) -> None:
        """Nothing: replicas warm up themselves, and ZeroGPU's time is for answers alone."""

    @property
    def in_flight(self) -> int:
        return self._answering

    def summary(self) -> dict[str, Any]:
        return {**super().summary(), "device": self.where}

    def _packed(self, adapter: Adapter) -> Adapter:
        """A version as calls carry it."""
        return adapter

    def _next(self, messages: Iterator[Message]) -> Reading | Round | Finished:
        """The next message. RuntimeError or ValueError, one sentence, for any failure."""
        try:
            message = next(messages, None)
        except Exception as error:
            said = self.failed.format(getattr(error, "message", error) or type(error).__name__)
            raise RuntimeError(" ".join(said.split())) from error
        if message is None:
            raise RuntimeError(self.lost)
        if isinstance(message, Failed):
            raise (ValueError if message.mistake else RuntimeError)(message.text)
        assert not isinstance(message, Behind)  # `_ask` handles it
        return message


def _conversation(prompt: Prompt, ids: Sequence[int], domain: str) -> str:
    """A name of a conversation from its line and its first question."""
    said = [
        message["content"] for message in prompt if isinstance(message, Mapping) and message["role"] == "user"
    ]
    first = said[0] if said else prompt if isinstance(prompt, str) else repr(tuple(ids[:BEGINNING]))
    return sha256(f"{domain} {first}".encode(errors="replace")).hexdigest()[:16]


def _bytes(weights: Mapping[str, Tensor]) -> bytes:
    copies = {name: weight.detach().cpu().contiguous().clone() for name, weight in weights.items()}
    return save(copies) if weights else b""
