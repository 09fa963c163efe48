"""The app's side of a pair that computes elsewhere: it asks for answers, shows, records and learns, and
computes nothing itself."""

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
    """A pair whose answers are written elsewhere. What they depend on goes with each, and what they leave
    behind comes back as values. A subclass says how an answer is asked for (`_ask`) and how n-grams travel
    (`_told`)."""

    here = False
    where: str  # it computes, for people
    lost: str  # a sentence for an answer that lacks its end
    failed: str  # a sentence for one that could not be asked for; {} is what went wrong

    def __init__(self, target: LanguageModel, drafter: LanguageModel, limits: Mapping[str, Any]) -> None:
        cpu = torch.device("cpu")  # of the vocabulary map and the n-grams here
        super().__init__(replace(target, device=cpu), replace(drafter, device=cpu), **limits)
        self._adapters: dict[str, Adapter] = {}
        self._serials = count(1)
        self._answering = 0

    def _ask(self, call: Call, cancelled: Callable[[], bool]) -> Generator[Message, None, None]:
        """Have an answer written; its readings, rounds and `Finished`, or `Failed`. It looks at `cancelled`
        after each of the first two."""
        raise NotImplementedError

    def _told(self, ngrams: NgramCache) -> Insertions:
        """What a call says of the n-grams. The lock is held."""
        raise NotImplementedError

    def parts(
        self, prompt: Prompt, *, cancelled: Callable[[], bool] = lambda: False, note: bool = True,
        **options: Any,
    ) -> Generator[Reading | Round, None, Generation]:  # fmt: skip
        """As `Pair.parts`, without `begun`. RuntimeError, one sentence, where nobody can write it."""
        asked = self.asked(**options).seeded()  # so that whoever goes on with it writes the same text
        self._method(asked.method)  # what the pair cannot do is told before anybody is asked
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
            deque(messages, 0)  # to its end, which gives back what it holds
        finally:
            messages.close()
            with self._lock:
                self._answering -= 1
                ngrams.clock += int(asked.learn)
            self._memory.save()
        with self._lock:
            # of answers at the same time the first one's is kept, and none after `forget`
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
        # Another process wrote the beginning, and the message is of the last one alone.
        metrics |= measure(rounds, first, metrics["plain_seconds"])
        written = tuple(token.id for done in rounds for token in done.tokens)
        return replace(made, token_ids=written, text="".join(done.text for done in rounds), metrics=metrics)

    def publish(
        self, version: int, weights: Mapping[str, Tensor], head: Mapping[str, Tensor] | None = None,
        domain: str = DOMAIN,
    ) -> None:  # fmt: skip
        """Have these weights draft for a domain from the next answer on, which brings them to whoever writes
        it."""
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
        """Nothing: replicas do that themselves, and on ZeroGPU nobody pays for it."""

    @property
    def in_flight(self) -> int:
        return self._answering

    def summary(self) -> dict[str, Any]:
        return {**super().summary(), "device": self.where}

    def _packed(self, adapter: Adapter) -> Adapter:
        """How a version travels with calls."""
        return adapter

    def _next(self, messages: Iterator[Message]) -> Reading | Round | Finished:
        """The next message; what went wrong as one sentence, whoever says it."""
        try:
            message = next(messages, None)
        except Exception as error:
            said = self.failed.format(getattr(error, "message", error) or type(error).__name__)
            raise RuntimeError(" ".join(said.split())) from error
        if message is None:
            raise RuntimeError(self.lost)
        if isinstance(message, Failed):
            raise (ValueError if message.mistake else RuntimeError)(message.text)
        assert not isinstance(message, Behind)  # `_ask` has answered it
        return message


def _conversation(prompt: Prompt, ids: Sequence[int], domain: str) -> str:
    """A name for a conversation, of its line and its first question, which stays the same as long as that
    question does."""
    said = [
        message["content"] for message in prompt if isinstance(message, Mapping) and message["role"] == "user"
    ]
    first = said[0] if said else prompt if isinstance(prompt, str) else repr(tuple(ids[:BEGINNING]))
    return sha256(f"{domain} {first}".encode(errors="replace")).hexdigest()[:16]


def _bytes(weights: Mapping[str, Tensor]) -> bytes:
    return (
        save({name: weight.detach().cpu().contiguous().clone() for name, weight in weights.items()})
        if weights
        else b""
    )
