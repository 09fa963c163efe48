"""The side that computes: a pair that writes answers as calls say, whatever this process remembers of
others."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import replace
from typing import Any
from weakref import WeakKeyDictionary

from safetensors.torch import load

from omnidemo.core.records import Trace
from omnidemo.pair.pair import Pair
from omnidemo.pair.remote.messages import Behind, Call, Failed, Finished, Insertions, Message
from omnidemo.vocabulary.ngram_cache import NgramCache

log = logging.getLogger(__name__)
TRACES = 64


class WritingPair(Pair):
    """Writes answers as a `Call` says; several at once where its process does."""

    # adapter lines whose drafters a process keeps: one for each answer that it writes at once
    lines_kept = 16
    fetch: Callable[[Any], tuple[bytes, bytes]]  # gets weights and head that lie `elsewhere`

    def __init__(self, *models: Any, **options: Any) -> None:
        # no answer stays here, where no *Reset* reaches it
        super().__init__(*models, **options | {"copy_mb": 0})
        # of what drafts for each domain; the newest last
        self._serials: OrderedDict[str, int] = OrderedDict()
        self._traces: OrderedDict[str, Trace] = OrderedDict()  # of answers that have just ended, by key
        # epoch and number of what each cache was given
        self._told: WeakKeyDictionary[NgramCache, tuple[str, int]] = WeakKeyDictionary()

    def serve(self, call: Call, cancelled: Callable[[], bool]) -> Iterator[Message]:
        """The readings and rounds of an answer, then `Finished`; or `Behind` alone."""
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
        """Insert what is new; or, where something before it is lacking, the number from which on."""
        with self._lock:
            cache = self._memory.of(domain)
            # a visitor's, too: the app limits them, and nothing that it has may leave here
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
        """Have the call's version draft for a domain."""
        adapter, newest = call.adapter, self._serials.get(domain, 0)
        if adapter.serial == newest or 0 < adapter.serial < newest:  # a later call has been here
            return
        weights, head = (
            (adapter.weights, adapter.head) if adapter.elsewhere is None else self.fetch(adapter.elsewhere)
        )
        with self._lock:
            line = self._line(domain)
            line.published = adapter.version, _tensors(weights), _tensors(head), ""  # the app names it
            self._swap(domain, line)
            if not adapter.version:  # the line may have begun anew, which only the app's measurements tell
                # What Ray brings cannot be written to. What passes cost is another matter on every machine.
                line.cost_model = deepcopy(call.knowledge)
                line.cost_model.prices = self.prices.list
            self._serials[domain] = adapter.serial

    def _use(self, domain: str) -> None:
        """Note that a line is used now, and let the one go that was unused for longest."""
        with self._lock:
            self._serials.setdefault(domain, 0)
            self._serials.move_to_end(domain)
            gone = [self._serials.popitem(last=False)[0] for _ in range(len(self._serials) - self.lines_kept)]
        for name in gone:
            self.forget_domain(name)

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
        foreseen = isinstance(error, (ValueError, RuntimeError))
        log.warning("an answer failed: %s", said, exc_info=not foreseen)
        yield Failed(
            said if foreseen else f"{type(error).__name__} in the process that {where}: {said}",
            isinstance(error, ValueError),
        )


def _tensors(data: bytes) -> dict[str, Any]:
    return load(data) if data else {}
