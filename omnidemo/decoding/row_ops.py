"""Operations on one row [V] on the host: probabilities, two ways to draw (inverse CDF, Gumbel-max), row
statistics. Contiguous float32 rows use compiled code where it is ready."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from omnidemo.decoding.sources import compiled

Row = NDArray[Any]  # [V], of float32 or float64

# largest exponent of e in float32
MOST = 88.0
ROUNDING = 1e-6  # a smaller difference of 1 and a sum of probabilities may be rounding
BLOCK = 256  # tokens of one running sum


def token_prob(row: Row, token: int) -> float:
    """The probability of `token` under logits [V]: 1 / Σ exp(logit − its own)."""
    if compiled.functions is not None and row.dtype == np.float32 and row.flags.c_contiguous:
        return compiled.functions.token_prob(row, token)
    own = row[token]
    return 1.0 / float(np.exp(np.minimum(row - own, MOST)).sum(dtype=np.float64)) if own > -np.inf else 0.0


def inverse_cdf(probs: Row, uniform: float) -> int:
    """Inverse-CDF sampling: the first token at which the running sum of a distribution [V] exceeds `uniform`
    in [0, 1) times its total; never one of probability 0."""
    return inverse_cdf_by(probs, block_sums(probs), uniform)


def block_sums(probs: Row) -> NDArray[np.float64]:
    """The running sums of a distribution [V] at the end of each block of BLOCK tokens, for
    `inverse_cdf_by`."""
    if compiled.functions is not None and probs.dtype == np.float32 and probs.flags.c_contiguous:
        sums = np.empty((len(probs) + BLOCK - 1) // BLOCK)
        compiled.functions.block_sums(probs, sums)
        return sums
    found: NDArray[np.float64] = np.add.reduceat(
        probs, np.arange(0, len(probs), BLOCK), dtype=np.float64
    ).cumsum()
    return found


def inverse_cdf_by(probs: Row, sums: NDArray[np.float64], uniform: float) -> int:
    """`inverse_cdf` with known `block_sums`, for several draws from one distribution."""
    if compiled.functions is not None and probs.dtype == np.float32 and probs.flags.c_contiguous:
        return compiled.functions.inverse_cdf_by(probs, sums, uniform)
    # torch's `multinomial` takes fifteen times as long on a CPU, running sums of all tokens three times.
    aim = uniform * sums[-1]
    block = _first_above(sums, aim)
    inside = probs[block * BLOCK : (block + 1) * BLOCK].cumsum(dtype=np.float64)
    return block * BLOCK + _first_above(inside, aim - sums[block - 1] if block else aim)


def softmax_given(row: Row, top: float, factor: float, mass: float) -> Row:
    """The softmax exp((x − top) · factor) / mass of logits x [V], with known maximum and sum of
    exponentials."""
    if compiled.functions is not None and row.dtype == np.float32 and row.flags.c_contiguous:
        probs = np.empty_like(row)
        compiled.functions.softmax_given(row, top, factor, mass, probs)
        return probs
    found: Row = np.exp((row - np.float32(top)) * np.float32(factor)) / np.float32(mass)
    return found


def softmax_(row: Row, temperature: float) -> Row:
    """The softmax of logits [V] at a temperature, in place."""
    if compiled.functions is not None and row.dtype == np.float32 and row.flags.c_contiguous:
        compiled.functions.softmax_(row, temperature)
        return row
    row -= row.max()
    np.exp(np.divide(row, row.dtype.type(temperature), out=row), out=row)
    row /= row.sum(dtype=np.float64)
    return row


def _first_above(sums: NDArray[np.float64], aim: float) -> int:
    """The first index at which running sums exceed `aim`; where rounding leaves none, the last at which they
    rise. Either has a probability above 0."""
    return min(int(sums.searchsorted(aim, side="right")), int(sums.searchsorted(sums[-1])))


Noise = NDArray[np.uint32]  # [V]: n of each token, which stands for u = (n + ½) / 2³² in (0, 1)
LANES = 64  # counters whose four words are BLOCK tokens in a row


def noise(seed: int, position: int, stream: int, count: int) -> Noise:
    """The noise of the first `count` tokens, by Philox4x32-10 (Salmon et al. 2011), which makes four words
    from a counter and a key. The key is the `seed` below 2⁶⁴; the counter is a number within the row, the
    `position` below 2³² and the `stream` below 2⁶⁴. So any number can be computed without those before it.
    """
    blocks = -(-count // BLOCK)
    if compiled.functions is not None:
        made = np.empty(blocks * BLOCK, np.uint32)
        compiled.functions.noise(np.array([seed, position, stream], np.uint64), made)
        return made[:count]
    low, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    words = np.empty((4, blocks * LANES), np.uint64)
    words[0] = np.arange(blocks * LANES)
    words[1], words[2], words[3] = position, stream & 0xFFFFFFFF, stream >> 32
    for step in range(10):
        first, second = words[0] * np.uint64(0xD2511F53), words[2] * np.uint64(0xCD9E8D57)
        keys = ((seed + step * 0x9E3779B9) & 0xFFFFFFFF, ((seed >> 32) + step * 0xBB67AE85) & 0xFFFFFFFF)
        words[0], words[1] = (second >> half) ^ words[1] ^ np.uint64(keys[0]), second & low
        words[2], words[3] = (first >> half) ^ words[3] ^ np.uint64(keys[1]), first & low
    return words.reshape(4, blocks, LANES).transpose(1, 0, 2).astype(np.uint32).reshape(-1)[:count]


def gumbel_max(weights: Row, numbers: Noise) -> int:
    """Gumbel-max sampling: the token with the least −log u ÷ weight, which is the argmax of log weight + g. A
    draw in proportion to the weights [V]; weight 0 never wins.

    The logarithm is computed only where 1 − u is below the least value so far times the weight. That is
    exact, because −log u ≥ 1 − u.
    """
    if compiled.functions is not None and weights.dtype == np.float32 and weights.flags.c_contiguous:
        return int(compiled.functions.gumbel_max(weights, numbers))
    first = int(weights.argmax())
    if not weights[first] > 0.0:
        return first  # NaN, which the caller notices
    best = -np.log((float(numbers[first]) + 0.5) / 2**32) / float(weights[first])
    left = (2**32 - 0.5 - numbers) / 2**32
    able = ((left <= best * (1 + 1e-9) * weights.astype(np.float64)) & (weights > 0.0)).nonzero()[0]
    times = -np.log((numbers[able] + 0.5) / 2**32) / weights[able].astype(np.float64)
    return int(able[times.argmin()])


def rest_of(mass: float) -> float:
    """1 − mass, or 0 where the difference may be rounding, as where filters have left nothing else."""
    return 1.0 - mass if mass < 1.0 - ROUNDING else 0.0


BEST, TOP, MASS, TEMPERED = range(4)


@dataclass(slots=True)
class RowStats:
    """`rows` [R, V] of logits x, with four `numbers` [R, 4] each: the lowest index of the maximum x̂, x̂, Σ
    exp(x − x̂), and Σ exp((x − x̂) / temperature), which is meaningless at temperature 0."""

    rows: NDArray[np.float32]
    numbers: NDArray[np.float32]  # which holds indices below 2²⁴ exactly
    temperature: float

    def best(self) -> list[int]:
        """The most probable token of each row."""
        return [int(number) for number in self.numbers[:, BEST].tolist()]

    def token_probs(self, tokens: Sequence[int], first: int = 0) -> list[float]:
        """The probability of one token in each row from `first` on, before temperature."""
        return self._probs(tokens, first, 1.0, MASS)

    def tempered_probs(self, tokens: Sequence[int]) -> list[float]:
        """`token_probs` at the temperature."""
        return self._probs(tokens, 0, 1.0 / self.temperature, TEMPERED)

    def probs(self, row: int) -> NDArray[np.float32]:
        """The softmax [V] of a row at the temperature."""
        top, tempered = self.numbers[row, TOP], self.numbers[row, TEMPERED]
        return softmax_given(self.rows[row], float(top), 1.0 / self.temperature, float(tempered))

    def _probs(self, tokens: Sequence[int], first: int, factor: float, mass: int) -> list[float]:
        rows, known = self.rows, self.numbers.tolist()
        away = [float(rows[row, token]) - known[row][TOP] for row, token in enumerate(tokens, first)]
        return [math.exp(less * factor) / known[row][mass] for row, less in enumerate(away, first)]


def stats_of(rows: NDArray[np.float32], temperature: float) -> RowStats:
    """The `RowStats` of rows [R, V] that no pass has written, such as masked ones."""
    best = rows.argmax(-1)
    numbers = np.ones((len(rows), 4), np.float32)
    numbers[:, BEST], numbers[:, TOP] = best, np.take_along_axis(rows, best[:, None], -1)[:, 0]
    if temperature > 0.0:  # else the arg-max decides
        for row, token, found in zip(rows, best.tolist(), numbers, strict=True):
            found[MASS] = 1.0 / token_prob(row, token)
            found[TEMPERED] = 1.0 / token_prob(row * np.float32(1.0 / temperature), token)
    return RowStats(rows, numbers, temperature)
