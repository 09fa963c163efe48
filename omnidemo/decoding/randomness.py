"""Random numbers: the protocol `Randomness`, the stream `Sampler` (without a seed), and `SharedNoise` (a
seed's Gumbel noise). Tests use one that takes every branch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from omnidemo.decoding.row_ops import Noise, block_sums, gumbel_max, inverse_cdf, inverse_cdf_by, noise
from omnidemo.decoding.sampling import Probs


class Place(NamedTuple):
    """Where in an answer a token is drawn: after `position` ids of the answer.

    A drafter's token is drawn at the position of the target token that it proposes, after a `path` of drafter
    ids in its slot; None for the target's own token. `known`: drafter ids, and the target id that each
    proposes there.
    """

    position: int
    path: tuple[int, ...] | None = None
    known: tuple[NDArray[np.int64], NDArray[np.int64]] | None = None


class Randomness(Protocol):
    """Makes every random choice of a generation. Tests replace it by one that takes every branch."""

    @property
    def shared(self) -> bool:
        """Whether the target draws its own token at every position, whatever was drafted. Then a draft token
        is accepted if it is that token, and nothing else is drawn for it."""
        ...

    def draw(self, probs: Probs, place: Place | None = None) -> int:
        """Draw an index from `probs` [V]. `place`: given for every token of the text, and every drafter
        token."""
        ...

    def accept(self, probability: float) -> bool: ...

    def first(self, attempt: Callable[[], int | None], attempts: int) -> int | None:
        """Call `attempt` until it returns a token; None after `attempts` calls without one."""
        ...


NUMBERS = 256


class Sampler:
    """A stream of uniform numbers. Acceptance by p / q has the best agreement of drafter and target, but the
    text depends on everything drawn before."""

    shared = False

    def __init__(self, seed: int | Sequence[int] | None = None) -> None:
        self._host = np.random.default_rng(seed)
        self._numbers = np.empty(0)  # made many at once, in a fraction of the time
        self._at = 0  # the first unused number
        self._gone = 0  # used numbers that are not kept

    @property
    def position(self) -> int:
        """Numbers used so far."""
        return self._gone + self._at

    def uniform(self) -> float:
        """The next number from [0, 1)."""
        if self._at == len(self._numbers):
            self._provide()
        self._at += 1
        return float(self._numbers[self._at - 1])

    def peek(self, count: int) -> NDArray[np.float64]:
        """What the next `count` calls of `uniform` will return; read-only."""
        while self._at + count > len(self._numbers):
            self._provide()
        return self._numbers[self._at : self._at + count]

    def advance(self, count: int) -> None:
        """Skip `count` numbers that `peek` has returned."""
        self._at += count

    def _provide(self) -> None:
        self._gone += self._at
        self._numbers, self._at = np.concatenate([self._numbers[self._at :], self._host.random(NUMBERS)]), 0

    def draw(self, probs: Probs, place: Place | None = None) -> int:
        return inverse_cdf(probs, self.uniform())

    def accept(self, probability: float) -> bool:
        return probability >= 1.0 or bool(self.uniform() < probability)

    def first(self, attempt: Callable[[], int | None], attempts: int) -> int | None:
        for _ in range(attempts):
            token = attempt()
            if token is not None:
                return token
        return None


class SharedNoise:
    """Gumbel-max sampling with noise that target and drafter share, one number for each (seed, position,
    target token). The text is a function of the seed and the target's distributions; no draft changes it
    (Daliri, Musco and Suresh, "Coupling without Communication and Drafter-Invariant Speculative Decoding",
    2408.07978).

    A drafter token that proposes no single target token has a number of its own, by the path before it.
    """

    shared = True

    def __init__(self, seed: int, tokens: int) -> None:
        self.seed, self.tokens = seed, tokens  # `tokens`: the target's, [T]
        self._rows: dict[int, Noise] = {}  # by position; the newest few

    def draw(self, probs: Probs, place: Place | None = None) -> int:
        assert place is not None, "every draw of a text belongs to a place"
        return gumbel_max(probs, self.numbers(probs, place))

    def numbers(self, probs: NDArray[np.floating], place: Place) -> Noise:
        """The noise [V] for a draw from a distribution [V] at a place."""
        if place.path is None:
            return self._row(place.position)[: len(probs)]
        ids, targets = place.known if place.known is not None else NOTHING
        own = probs > 0.0
        own[ids] = False
        # with one vocabulary every token proposes a target token
        path = stream_of(place.path)
        found = (
            noise(self.seed, place.position, path, len(probs))
            if own.any()
            else np.zeros(len(probs), np.uint32)
        )
        found[ids] = self._row(place.position)[targets]
        return found

    def accept(self, probability: float) -> bool:
        raise AssertionError("a proposal is accepted where it is what the target draws")

    def first(self, attempt: Callable[[], int | None], attempts: int) -> int | None:
        raise AssertionError("nothing is corrected: the target has drawn its own token")

    def _row(self, position: int) -> Noise:
        if position not in self._rows:
            while len(self._rows) >= ROWS:
                self._rows.pop(next(iter(self._rows)))
            self._rows[position] = noise(self.seed, position, 0, self.tokens)
        return self._rows[position]


ROWS = 40  # positions whose numbers are kept: a draft's
NOTHING = np.empty(0, np.int64), np.empty(0, np.int64)


def stream_of(path: Sequence[int]) -> int:
    """The stream of a path of drafter ids, 1 to 2⁶⁴ − 1; the target's own is 0."""
    stream = 1
    for drafter_id in path:
        stream = (stream * 6364136223846793005 + drafter_id + 1) % 2**64
    return stream or 1


def randomness_of(seed: int | None, coupled: bool, tokens: int, begun: int = 0) -> Randomness:
    """The random numbers of an answer that has `begun` ids already. A coupled method with a seed gets
    `SharedNoise`. All others get a stream, a new one for each part of an answer: block verification and lossy
    methods need draws of their own."""
    if seed is None or not coupled:
        return Sampler(seed if seed is None or not begun else (seed, begun))
    return SharedNoise(seed, tokens)


def draw_with_prob(rng: Randomness, probs: Probs, place: Place | None = None) -> tuple[int, float]:
    """(an index drawn from `probs` [V], its probability)."""
    drawn = rng.draw(probs, place)
    return drawn, float(probs[drawn])


class RowSampler:
    """Repeated draws from one distribution `probs` [V]; computes the running sums once."""

    def __init__(self, rng: Randomness, probs: Probs) -> None:
        self.rng, self.probs = rng, probs
        self._sampler = rng if isinstance(rng, Sampler) else None
        self._sums: NDArray[np.float64] | None = None

    def draw(self) -> tuple[int, float]:
        """(an index, its probability)."""
        if self._sampler is None:
            drawn = self.rng.draw(self.probs)
        else:
            if self._sums is None:
                self._sums = block_sums(self.probs)
            drawn = inverse_cdf_by(self.probs, self._sums, self._sampler.uniform())
        return drawn, float(self.probs[drawn])

    def passes_over(self, probability: float) -> bool:
        """Whether `accept` would refuse by the next number, which is used up then. False where the number is
        not known."""
        if self._sampler is None or self._sampler.peek(1)[0] < probability:
            return False
        self._sampler.uniform()
        return True
