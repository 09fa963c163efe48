"""The side that computes: a pair that writes answers as calls say, whatever this process remembers of others."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from safetensors.torch import load

from omnidemo.pair.pair import Pair
from omnidemo.records import Trace
from omnidemo.remote.messages import Adapter, Call, Failed, Finished, Message

log = logging.getLogger(__name__)
TRACES = 64


class WritingPair(Pair):
    """Writes answers as a `Call` says; several at once where its process does. A subclass says what a call brings along (`_prepare`)."""

    lines_kept = 4  # adapter lines whose drafters a process keeps

    def __init__(self, *models: Any, **options: Any) -> None:
        super().__init__(*models, **options)
        self._serials: OrderedDict[str, int] = OrderedDict()  # of what drafts for each domain; the newest last
        self._traces: OrderedDict[str, Trace] = OrderedDict()  # of answers that have just ended, by key

    def serve(self, call: Call, cancelled: Callable[[], bool]) -> Iterator[Message]:
        """The rounds of an answer, then `Finished`."""
        domain = call.options["domain"]
        self._prepare(domain, call)
        self._use(domain)
        self.learners = [self._keep] if call.traced else self.learners
        before = self.mismatches
        generation = yield from self.stream(call.ids, cancelled=cancelled, note=call.note, begun=call.begun, **call.options)
        line, trace = self._line(domain), self._traces.pop(generation.key, None)
        traces = (trace,) if trace is not None and call.traced else ()
        yield Finished(replace(generation, rounds=()), traces, line.cost_model, line.plain_at, self.mismatches - before)

    def _prepare(self, domain: str, call: Call) -> None:
        raise NotImplementedError

    def _draft_with(self, domain: str, adapter: Adapter) -> None:
        """Have a version draft for a domain. The lock is held."""
        if adapter.serial == self._serials.get(domain, 0):
            return
        line = self._line(domain)
        line.published = adapter.version, _tensors(adapter.weights), _tensors(adapter.head)
        self._swap(domain, line)
        self._serials[domain] = adapter.serial

    def _use(self, domain: str) -> None:
        """Note that a line is used now, and let the one go that was unused for longest."""
        with self._lock:
            self._serials.setdefault(domain, 0)
            self._serials.move_to_end(domain)
            gone = [self._serials.popitem(last=False)[0] for _ in range(len(self._serials) - self.lines_kept)]
        for one in gone:
            self.forget_domain(one)

    def _keep(self, trace: Trace) -> None:
        self._traces[trace.key] = trace
        while len(self._traces) > TRACES:  # of answers whose reader has gone
            self._traces.popitem(last=False)


def told(messages: Iterator[Message], where: str) -> Iterator[Message]:
    """The messages, and an error as `Failed`: an exception would arrive without its text."""
    try:
        yield from messages
    except Exception as error:
        said = " ".join(str(error).split()) or type(error).__name__
        known = isinstance(error, (ValueError, RuntimeError))
        log.warning("an answer failed: %s", said, exc_info=not known)
        yield Failed(said if known else f"{type(error).__name__} in the process that {where}: {said}", isinstance(error, ValueError))


def _tensors(data: bytes) -> dict[str, Any]:
    return load(data) if data else {}
