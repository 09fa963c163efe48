"""Whether guessing is slower than plain decoding on a topic: the time of its newest tokens against that of plain rounds."""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from dataclasses import dataclass

from omnidemo.methods import BASELINE
from omnidemo.records import STAGES, Generation

TOKENS = 500  # newest ones of a topic that count
SLOWER = 0.95  # below this many times plain decoding's speed the page says so
KNOWN = 512  # scopes that are remembered


@dataclass(frozen=True, slots=True)
class Scope:
    """Figures are compared only within the same scope: target, drafter, adapter line and topic."""

    target: str
    drafter: str
    line: str
    topic: str


@dataclass(frozen=True, slots=True)
class Slowdown:
    """`speedup` over plain decoding of a scope's newest `tokens`, estimated; None where nothing is known."""

    speedup: float | None
    tokens: int

    @property
    def slower(self) -> bool:
        return self.speedup is not None and self.speedup < SLOWER


class Slowdowns:
    """The newest answers of each scope. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: OrderedDict[Scope, deque[tuple[int, float, float]]] = OrderedDict()

    def note(self, scope: Scope, made: Generation) -> Slowdown:
        """Note an answer, unless its method never drafts or no time of a plain round is known; returns the scope's slowdown now."""
        metrics, plain = made.metrics, made.metrics.get("plain_seconds")
        seconds = sum(metrics.get(f"{name}_seconds") or 0.0 for name in STAGES)
        with self._lock:
            if made.method != BASELINE and plain and seconds > 0 and made.token_ids:
                answers = self._known.setdefault(scope, deque())
                answers.append((len(made.token_ids), seconds, len(made.token_ids) * plain))
                while sum(tokens for tokens, *_ in answers) - answers[0][0] >= TOKENS:
                    answers.popleft()
                while len(self._known) > KNOWN:
                    self._known.popitem(last=False)
            return self._slowdown(scope)

    def now(self, scope: Scope) -> Slowdown:
        with self._lock:
            return self._slowdown(scope)

    def forget(self, target: str, drafter: str, line: str) -> None:
        """A line was reset."""
        with self._lock:
            for scope in [one for one in self._known if (one.target, one.drafter, one.line) == (target, drafter, line)]:
                del self._known[scope]

    def _slowdown(self, scope: Scope) -> Slowdown:
        answers = self._known.get(scope)
        if not answers:
            return Slowdown(None, 0)
        tokens, seconds, plain = (sum(column) for column in zip(*answers, strict=True))
        return Slowdown(plain / seconds, int(tokens))
