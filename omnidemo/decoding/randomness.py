"""Where random numbers come from: the protocol `Randomness` and the seeded stream `Sampler`. Tests use one that takes every branch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from omnidemo.decoding.row_ops import add_up, place, place_by
from omnidemo.decoding.sampling import Probs, as_array, as_tensor, drawn_at, fetch, fetch_all, on_host


class Randomness(Protocol):
    """Every random choice of a generation. Tests replace it by one that branches on each choice."""

    def draw(self, law: Probs) -> int:
        """An index of `law` [V], which sums to one."""
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

    def draw(self, law: Probs) -> int:
        if not on_host(law):
            return self.draw_with_prob(law)[0]
        return place(as_array(law), self.uniform())

    def draw_with_prob(self, law: Probs) -> tuple[int, float]:
        """`draw` on a device: (index, its probability in float32) with a single wait, where `multinomial` alone has several."""
        return fetch(*drawn_at(as_tensor(law), self.uniform()))

    def accept(self, probability: float) -> bool:
        return probability >= 1.0 or bool(self.uniform() < probability)

    def first(self, attempt: Callable[[], int | None], attempts: int) -> int | None:
        for _ in range(attempts):
            token = attempt()
            if token is not None:
                return token
        return None


def draw_with_prob(rng: Randomness, law: Probs) -> tuple[int, float]:
    """(an index drawn from `law` [V], its probability)."""
    if isinstance(rng, Sampler) and not on_host(law):
        return rng.draw_with_prob(law)
    drawn = rng.draw(law)
    return drawn, float(as_array(law)[drawn] if on_host(law) else law[drawn])


BATCH = 32  # draws that a device is asked for at once; a residual rarely needs as many


class BatchedSampler:
    """Draws from one `law` [V], as often as needed. On the host it is added up once. On a device each draw would wait, so it is asked at
    once what all of a sampler's next numbers draw, whichever of them will be used for it. `beside` makes numbers [V] to be told with each
    draw, if there is a device to ask.
    """

    def __init__(self, rng: Randomness, law: Probs, beside: Callable[[], Tensor] | None = None) -> None:
        self.rng, self.law, self._beside = rng, law, beside
        self._row = as_array(law) if on_host(law) else None
        self._sums: NDArray[np.float64] | None = None
        self._foresees = self._row is None and isinstance(rng, Sampler)
        self._known: dict[float, tuple[int, float, float | None]] = {}

    def draw(self) -> tuple[int, float, float | None]:
        """(an index, its probability, the number beside it or None)."""
        row = self._row
        if row is not None and isinstance(self.rng, Sampler):
            if self._sums is None:
                self._sums = add_up(row)
            drawn = place_by(row, self._sums, self.rng.uniform())
            return drawn, float(row[drawn]), None
        if not self._foresees or not isinstance(self.rng, Sampler):
            drawn = self.rng.draw(self.law)
            return drawn, float(self.law[drawn] if row is None else row[drawn]), None
        number = self.rng.uniform()
        if number not in self._known:
            self._ask([number, *self.rng.peek(BATCH - 1).tolist()])
        return self._known[number]

    def passes_over(self, probability: float) -> bool:
        """Whether `accept` would refuse by the next number, known before; the number is used up then. False where it is not known."""
        if not isinstance(self.rng, Sampler) or self.rng.peek(1)[0] < probability:
            return False
        self.rng.uniform()
        return True

    def _ask(self, numbers: list[float]) -> None:
        law = as_tensor(self.law)
        drawn, p = drawn_at(law, torch.tensor(numbers, dtype=torch.float64).to(law.device, non_blocking=True))
        if self._beside is None:
            ids, shares = fetch_all(drawn, p)
            self._known = dict(zip(numbers, zip(ids, shares, [None] * len(ids), strict=True), strict=True))
        else:
            self._known = dict(zip(numbers, zip(*fetch_all(drawn, p, self._beside()[drawn]), strict=True), strict=True))
