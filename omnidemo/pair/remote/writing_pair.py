"""The computing side: a pair that writes answers by calls, independent of earlier calls to this process."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any
from weakref import WeakKeyDictionary

from safetensors.torch import load

from omnidemo.core.records import Trace
from omnidemo.pair.pair import Pair
from omnidemo.pair.remote.messages import Behind, Call, Failed, Finished, Insertions, Message
from omnidemo.vocabulary.ngram_cache import NgramCache

log = logging.getLogger(__name__)
TRACES = 64  # of answers that have ended, at most


class WritingPair(Pair):
    """Writes answers by calls, several at once."""

    lines_kept = 16  # adapter lines in memory: one for each answer that a process writes at once
    fetch: Callable[[Any], tuple[bytes, bytes]]  # gets weights and head by a reference (`Adapter.elsewhere`)

    def __init__(self, *models: Any, **options: Any) -> None:
        # no memory here, which a reset in the app would not reach
        super().__init__(*models, **options | {"copy_mb": 0})
        self._serials: OrderedDict[str, int] = OrderedDict()  # of each domain's version, in order of use
        self._traces: OrderedDict[str, Trace] = OrderedDict()  # by key
        # epoch and number of the n-grams that each cache has
        self._told: WeakKeyDictionary[NgramCache, tuple[str, int]] = WeakKeyDictionary()

    def serve(self, call: Call, cancelled: Callable[[], bool]) -> Iterator[Message]:
        """Yield the readings and rounds of an answer, then `Finished`; or `Behind` alone."""
        domain = call.options["domain"]
        number = self._take(domain, call.ngrams)
        if number is not None:
            yield Behind(number)
            return
        self._prepare(domain, call)
        self._use(domain)
        self.learners = [self._keep] if call.traced else self.learners
        generation = yield from self.parts(
            call.ids, cancelled=cancelled, note=call.note, begun=call.begun, **call.options
        )
        line, trace = self._line(domain), self._traces.pop(generation.key, None)
        traces = (trace,) if trace is not None and call.traced else ()
        mismatches = int(generation.metrics["context_mismatch"] or 0)
        yield Finished(replace(generation, rounds=()), traces, line.cost_model, mismatches)

    def _take(self, domain: str, new: Insertions) -> int | None:
        """Insert new n-grams; the number from which on earlier ones are missing, else None."""
        with self._lock:
            cache = self._memory.of(domain)
            # of visitors' caches too: the app limits them, and this copy must not evict what the app has
            cache.size = self.ngrams.size
            epoch, number = self._told.get(cache, ("", 0))
            number = number if epoch == new.epoch else 0
            if new.since > number:
                return number
            if epoch != new.epoch:
                cache.clear()
            for target_id, path in new.added[number - new.since :]:
                cache.insert(target_id, path)
            self._told[cache] = new.epoch, max(number, new.since + len(new.added))
            return None

    def _prepare(self, domain: str, call: Call) -> None:
        """Let the call's version draft for a domain."""
        adapter, newest = call.adapter, self._serials.get(domain, 0)
        if adapter.serial == newest or 0 < adapter.serial < newest:  # a later call has come first
            return
        weights, head = (
            (adapter.weights, adapter.head) if adapter.elsewhere is None else self.fetch(adapter.elsewhere)
        )
        with self._lock:
            line = self._line(domain)
            line.published = adapter.version, _tensors(weights), _tensors(head), ""  # the app has its digest
            self._swap(domain, line)
            self._serials[domain] = adapter.serial

    def _use(self, domain: str) -> None:
        """Note the use of a line, and drop the lines unused for longest."""
        with self._lock:
            self._serials.setdefault(domain, 0)
            self._serials.move_to_end(domain)
            gone = [self._serials.popitem(last=False)[0] for _ in range(len(self._serials) - self.lines_kept)]
        for name in gone:
            self.forget_domain(name)

    def _keep(self, trace: Trace) -> None:
        self._traces[trace.key] = trace
        while len(self._traces) > TRACES:  # nobody has read the ends of these answers
            self._traces.popitem(last=False)


def told(messages: Iterator[Message], where: str) -> Iterator[Message]:
    """The messages, and an error as `Failed`, because an exception would lose its text."""
    try:
        yield from messages
    except Exception as error:
        said = " ".join(str(error).split()) or type(error).__name__
        foreseen = isinstance(error, (ValueError, RuntimeError))
        log.warning("an answer failed: %s", said, exc_info=not foreseen)
        yield Failed(
            said if foreseen else f"{type(error).__name__} in the process that {where}: {said}",
            isinstance(error, ValueError),
        )


def _tensors(data: bytes) -> dict[str, Any]:
    return load(data) if data else {}
