"""Where random numbers come from: the protocol `Randomness` and the seeded stream `Sampler`. Tests use one that takes every branch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from omnidemo.decoding.row_ops import block_sums, inverse_cdf, inverse_cdf_by
from omnidemo.decoding.sampling import Probs, as_array, as_tensor, drawn_at, fetch, on_host


class Randomness(Protocol):
    """Every random choice of a generation. Tests replace it by one that branches on each choice."""

    def draw(self, probs: Probs) -> int:
        """An index of `probs` [V], which sums to one."""
        ...

    def accept(self, probability: float) -> bool: ...

    def first(self, attempt: Callable[[], int | None], attempts: int) -> int | None:
        """Call `attempt` until it returns a token; None when `attempts` independent calls returned none."""
        ...


NUMBERS = 256


class Sampler:
    """The `Randomness` of real runs: a stream of uniform numbers from a seed, so that a seed repeats a run. It lives on the host."""

    def __init__(self, seed: int | None = None) -> None:
        self._host = np.random.default_rng(seed)
        self._numbers = np.empty(0)  # made together, which takes a fraction of the time
        self._at = 0  # from here on they are not used yet
        self._gone = 0  # numbers that were used and are not kept any more

    @property
    def position(self) -> int:
        """How many numbers were used."""
        return self._gone + self._at

    def uniform(self) -> float:
        """The next number from [0, 1)."""
        if self._at == len(self._numbers):
            self._provide()
        self._at += 1
        return float(self._numbers[self._at - 1])

    def peek(self, count: int) -> NDArray[np.float64]:
        """What the next `count` calls of `uniform` will return. Not to be written to."""
        while self._at + count > len(self._numbers):
            self._provide()
        return self._numbers[self._at : self._at + count]

    def advance(self, count: int) -> None:
        """Count the next `count` numbers as used, which `peek` has returned."""
        self._at += count

    def _provide(self) -> None:
        self._gone += self._at
        self._numbers, self._at = np.concatenate([self._numbers[self._at :], self._host.random(NUMBERS)]), 0

    def draw(self, probs: Probs) -> int:
        return inverse_cdf(as_array(probs), self.uniform()) if on_host(probs) else draw_with_prob(self, probs)[0]

    def accept(self, probability: float) -> bool:
        return probability >= 1.0 or bool(self.uniform() < probability)

    def first(self, attempt: Callable[[], int | None], attempts: int) -> int | None:
        for _ in range(attempts):
            token = attempt()
            if token is not None:
                return token
        return None


def draw_with_prob(rng: Randomness, probs: Probs) -> tuple[int, float]:
    """(an index drawn from `probs` [V], its probability)."""
    if isinstance(rng, Sampler) and not on_host(probs):  # one wait for the device; torch's `multinomial` would take several
        (drawn,), (probability,) = fetch(*drawn_at(as_tensor(probs), rng.uniform()))
        return drawn, probability
    drawn = rng.draw(probs)
    return drawn, float(as_array(probs)[drawn] if on_host(probs) else probs[drawn])


BATCH = 32  # draws that are fetched from a device together; a residual rarely needs as many


class BatchedSampler:
    """Repeated draws from one distribution `probs` [V]. On the host its running sums are computed once. On a device every draw would
    synchronise, so the results for the sampler's next BATCH uniform numbers are fetched together, whichever of them will be used.
    `beside` computes numbers [V] of which the drawn token's is fetched along; it is called on a device only.
    """

    def __init__(self, rng: Randomness, probs: Probs, beside: Callable[[], Tensor] | None = None) -> None:
        self.rng, self.probs, self._beside = rng, probs, beside
        self._sampler = rng if isinstance(rng, Sampler) else None
        self._row = as_array(probs) if on_host(probs) else None
        self._sums: NDArray[np.float64] | None = None
        self._known: dict[float, tuple[int, float, float | None]] = {}

    def draw(self) -> tuple[int, float, float | None]:
        """(an index, its probability, the number beside it or None)."""
        row, sampler = self._row, self._sampler
        if sampler is None:
            drawn = self.rng.draw(self.probs)
            return drawn, float(self.probs[drawn] if row is None else row[drawn]), None
        number = sampler.uniform()
        if row is not None:
            if self._sums is None:
                self._sums = block_sums(row)
            drawn = inverse_cdf_by(row, self._sums, number)
            return drawn, float(row[drawn]), None
        if number not in self._known:
            self._fetch_batch([number, *sampler.peek(BATCH - 1).tolist()])
        return self._known[number]

    def passes_over(self, probability: float) -> bool:
        """Whether `accept` would refuse by the next number, known before; the number is used up then. False where it is not known."""
        if self._sampler is None or self._sampler.peek(1)[0] < probability:
            return False
        self._sampler.uniform()
        return True

    def _fetch_batch(self, numbers: list[float]) -> None:
        probs = as_tensor(self.probs)
        drawn, p = drawn_at(probs, torch.tensor(numbers, dtype=torch.float64).to(probs.device, non_blocking=True))
        if self._beside is None:
            ids, p_drawn = fetch(drawn, p)
            self._known = dict(zip(numbers, zip(ids, p_drawn, [None] * len(ids), strict=True), strict=True))
        else:
            self._known = dict(zip(numbers, zip(*fetch(drawn, p, self._beside()[drawn]), strict=True), strict=True))
