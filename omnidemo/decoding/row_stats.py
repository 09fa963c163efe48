"""What a pass can tell of its logits besides: of each row the most probable token, and what its probabilities are divided by."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from omnidemo.decoding.row_ops import soften

BEST, TOP, MASS, WARM = range(4)


@dataclass(slots=True)
class RowStats:
    """`rows` [R, V] of logits x, with `numbers` [R, 4] of each: the lowest index of the highest, that x̂ itself, Σ exp(x − x̂), and
    Σ exp((x − x̂) / heat), which is anything at temperature 0."""

    rows: NDArray[np.float32]
    numbers: NDArray[np.float32]  # which holds indices below 2²⁴ exactly
    heat: float

    def best(self) -> list[int]:
        """The most probable token of each row."""
        return [int(number) for number in self.numbers[:, BEST].tolist()]

    def shares(self, tokens: Sequence[int], first: int = 0) -> list[float]:
        """The probability of one token for each row from `first` on, before temperature."""
        return self._shares(tokens, first, 1.0, MASS)

    def chances(self, tokens: Sequence[int]) -> list[float]:
        """The same at the temperature."""
        return self._shares(tokens, 0, 1.0 / self.heat, WARM)

    def law(self, row: int) -> NDArray[np.float32]:
        """The softmax [V] of a row at the temperature."""
        top, warm = self.numbers[row, TOP], self.numbers[row, WARM]
        return soften(self.rows[row], float(top), 1.0 / self.heat, float(warm))

    def _shares(self, tokens: Sequence[int], first: int, factor: float, mass: int) -> list[float]:
        rows, known = self.rows, self.numbers.tolist()
        away = [float(rows[row, token]) - known[row][TOP] for row, token in enumerate(tokens, first)]
        return [math.exp(less * factor) / known[row][mass] for row, less in enumerate(away, first)]
