"""Measurements of learning while the pair is idle: the agreement of each answer."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from omnidemo.core.config import Settings
from omnidemo.core.records import Agreement, Trace
from omnidemo.learning.distill.trace_buffer import usable
from omnidemo.learning.distill.worker import PauseController, Worker, plan_of
from omnidemo.models.adapters.adapter_state import StoredVersion
from omnidemo.pair.pair import Pair
from omnidemo.storage.line_versions import LineVersions
from omnidemo.storage.store import Store

log = logging.getLogger(__name__)
MOST_WAITING = 64  # traces whose agreement is not measured yet; older ones stay unmeasured
AT_ONCE = 8  # traces in a measurement
SETTLE_SECONDS = 120.0


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
        self._closing, self._busy = threading.Event(), threading.Event()
        self._thread: threading.Thread | None = None

    def observe(self, trace: Trace) -> None:
        """Queue an answer for the measurement of its agreement. Returns at once."""
        if self.settings.training == "off" or not usable(trace):
            return
        with self._condition:
            self._waiting.append(trace)
            if self._thread is None and not self._closing.is_set():
                name = f"measurer {self._pair.target.name}"
                self._thread = threading.Thread(target=self._run, name=name, daemon=True)
                self._thread.start()
            self._condition.notify_all()

    def gone(self, domain: str) -> None:
        """The versions of a line were deleted: its answers are not measured any more."""
        with self._condition:
            self._waiting = deque((trace for trace in self._waiting if trace.domain != domain), MOST_WAITING)

    def close(self) -> None:
        self._closing.set()
        with self._condition:
            self._condition.notify_all()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(2.0)

    def _run(self) -> None:
        while not self._closing.is_set():
            with self._condition:
                if not self._waiting:
                    self._condition.wait(1.0)
                    continue
            self._pauses(self._worker()).wait(self._closing)
            if self._closing.is_set():
                return
            self._busy.set()
            try:
                self._agree()
            except Exception as error:  # of disk, worker or model
                if not self._closing.is_set():
                    log.warning("Agreement with %s could not be measured: %s", self._pair.target.name, error)
            finally:
                self._busy.clear()

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
