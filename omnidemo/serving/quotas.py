"""Limits of visitors' answers and tokens within an hour: of each visitor, and of all together, because
anybody can get many ids."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

HOUR = 3600.0
MOST_KNOWN = 10_000  # visitors whose counts are kept; the one unused for longest is dropped


class Refused(ValueError):
    """A call that a visitor may not make. The message is one sentence: the reason and the next step."""


class QuotaUsed(Refused):
    """A quota is used up; the message says when it begins anew."""


@dataclass(slots=True)
class _Spent:
    since: float
    requests: int = 0
    tokens: int = 0


class Quotas:
    """Counts answers (when they begin) and tokens (as they are written) of each visitor and of all together.
    A visitor's counts begin anew an hour after the first answer, those of all together every hour.
    Thread-safe."""

    def __init__(
        self, each: tuple[int, int], together: tuple[int, int], clock: Callable[[], float] = time.monotonic,
        most_known: int = MOST_KNOWN, words: tuple[str, str] = ("answers", "tokens"),
    ) -> None:  # fmt: skip
        """each, together: the limits of (answers, tokens) in an hour. words: the names of both in
        messages."""
        self._words = words
        self._each, self._together, self._clock, self._most = each, together, clock, most_known
        self._all = _Spent(clock())
        self._known: OrderedDict[str, _Spent] = OrderedDict()
        self._lock = threading.Lock()

    def ask(self, name: str) -> None:
        """Count an answer; `QuotaUsed` where one of the quotas is used up."""
        with self._lock:
            mine, every = self._mine(name)
            for spent, limits, whose in (
                (mine, self._each, "You have"),
                (every, self._together, "All visitors have"),
            ):
                for used, most, what in zip((spent.requests, spent.tokens), limits, self._words, strict=True):
                    if used >= most:
                        left = max(1, round((spent.since + HOUR - self._clock()) / 60))
                        wait = f"{left} minute{'' if left == 1 else 's'}"
                        raise QuotaUsed(
                            f"{whose} had {most:,} {what} within an hour, which is the most here; ask again"
                            f" in {wait}."
                        )
            mine.requests += 1
            every.requests += 1

    def spend(self, name: str, tokens: int) -> bool:
        """Count tokens; whether any are left."""
        with self._lock:
            left = True
            for spent, (_, most) in zip(self._mine(name), (self._each, self._together), strict=True):
                spent.tokens += tokens
                left &= spent.tokens < most
            return left

    def _mine(self, name: str) -> tuple[_Spent, _Spent]:
        now = self._clock()
        if now - self._all.since >= HOUR:
            self._all = _Spent(now)
        mine = self._known.pop(name, None)
        if mine is None or now - mine.since >= HOUR:
            mine = _Spent(now)
        self._known[name] = mine
        while len(self._known) > self._most:
            self._known.popitem(last=False)
        return mine, self._all


LONGEST_ANSWER = 1024  # tokens
MOST_PROMPTS = 10  # of one comparison
UPLOADS = 30  # files of one visitor in an hour
NO_ID = (
    "This call carries no valid visitor's id; load the page again, or send the one that a POST to /visitor"
    " gives."
)
BUSY = "One of your answers is still being written; press again when it has ended."
