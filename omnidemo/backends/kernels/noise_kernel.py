"""Shared Gumbel noise: `noise` and `gumbel_max` of `decoding/row_ops.py` compiled, and the noise of an
answer's positions."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from omnidemo.backends.call_layout import NoiseBlocks
from omnidemo.backends.kernels.rows_kernel import BLOCK, compiled, highest
from omnidemo.vocabulary.trie_table import CHILD, SIBLING, TARGET, TOKEN

Row = NDArray[np.uint32]
LANES = 64  # as in `row_ops`
LOW, HALF = np.uint64(0xFFFFFFFF), np.uint64(32)
FIRST, SECOND = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)  # Philox' multipliers and the steps of its keys
KEY_ONE, KEY_TWO = np.uint64(0x9E3779B9), np.uint64(0xBB67AE85)
SPREAD = np.uint64(6364136223846793005)
WHOLE = 4294967296.0  # 2³²
SLACK = 1.0 + 1e-5  # of comparisons in float32; what passes is compared again in float64


@njit(cache=True, inline="always")
def mixed(a: Any, b: Any, c: Any, d: Any, one: Any, two: Any) -> Any:
    """One round of Philox."""
    first, second = a * FIRST, c * SECOND
    return (second >> HALF) ^ b ^ one, second & LOW, (first >> HALF) ^ d ^ two, first & LOW


@compiled
def noise_block(seed: Any, position: Any, stream: Any, block: int, made: Row) -> None:
    """The numbers [BLOCK] of the tokens from block · BLOCK on."""
    for lane in range(LANES):
        a, b, c, d = (
            np.uint64(block * LANES + lane),
            np.uint64(position),
            np.uint64(stream) & LOW,
            np.uint64(stream) >> HALF,
        )
        one, two = np.uint64(seed) & LOW, np.uint64(seed) >> HALF
        for _ in range(10):
            a, b, c, d = mixed(a, b, c, d, one, two)
            one, two = (one + KEY_ONE) & LOW, (two + KEY_TWO) & LOW
        made[lane], made[LANES + lane] = np.uint32(a), np.uint32(b)
        made[2 * LANES + lane], made[3 * LANES + lane] = np.uint32(c), np.uint32(d)


@compiled
def noise(place: NDArray[np.uint64], made: Row) -> None:
    """`row_ops.noise` of (seed, position, stream), for whole blocks."""
    for block in range(len(made) // BLOCK):
        noise_block(place[0], place[1], place[2], block, made[block * BLOCK : (block + 1) * BLOCK])


@compiled
def gumbel_max(weights: NDArray[np.float32], numbers: Row) -> Any:
    """`row_ops.gumbel_max`."""
    found = highest(weights)
    if not weights[found] > 0.0:
        return found
    best = time_of(numbers[found], weights[found])
    for start in range(0, len(weights), BLOCK):
        end = min(len(weights), start + BLOCK)
        found, best = nearer(weights[start:end], numbers[start:end], start, found, best)
    return found


@compiled
def nearer(
    weights: NDArray[np.float32], numbers: Row, start: int, found: int, best: float
) -> tuple[int, float]:
    """(the best token, its −log u ÷ weight): the one so far, or a smaller one among `weights` from token
    `start` on."""
    bound, able = np.float32(best * (WHOLE * SLACK)), np.int32(0)
    for i in range(len(weights)):
        able |= np.int32(np.float32(~numbers[i]) <= bound * weights[i])
    if able:
        for i in range(len(weights)):
            if weights[i] > 0.0 and np.float32(~numbers[i]) <= bound * weights[i]:
                time = time_of(numbers[i], weights[i])
                if time < best or (time == best and start + i < found):
                    found, best = start + i, time
    return found, best


@compiled
def time_of(number: Any, weight: Any) -> Any:
    return -np.log((np.float64(number) + 0.5) / WHOLE) / np.float64(weight)


@compiled
def is_shared(noise: NoiseBlocks) -> bool:
    return len(noise.known) > 0


@compiled
def block_at(noise: NoiseBlocks, ahead: int, block: int) -> Any:
    """The numbers [BLOCK] of a block of tokens, `ahead` positions after the next token."""
    position = noise.place[1] + ahead
    place = position % len(noise.known)
    numbers = noise.rows[place, block * BLOCK : (block + 1) * BLOCK]
    if noise.known[place, block] != position:
        noise.known[place, block] = position
        noise_block(noise.place[0], position, np.uint64(0), block, numbers)
    return numbers


@compiled
def number_at(noise: NoiseBlocks, ahead: int, token: int) -> Any:
    """The number of a token, `ahead` positions after the next token."""
    return block_at(noise, ahead, token // BLOCK)[token % BLOCK]


@compiled
def race_own(weights: NDArray[np.float32], noise: NoiseBlocks, ahead: int) -> Any:
    """`gumbel_max` among the target's tokens, `ahead` positions after the next token."""
    found = highest(weights)
    if not weights[found] > 0.0:
        return found
    best = time_of(number_at(noise, ahead, found), weights[found])
    for start in range(0, len(weights), BLOCK):
        part = weights[start : min(len(weights), start + BLOCK)]
        if may_win(part, best):
            numbers = block_at(noise, ahead, start // BLOCK)[: len(part)]
            found, best = nearer(part, numbers, start, found, best)
    return found


@compiled
def may_win(weights: NDArray[np.float32], best: float) -> bool:
    """Whether any of these tokens could be below `best`, even with the luckiest noise."""
    most: Any = np.float32(0.0)
    for i in range(len(weights)):
        most = max(most, weights[i])
    return most > 0.0 and best * most >= 0.5 / (WHOLE * SLACK)


@compiled
def further(stream: Any, drafter_id: int) -> Any:
    """`randomness.stream_of` of a path with one more drafter id."""
    stream = np.uint64(stream) * SPREAD + np.uint64(drafter_id) + np.uint64(1)
    return stream if stream != np.uint64(0) else np.uint64(1)


@compiled
def race_at(probs: NDArray[np.float32], noise: NoiseBlocks, ahead: int, names: NDArray[np.int64]) -> Any:
    """The first token of the slot `ahead` positions after the next token, from its distribution [D]. `names`
    [D] are the target tokens that drafter tokens propose by themselves, −1 for none."""
    found = highest(probs)
    if not probs[found] > 0.0:
        return found
    numbers, own, best, nearest = (
        np.empty(BLOCK, np.uint32),
        np.empty(BLOCK, np.uint32),
        np.inf,
        found // BLOCK,
    )
    seed, position = noise.place[0], noise.place[1] + ahead
    # the most probable token's block comes first, and bounds the others
    for turn in range((len(probs) + BLOCK - 1) // BLOCK):
        block = nearest if turn == 0 else turn - 1 if turn <= nearest else turn
        start = block * BLOCK
        end = min(len(probs), start + BLOCK)
        if not may_win(probs[start:end], best):
            continue
        nameless = np.int32(0)
        for i in range(start, end):
            nameless |= np.int32((names[i] < 0) & (probs[i] > 0.0))
        if nameless:
            noise_block(seed, position, np.uint64(1), block, own)
        for i in range(start, end):
            named = names[i] >= 0 and probs[i] > 0.0
            numbers[i - start] = number_at(noise, ahead, names[i]) if named else own[i - start]
        if turn == 0:
            best = time_of(numbers[found - start], probs[found])
        found, best = nearer(probs[start:end], numbers[: end - start], start, found, best)
    return found


@compiled
def race_after(
    probs: NDArray[np.float32], noise: NoiseBlocks, ahead: int, stream: Any, node: int, limit: int,
    info: NDArray[np.int64],
    kin: NDArray[np.int64],
) -> Any:  # fmt: skip
    """A token of a walk, from its distribution [D], after a path with this stream and trie node. A token that
    completes a target token within the limit uses that target token's noise."""
    numbers = np.empty((len(probs) + BLOCK - 1) // BLOCK * BLOCK, np.uint32)
    for block in range(len(numbers) // BLOCK):
        noise_block(
            noise.place[0],
            noise.place[1] + ahead,
            stream,
            block,
            numbers[block * BLOCK : (block + 1) * BLOCK],
        )
    child = kin[node, CHILD]
    while child > 0:
        if info[child, 0] == 0 and info[child, 1] <= limit:
            numbers[kin[child, TOKEN]] = number_at(noise, ahead, kin[child, TARGET])
        child = kin[child, SIBLING]
    return gumbel_max(probs, numbers[: len(probs)])
