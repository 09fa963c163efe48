"""`decoding/row_ops.py` in compiled code."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

# Vectors need sums in any order. Infinities and NaN keep their meaning.
FAST = {"reassoc", "contract", "arcp", "nsz"}
BLOCK = 256  # tokens of one running sum
# `error_model="numpy"`: a division that may raise an error would keep a loop from becoming one over vectors
compiled: Any = njit(cache=True, fastmath=FAST, error_model="numpy")
# numba compiles a function again for a literal argument; `int64(0)` is no literal
int64: Any = np.int64


@njit(cache=True, fastmath=FAST, error_model="numpy", inline="always")
def exponential(x: Any) -> Any:
    """eˣ with a relative error of 2e-7 for −87 ≤ x ≤ 88; beyond these ends the value at the end. Only
    operations that vectors have, so it is ten times as fast as the library's: 2ⁿ · eʳ with n = ⌊x / ln 2⌉,
    and Cephes' polynomial for eʳ."""
    x = min(max(x, np.float32(-87.0)), np.float32(88.0))
    n = np.floor(x * np.float32(1.44269504) + np.float32(0.5))
    # ln 2 in two parts, the first one exact in n steps
    r = x - n * np.float32(0.693359375) + n * np.float32(2.12194440e-4)
    y = np.float32(1.9875691500e-4)
    y = y * r + np.float32(1.3981999507e-3)
    y = y * r + np.float32(8.3334519073e-3)
    y = y * r + np.float32(4.1665795894e-2)
    y = y * r + np.float32(1.6666665459e-1)
    y = y * r + np.float32(5.0000001201e-1)
    return (y * r * r + r + np.float32(1.0)) * np.int32((np.int32(n) + np.int32(127)) << np.int32(23)).view(
        np.float32
    )


@compiled
def append(where: Any, at: int, what: Any) -> int:
    """Write numbers from `at` on; returns the place after them."""
    for i in range(len(what)):
        where[at + i] = what[i]
    return at + len(what)


@compiled
def token_prob(row: NDArray[np.float32], token: int) -> Any:
    """The probability of `token` under logits [V]: 1 / Σ exp(logit − its own)."""
    own, total = row[token], np.float32(0.0)
    if own == -np.inf:
        return 0.0
    for i in range(len(row)):
        total += exponential(row[i] - own)
    return 1.0 / total


@compiled
def block_sums(probs: NDArray[np.float32], sums: NDArray[np.float64]) -> None:
    """The running sums [V / BLOCK] at the end of each block."""
    whole: Any = 0.0
    full = len(probs) // BLOCK  # a loop of constant length is several times as fast
    for block in range(full):
        total = np.float32(0.0)
        for i in range(BLOCK):
            total += probs[block * BLOCK + i]
        whole += total
        sums[block] = whole
    if full < len(sums):
        total = np.float32(0.0)
        for i in range(full * BLOCK, len(probs)):
            total += probs[i]
        sums[full] = whole + total


@compiled
def inverse_cdf_by(probs: NDArray[np.float32], sums: NDArray[np.float64], uniform: float) -> Any:
    """`row_ops.inverse_cdf_by`."""
    last = len(sums) - 1
    aim, drawn, block = uniform * sums[last], 0, 0
    while last > 0 and sums[last - 1] == sums[last]:
        last -= 1  # an empty block
    while block < last and aim >= sums[block]:
        block += 1
    aim -= sums[block - 1] if block > 0 else 0.0
    for i in range(block * BLOCK, min(len(probs), (block + 1) * BLOCK)):
        if probs[i] > 0.0:
            drawn = i  # rounding may leave no sum above the aim: then the last token
            aim -= probs[i]
            if aim < 0.0:
                break
    return drawn


@compiled
def highest(row: NDArray[np.float32]) -> Any:
    """The index of the highest number, the lowest index among equals."""
    bits, wanted, where = row.view(np.int32), np.float32(top(row)).view(np.int32), 0
    while where + BLOCK <= len(row):
        there = np.int32(0)
        for i in range(where, where + BLOCK):
            there |= np.int32(bits[i] == wanted)
        if there:
            break
        where += BLOCK
    while where + 1 < len(row) and bits[where] != wanted:
        where += 1
    return where


@compiled
def top(row: NDArray[np.float32]) -> Any:
    """The highest number."""
    # comparisons of integers become a loop over vectors
    bits, high = row.view(np.int32), np.int32(-(1 << 31))
    for i in range(len(row)):
        high = max(high, ordered(bits[i]))
    return np.int32(ordered(high)).view(np.float32)


@njit(cache=True, inline="always")
def ordered(bits: Any) -> Any:
    """The bits of a float32 as an integer with the same order; applied twice, the bits again."""
    return bits ^ ((bits >> np.int32(31)) & np.int32(0x7FFFFFFF))


@compiled
def mass(row: NDArray[np.float32], top: float, factor: float) -> Any:
    """Σ exp((x − top) · factor) over a row [V]. Terms below e⁻⁸⁷ count as 0."""
    total = np.float32(0.0)
    for i in range(len(row)):
        away = (row[i] - top) * factor
        total += exponential(away) if away > np.float32(-87.0) else np.float32(0.0)
    return total


@compiled
def softmax_given(
    row: NDArray[np.float32], top: float, factor: float, mass: float, probs: NDArray[np.float32]
) -> None:
    """`probs` [V] = exp((x − top) · factor) / mass of logits x. Terms below e⁻⁸⁷ / mass count as 0."""
    high, by, scale = np.float32(top), np.float32(factor), np.float32(1.0 / mass)
    for i in range(len(row)):
        away = (row[i] - high) * by
        probs[i] = exponential(away) * scale if away > np.float32(-87.0) else np.float32(0.0)


@compiled
def softmax_(probs: NDArray[np.float32], temperature: float) -> None:
    """Replace logits [V], of which one is above −∞, by their softmax at a temperature."""
    high, factor, whole = top(probs), np.float32(1.0 / temperature), np.float32(0.0)
    for i in range(len(probs)):
        away = (probs[i] - high) * factor
        probs[i] = exponential(away) if away > np.float32(-87.0) else np.float32(0.0)
        whole += probs[i]
    factor = np.float32(1.0) / whole
    for i in range(len(probs)):
        probs[i] *= factor


@compiled
def write_stats(row: NDArray[np.float32], stats: NDArray[np.float32]) -> None:
    """Write the `RowStats` [4] of logits [V]: argmax, max, Σexp, and Σexp with the factor that stands in the
    last place."""
    best, factor = highest(row), stats[3]
    stats[0], stats[1] = best, row[best]
    stats[2] = mass(row, row[best], np.float32(1.0))
    stats[3] = stats[2] if factor == np.float32(1.0) else mass(row, row[best], factor)
