"""How much faster guessing made the newest answers: measured while no request is running, and stored with
them."""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from omnidemo.core.config import GenerationConfig
from omnidemo.core.metrics import Speed
from omnidemo.core.records import Generation, Prompt
from omnidemo.pair.answer_plan import Beginning
from omnidemo.pair.pair import Pair
from omnidemo.pair.remote.remote_pair import RemotePair
from omnidemo.pair.repetition import Repetition
from omnidemo.serving.pair_pool import PairPool
from omnidemo.storage.store import Store

log = logging.getLogger(__name__)
QUIET, PUBLIC_QUIET = 1.0, 20.0  # seconds without a request before measuring: in a private, in a public app
KNOWN = 32  # answers whose speed is kept for the page
AGAIN = 4  # newest answers that can be measured on request
LOOK_SECONDS = 0.05
WATCHED = 1.0  # seconds; a page that waits is seen every LOOK_SECONDS


@dataclass(slots=True)
class _Order:
    """An answer to be measured."""

    target: str
    drafter: str
    prompt: Prompt
    asked: GenerationConfig
    before: Beginning
    answer: Generation
    since: float = field(default_factory=time.monotonic)
    waited: float | None = None  # when a page last waited for it
    stopped: bool = False

    @property
    def watched(self) -> bool:
        """Whether a page waits for it now."""
        return self.waited is not None and time.monotonic() - self.waited < WATCHED


class Speeds:
    """Measures the newest answer in a thread of its own. A new request (`hold`) ends that for good, because
    another answer will be the newest. Thread-safe. Only `lanes` waits for a measurement."""

    def __init__(self, pool: PairPool, store: Store) -> None:
        self.public = False
        self._pool, self._store = pool, store
        self._condition = threading.Condition()
        self._order: _Order | None = None
        self._known: OrderedDict[str, Speed] = OrderedDict()
        self._recent: OrderedDict[str, _Order] = OrderedDict()
        self._closing = False
        self._thread: threading.Thread | None = None

    def before(self, pair: Pair, domain: str) -> Beginning | None:
        """The `Beginning` of an answer; None where another process writes it, and nothing is measured."""
        return None if isinstance(pair, RemotePair) else Beginning.of(pair, domain)

    def hold(self) -> None:
        """A request has come: nothing is measured until its answer is there."""
        with self._condition:
            if self._order is not None:
                self._order.stopped = True
                self._order = None
            self._condition.notify_all()

    def add(
        self, target: str, drafter: str, prompt: Prompt, asked: GenerationConfig, before: Beginning | None,
        answer: Generation,
    ) -> None:  # fmt: skip
        """Order the measurement of a finished answer with guesses."""
        guessed = (answer.metrics.get("drafted") or 0) + (answer.metrics.get("copies_proposed") or 0)
        if before is None or before.version != answer.adapter_version or not guessed:
            return
        if answer.finish_reason == "cancelled" or not self._pool.settings.measure_speed:
            return
        with self._condition:
            self._order = _Order(target, drafter, prompt, asked, before, answer)
            self._recent[answer.key] = self._order
            while len(self._recent) > AGAIN:
                self._recent.popitem(last=False)
            if self._thread is None and not self._closing:
                self._thread = threading.Thread(target=self._run, name="speeds", daemon=True)
                self._thread.start()
            self._condition.notify_all()

    def of(self, keys: Sequence[str]) -> dict[str, Speed | None]:
        """The known speeds of the answers with these keys; None where the measurement is ordered."""
        with self._condition:
            speeds: dict[str, Speed | None] = {key: self._known[key] for key in keys if key in self._known}
            if self._order is not None and self._order.answer.key in keys:
                speeds.setdefault(self._order.answer.key, None)
            return speeds

    def lanes(self, key: str, patience: float, again: bool = False) -> Speed | None:
        """The speed of an answer for a page that waits. One of the newest answers is measured now, for at
        most `patience` seconds, where its speed is unknown or wanted `again`. None where it stays unknown."""
        until = time.monotonic() + patience
        with self._condition:
            if again:
                self._known.pop(key, None)
            now, order = self._order, self._recent.get(key)
            if order is not None and key not in self._known and (now is None or now.answer.key != key):
                if now is not None:
                    now.stopped = True
                self._order = replace(order, stopped=False)
            while key not in self._known and self._order is not None and self._order.answer.key == key:
                self._order.waited = time.monotonic()
                self._condition.notify_all()
                if time.monotonic() > until:
                    return None
                self._condition.wait(LOOK_SECONDS)
            return self._known.get(key)

    def forget(self) -> None:
        """Drop known speeds, which hold texts of answers, and ordered measurements."""
        self.hold()
        with self._condition:
            self._known.clear()
            self._recent.clear()

    def close(self) -> None:
        self._closing = True
        self.hold()
        if self._thread is not None:
            self._thread.join(2.0)

    def _run(self) -> None:
        while not self._closing:
            with self._condition:
                order = self._order
                if order is None or not self._due(order):
                    self._condition.wait(1.0 if order is None else LOOK_SECONDS)
                    continue
            speed: Speed | None = None
            try:
                speed = self._measure(order)
            except Exception as error:  # whatever a model raises: the answer stays unmeasured
                log.warning("The speed of an answer could not be measured: %s", error)
            with self._condition:
                if speed is not None and not order.stopped:
                    self._known[order.answer.key] = speed
                    while len(self._known) > KNOWN:
                        self._known.popitem(last=False)
                if self._order is order:
                    self._order = None
                self._condition.notify_all()
            if speed is not None:
                self._store.set_speed(order.answer.key, speed)

    def _due(self, order: _Order) -> bool:
        quiet = PUBLIC_QUIET if self.public else QUIET
        return order.waited is not None or time.monotonic() - order.since > quiet

    def _measure(self, order: _Order) -> Speed | None:
        with self._pool.using(order.target, order.drafter) as (pair, _):
            while pair.in_flight and not order.stopped:  # comparisons and races
                time.sleep(LOOK_SECONDS)
            ids = pair.prompt_ids(order.prompt)
            again = Repetition(
                pair, order.before, ids, order.asked, order.answer,
                lambda: order.stopped or pair.in_flight > 1, lambda: order.watched,
            )  # fmt: skip
            return again.measure(time.monotonic)
