"""How likely an id of a draft is right, by what several sources say: learned from what was written."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

from lab.sources.memories import Look
from lab.sources.mixer import Mixer
from omnidemo.decoding.calibration import Calibration

UNKNOWN = -2  # an id that the drafter would say behind a wrong one; it is never right
KEPT = 16.0  # observations of a class that count beyond a set
SOURCES = 5  # the drafter and memories, at most
RATE, CAUTION = 0.1, 2.0  # of Adagrad
FURTHEST = 4.6  # of a logit: 0.99
Prior = Callable[[int, int], float | None]
Offers = Sequence[tuple[int, int, float]]  # (source, id, its chance by itself)


@dataclass(slots=True)
class Place:
    """An id of a draft: what each source said there, which id was taken and how likely it is right. `learns`:
    what the beliefs learn it by; `probs`: of a mixture."""

    looks: list[tuple[int, Look]]
    token: int = UNKNOWN
    chance: float = 0.0
    learns: Any = None
    probs: dict[int, float] = field(default_factory=dict)


def logit(chance: float) -> float:
    return min(FURTHEST, max(-FURTHEST, math.log(max(chance, 1e-6) / max(1.0 - chance, 1e-6))))


class Stack:
    """Logistic regression: an id is right by what each source that says it, and each that says another one,
    thinks of its own id."""

    def __init__(self) -> None:
        self.weights = [0.0, 0.0] + [0.7, 0.0, -0.2, 0.0] * SOURCES
        self.squares = [CAUTION] * len(self.weights)

    def features(self, offers: Offers, token: int, later: bool) -> list[tuple[int, float]]:
        """Those that are not 0: (number, value)."""
        found = [(0, 1.0), (1, float(later))]
        for source, said, chance in offers:
            at = 2 + 4 * source + (0 if said == token else 2)
            found += [(at, logit(chance)), (at + 1, 1.0)]
        return found

    def __call__(self, features: Sequence[tuple[int, float]]) -> float:
        return 1.0 / (1.0 + math.exp(-sum(self.weights[at] * value for at, value in features)))

    def learn(self, features: Sequence[tuple[int, float]], right: bool) -> None:
        off = self(features) - right
        for at, value in features:
            slope = off * value
            self.squares[at] += slope * slope
            self.weights[at] -= RATE * slope / math.sqrt(self.squares[at])


class Beliefs:
    """`mixed`: the sources' distributions are mixed; else each offers its likeliest id, and the chance of
    each id is a `Stack`'s. `prior`: how often an id of a source and kind is right, as far as one can say;
    None: as its probability says."""

    def __init__(self, mixed: bool, prior: Prior) -> None:
        self.mixed, self.prior = mixed, prior
        self.calibrations: dict[Hashable, Calibration] = {}
        self.mixers, self.stacks = (Mixer(), Mixer()), (Stack(), Stack())

    def renew(self) -> None:
        """Keep a little of what was learned."""
        for known in self.calibrations.values():
            for at, weight in enumerate(known.weight):
                part = min(1.0, KEPT / weight) if weight else 1.0
                known.weight[at], known.accepted[at] = part * weight, part * known.accepted[at]

    def place(self, looks: list[tuple[int, Look]], later: bool, asked: bool) -> Place:
        """The likeliest id. later: other ids of the draft stand before it; asked: the drafter is among
        those who look."""
        if not looks:
            return Place(looks)
        if self.mixed:
            mixer = self.mixers[asked]
            features, probs = mixer.probs(looks)
            token = max(probs, key=probs.__getitem__)
            chance = self._calibrated((asked, later), probs[token])
            return Place(looks, token, chance, (mixer, features, (asked, later), probs[token]), probs)
        offers, stack = [self._offer(*look) for look in looks], self.stacks[asked]
        found = {token: stack.features(offers, token, later) for _, token, _ in offers}
        chances = {token: stack(features) for token, features in found.items()}
        token = max(chances, key=chances.__getitem__)
        return Place(looks, token, chances[token], (stack, found))

    def _offer(self, source: int, look: Look) -> tuple[int, int, float]:
        token = max(look.probs, key=look.probs.__getitem__)
        return source, token, self._calibrated((source, look.kind), self._said(source, look, token))

    def _said(self, source: int, look: Look, token: int) -> float:
        prior = self.prior(source, look.kind)
        return look.probs[token] if prior is None else prior

    def _calibrated(self, key: Hashable, said: float) -> float:
        known = self.calibrations.get(key)
        return known(said) if known is not None else said

    def judge(self, place: Place, wanted: int) -> None:
        """Learn which id was written at a place."""
        for source, look in [] if self.mixed else place.looks:
            token = max(look.probs, key=look.probs.__getitem__)
            self._learn((source, look.kind), self._said(source, look, token), token == wanted)
        if place.learns is None:
            return
        if self.mixed:
            mixer, features, key, said = place.learns
            self._learn(key, said, place.token == wanted)
            mixer.learn(features, wanted)
            return
        stack, found = place.learns
        for token, features in found.items():
            stack.learn(features, token == wanted)

    def _learn(self, key: Hashable, said: float, right: bool) -> None:
        self.calibrations.setdefault(key, Calibration()).learn((said, float(right)))
