"""Measurements of learning while the pair is idle: the agreement of each answer, and versions on a topic's
probe prompts."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property, partial
from pathlib import Path

from omnidemo.core.config import Settings
from omnidemo.core.records import Agreement, Probe, Replayed, Trace
from omnidemo.learning.distill.trace_buffer import usable
from omnidemo.learning.distill.worker import PauseController, Worker, plan_of
from omnidemo.learning.lines import sample_prompts
from omnidemo.learning.probes.probe import ProbeRequest
from omnidemo.learning.probes.replayed_target import RecordedAnswer, TargetRecords
from omnidemo.models.adapters.adapter_state import StoredVersion
from omnidemo.pair.pair import Pair
from omnidemo.storage.line_versions import LineVersions
from omnidemo.storage.store import Store

log = logging.getLogger(__name__)
ANSWER_TOKENS = 96  # longest recorded answer: enough to judge a drafter, and replayed in moments
SHOWN = 3  # prompts whose rounds are kept for the page
MOST_WAITING = 64  # traces whose agreement is not measured yet; older ones stay unmeasured
AT_ONCE = 8  # traces in a measurement of agreement
QUIET_SECONDS = 6.0  # without an answer, after which the other topics are measured too
SETTLE_SECONDS = 120.0
Key = tuple[str, int, str]  # domain ("" for the fresh drafter), version, topic


class Measurer:
    """The measurements of one pair. `worker()`: the worker that measures now. `line(domain)`: the versions of
    a line. While the pair answers, a measurement waits (and pauses, where its worker can) for at most
    `patience` seconds, and then takes turns with it. Errors are logged, but `agree` raises. Thread-safe."""

    def __init__(
        self, pair: Pair, settings: Settings, store: Store, worker: Callable[[], Worker],
        line: Callable[[str], LineVersions],
    ) -> None:  # fmt: skip
        self.settings = settings
        self._pair, self._store, self._worker, self._line = pair, store, worker, line
        self._condition = threading.Condition()
        self._waiting: deque[Trace] = deque(maxlen=MOST_WAITING)
        self._topics: dict[str, str] = {}  # topic → line of its newest answer; the newest last
        self._newest: dict[str, int] = {}  # line → its version
        self._done: set[Key] = set()  # replayed, or failed
        self._answered = time.monotonic()
        self._closing, self._busy = threading.Event(), threading.Event()
        self._thread: threading.Thread | None = None

    def observe(self, trace: Trace) -> None:
        """Queue an answer for the measurement of its agreement. Returns at once."""
        if self.settings.training == "off" or not usable(trace):
            return
        with self._condition:
            self._waiting.append(trace)
            self._answered = time.monotonic()
            self._wake()

    def topic(self, topic: str, domain: str) -> None:
        """The line is about to write an answer of this topic."""
        if topic not in sample_prompts.TOPICS or self.settings.training == "off" or not self._pair.replays:
            return
        with self._condition:
            self._topics.pop(topic, None)
            self._topics[topic] = domain
            self._answered = time.monotonic()

    def swapped(self, domain: str, version: int) -> None:
        """A line drafts with this version now. Look it and the fresh drafter up again, and replay those
        without rounds: rounds of older versions are not kept, and a replay of the fresh drafter may have
        failed."""
        with self._condition:
            self._newest[domain] = version
            self._done = {key for key in self._done if key[1] and key[:2] != (domain, version)}
            self._condition.notify_all()

    def forget(self, domain: str) -> None:
        """A line was reset: its version numbers begin anew."""
        with self._condition:
            self._newest[domain] = 0
            self._done = {key for key in self._done if key[0] != domain}

    def gone(self, domain: str) -> None:
        """The versions of a line were deleted: drop its measurements."""
        self.forget(domain)
        with self._condition:
            self._newest.pop(domain, None)
            self._waiting = deque((trace for trace in self._waiting if trace.domain != domain), MOST_WAITING)
            self._topics = {topic: line for topic, line in self._topics.items() if line != domain}

    def pending(self, topic: str) -> bool:
        """Whether a replay of the topic's newest version or of the fresh drafter is still to come."""
        with self._condition:
            domain = self._topics.get(topic)
            return self._thread is not None and domain is not None and bool(self._missing(topic, domain))

    def close(self) -> None:
        self._closing.set()
        with self._condition:
            self._condition.notify_all()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(2.0)

    def _wake(self) -> None:
        if self._thread is None and not self._closing.is_set():
            self._thread = threading.Thread(
                target=self._run, name=f"measurer {self._pair.target.name}", daemon=True
            )
            self._thread.start()
        self._condition.notify_all()

    def _run(self) -> None:
        while not self._closing.is_set():
            with self._condition:
                due = self._next()
                if due is None:
                    self._condition.wait(1.0)
                    continue
            key, work = due
            self._pauses(self._worker()).wait(self._closing)
            if self._closing.is_set():
                return
            self._busy.set()
            try:
                work()
            except Exception as error:  # of disk, worker or model
                if not self._closing.is_set():
                    log.warning("Something about %s could not be measured: %s", self._pair.target.name, error)
                if key is not None:
                    self._done.add(key)  # tried again with the next version
            finally:
                self._busy.clear()

    def _next(self) -> tuple[Key | None, Callable[[], None]] | None:
        """The next measurement; None: none is due. `_condition` is held."""
        if self._waiting:
            return None, self._agree
        quiet = time.monotonic() - self._answered > QUIET_SECONDS
        recent = list(reversed(self._topics.items()))
        if quiet and recent:
            recent += [(topic, recent[0][1]) for topic in sample_prompts.TOPICS if topic not in self._topics]
        for topic, domain in recent if quiet else recent[:1]:
            for key in self._missing(topic, domain):
                return key, partial(self._probe, key)
        return None

    def _missing(self, topic: str, domain: str) -> list[Key]:
        """The versions of a line to be replayed on a topic."""
        newest = self._newest.get(domain, 0)
        keys: list[Key] = [("", 0, topic), *([(domain, newest, topic)] if newest else [])]
        return [key for key in keys if key not in self._done]

    def settle(self) -> None:
        """Wait until the agreement of all answers so far is measured, for at most SETTLE_SECONDS."""
        until = time.monotonic() + SETTLE_SECONDS
        while (
            (self._waiting or self._busy.is_set()) and time.monotonic() < until and not self._closing.is_set()
        ):
            self._closing.wait(0.005)

    def agree(self, domain: str, version: int, traces: Sequence[Trace]) -> list[Agreement]:
        """The agreement of a version with the target on each trace, waited for in this thread. ValueError
        where the version's files are gone."""
        with self._working() as worker:
            stored = self._version(domain, version)
            return worker.agree(
                self._pair.drafter.folder, stored.adapter if stored else None, traces, plan_of(self.settings)
            )

    def _agree(self) -> None:
        with self._condition:
            if not self._waiting:
                return
            first = self._waiting[0]
            own = [
                trace
                for trace in self._waiting
                if (trace.domain, trace.version) == (first.domain, first.version)
            ][:AT_ONCE]
            self._waiting = deque((trace for trace in self._waiting if trace not in own), MOST_WAITING)
        for trace, agreement in zip(own, self.agree(first.domain, first.version, own), strict=True):
            self._pair.note_agreement(trace.key, agreement)
            self._store.set_agreement(trace.key, agreement)

    def _probe(self, key: Key) -> None:
        """Replay a version on a topic and store the result; record missing answers of the target first."""
        domain, version, topic = key
        (request, records), asked = self._recordings, sample_prompts.probes(topic)
        recording = records.key_of(asked)
        names = (self._pair.target.name, self._pair.drafter.name)
        rows = self._store.probes(*names, domain or "default", topic, shown=True)
        self._done.update(
            (row["domain"], row["version"], topic)
            for row in rows
            if row["recording"] == recording and row["shown"]
        )
        if key in self._done:
            return
        for prompt in records.missing(asked):
            if not self._record(records, prompt):
                return  # a request arrived: the measurement continues later
        stored = self._version(domain, version)
        examples = stored.info.requests_seen if stored else 0
        recorded = [records.load(prompt) for prompt in asked]
        replayed: list[Replayed] = []
        for prompt in asked:
            with self._working() as worker:
                replayed += worker.replay(request, stored.adapter if stored else None, [prompt])
        agreed = mean_of(self.agree(domain, version, [answer.trace for answer in recorded]))
        if version and version not in self._line(domain).numbers():
            return  # the line was reset meanwhile
        self._done.add(key)
        counts = tuple((answer.tokens, len(answer.rounds)) for answer in replayed)
        shown = tuple(replayed[:SHOWN])
        self._store.record_probe(
            Probe(*names, domain, version, topic, recording, examples, counts, agreed, shown)
        )

    def _record(self, records: TargetRecords, prompt: str) -> bool:
        """Record the target's answer to a prompt; False where a request arrived before its end."""
        ids = self._pair.prompt_ids(prompt)
        made = self._pair.record(
            ids, ANSWER_TOKENS, lambda: self._pair.in_flight > 0 or self._closing.is_set()
        )
        if made is not None:
            records.save(prompt, RecordedAnswer(tuple(ids), *made))
        return made is not None

    @cached_property
    def _recordings(self) -> tuple[ProbeRequest, TargetRecords]:
        settings = self.settings.model_copy(update={"max_new_tokens": ANSWER_TOKENS})
        request = ProbeRequest(
            Path(settings.storage) / "probes", self._pair.target.name, self._pair.drafter.name, settings
        )
        records = request.records()
        records.note(self._pair.target)
        return request, records

    def _version(self, domain: str, version: int) -> StoredVersion | None:
        """A stored version; None for the fresh drafter. ValueError where its files are gone."""
        return self._line(domain).load(version) if version else None

    @contextmanager
    def _working(self) -> Iterator[Worker]:
        """The worker for this thread alone, which pauses while the pair answers."""
        worker = self._worker()
        with worker.turn, self._pauses(worker):
            yield worker

    def _pauses(self, worker: Worker) -> PauseController:
        return PauseController(worker, lambda: self._pair.in_flight > 0, self.settings.patience)


def mean_of(agreements: Sequence[Agreement]) -> Agreement | None:
    """The mean agreement over all positions of several answers; None without positions."""
    count = sum(each.positions for each in agreements)
    if not count:
        return None
    overlap = sum(each.overlap * each.positions for each in agreements) / count
    return Agreement(overlap, sum(each.same_first * each.positions for each in agreements) / count, count)
