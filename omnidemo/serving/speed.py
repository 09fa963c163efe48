"""How much faster guessing made the newest answers: measured while no request is running, and stored with
them."""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace

from omnidemo.core.config import GenerationConfig
from omnidemo.core.metrics import Speed
from omnidemo.core.records import Generation, Prompt
from omnidemo.pair.answer_plan import Beginning
from omnidemo.pair.pair import Pair
from omnidemo.pair.remote.remote_pair import RemotePair
from omnidemo.pair.repetition import LEARNED, NoFigure, Repetition
from omnidemo.pair.replay import Pieces, Replay, Without, newly_right
from omnidemo.serving.pair_pool import PairPool
from omnidemo.storage.store import Store

log = logging.getLogger(__name__)
QUIET, PUBLIC_QUIET = 1.0, 20.0  # seconds without a request before measuring: in a private, in a public app
KNOWN = 32  # answers whose speed is kept for the page, or why there is none
WAITING = 4  # newest of them that can be measured
LOOK_SECONDS = 0.05
WATCHED = 1.0  # seconds; a page that waits is seen every LOOK_SECONDS
# Why an answer has no speed, in four words.
ELSEWHERE = "another process wrote it"
LATER = "newer answers came first"
OFF = "measuring is switched off"
STOPPED = "the answer was stopped"
BROKEN = "the measurement itself failed"
FAILED = -1  # in place of a version
UNKNOWN = "not measured in time"


@dataclass(slots=True)
class _Order:
    """An answer to be measured. `before`: None where it cannot be, or not any more. `found`: its speed, or
    why it has none; None while it is unknown."""

    target: str
    drafter: str
    prompt: Prompt
    asked: GenerationConfig
    before: Beginning | None
    answer: Generation
    found: Speed | str | None = None
    waited: float = -WATCHED  # when a page last waited for it
    stopped: bool = False
    seen: int | None = None  # the version that it was last drafted again with
    learned: tuple[int, Pieces] = (0, [])

    @property
    def watched(self) -> bool:
        """Whether a page waits for it now."""
        return time.monotonic() - self.waited < WATCHED


class Speeds:
    """Measures the newest answers in a thread of its own, the newest one first. A new request (`hold`) ends a
    measurement, which begins again when it is quiet. Thread-safe. Only `speed_lanes` waits for one."""

    def __init__(self, pool: PairPool, store: Store) -> None:
        self.public = False
        self._pool, self._store = pool, store
        self._condition = threading.Condition()
        self._orders: OrderedDict[str, _Order] = OrderedDict()  # the newest answers, by key
        self._now: _Order | None = None  # is being measured
        self._asked = 0.0  # when the last request came, or was answered
        self._closing = False
        self._thread: threading.Thread | None = None

    def before(self, pair: Pair, domain: str) -> Beginning | None:
        """The `Beginning` of an answer; None where another process writes it, and nothing is measured."""
        return None if isinstance(pair, RemotePair) else Beginning.of(pair, domain)

    def hold(self) -> None:
        """A request has come: nothing is measured until it is quiet again."""
        with self._condition:
            self._asked = time.monotonic()
            self._stop()

    def add(
        self, target: str, drafter: str, prompt: Prompt, asked: GenerationConfig, before: Beginning | None,
        answer: Generation,
    ) -> None:  # fmt: skip
        """Order the measurement of a finished answer with guesses."""
        why: str | None = None
        if before is None:
            why = ELSEWHERE
        elif answer.finish_reason == "cancelled":
            why = STOPPED
        elif before.version != answer.adapter_version:
            why = LEARNED
        elif not self._pool.settings.measure_speed:
            why = OFF
        elif not any(answer.metrics.get(name) for name in ("drafted", "copies_proposed", "forced")):
            return
        with self._condition:
            self._asked = time.monotonic()
            order = _Order(target, drafter, prompt, asked, None if why else before, answer, why)
            self._orders[answer.key] = order
            for old in [one for one in self._orders.values() if one.before is not None][:-WAITING]:
                old.before, old.found, old.stopped = None, old.found or LATER, True
            while len(self._orders) > KNOWN:
                self._orders.popitem(last=False)
            if self._thread is None and not why and not self._closing:
                self._thread = threading.Thread(target=self._run, name="speeds", daemon=True)
                self._thread.start()
            self._condition.notify_all()

    def speeds_of(self, keys: Sequence[str]) -> dict[str, Speed | str | None]:
        """The speeds of the answers with these keys, or why there is none; None where it is being
        measured."""
        with self._condition:
            there = self._orders
            return {key: there[key].found if key in there else UNKNOWN for key in keys}

    def learned_of(self, keys: Sequence[str]) -> dict[str, tuple[int, Pieces]]:
        """What would be guessed right now in the answers with these keys, and was not when they were written:
        with version 0, what memory has brought since, else what the version has."""
        with self._condition:
            orders = {key: self._orders[key] for key in keys if key in self._orders}
            return {key: order.learned for key, order in orders.items() if order.learned[1]}

    def speed_lanes(self, key: str, patience: float, again: bool = False) -> Speed | None:
        """The speed of an answer for a page that waits. One of the newest answers is measured now, for at
        most `patience` seconds, where its speed is unknown or wanted `again`. None where it stays unknown."""
        until = time.monotonic() + patience
        with self._condition:
            order = self._orders.get(key)
            if order is None:
                return None
            if again and order.before is not None:
                order.found = None
            if order.found is None and self._now is not order:
                self._stop()
            while order.found is None and self._orders.get(key) is order:
                order.waited = time.monotonic()
                self._condition.notify_all()
                if order.waited > until:
                    return None
                self._condition.wait(LOOK_SECONDS)
            return order.found if isinstance(order.found, Speed) else None

    def forget(self) -> None:
        """Drop known speeds, which hold texts of answers, and ordered measurements."""
        with self._condition:
            self._orders.clear()
            self._stop()

    def close(self) -> None:
        self._closing = True
        self.forget()
        if self._thread is not None:
            self._thread.join(2.0)

    def _stop(self) -> None:
        """End the measurement that runs. The lock is held."""
        if self._now is not None:
            self._now.stopped = True
        self._condition.notify_all()

    def _next(self) -> _Order | None:
        """The order to measure now: one that a page waits for, or else the newest once it is quiet. The lock
        is held."""
        orders = [order for order in reversed(self._orders.values()) if order.found is None]
        due = [order for order in orders if order.watched] or (orders if self._quiet else [])
        return due[0] if due and not self._pool.users else None

    @property
    def _quiet(self) -> bool:
        return time.monotonic() - self._asked > (PUBLIC_QUIET if self.public else QUIET)

    def _run(self) -> None:
        while not self._closing:
            self._look()
            with self._condition:
                order = self._now = self._next()
                if order is None or order.before is None:
                    unknown = any(one.found is None for one in self._orders.values())
                    self._condition.wait(LOOK_SECONDS if unknown else 1.0)
                    continue
                order.stopped, before = False, order.before
            found: Speed | str | None = None
            try:
                found = self._measure(order, before)
            except NoFigure as why:
                found = str(why)
            except Exception as error:  # whatever a model raises: the answer stays unmeasured
                log.warning("The speed of an answer could not be measured: %s", error)
                found = BROKEN
            with self._condition:
                self._now = None
                if order.before is not None:
                    order.found = found
                self._condition.notify_all()
            if isinstance(found, Speed):
                self._store.set_speed(order.answer.key, found)

    def _look(self) -> None:
        """Draft the newest answer again, without its target, where more was learned since: once for what
        memory and n-grams have of it, then, when its speed is known, for each version."""
        with self._condition:
            order = next(reversed(self._orders.values()), None)
            before = order.before if order is not None else None
            if order is None or before is None or self._pool.users or not self._quiet:
                return
            if order.seen is not None and (order.found is None or order.seen == FAILED):
                return
        try:
            with self._pool.using(order.target, order.drafter) as (pair, _):
                domain, prompt = order.asked.domain, pair.prompt_ids(order.prompt)
                if order.seen == pair.swap_due(domain):
                    return
                now = Beginning.of(pair, domain)
                kept = now if order.seen is None else replace(before, version=now.version)
                again = Replay(pair, kept, prompt, order.asked, order.answer)
                rounds = again.rounds(Without()) if again.known else None
                pieces = newly_right(order.answer.rounds, rounds) if rounds else []
                if pieces:
                    order.learned = 0 if order.seen is None else now.version, pieces
                order.seen = now.version
        except Exception as error:  # whatever a model raises: nothing is said
            log.warning("What an answer has taught could not be seen: %s", error)
            order.seen = FAILED

    def _measure(self, order: _Order, before: Beginning) -> Speed | None:
        """None where it was stopped."""
        with self._pool.using(order.target, order.drafter) as (pair, _):
            again = Repetition(
                pair, before, pair.prompt_ids(order.prompt), order.asked, order.answer,
                lambda: order.stopped or self._pool.users > 1 or pair.in_flight > 1, lambda: order.watched,
            )  # fmt: skip
            return again.measure(time.monotonic)
