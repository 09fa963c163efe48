"""The logits processors (repetition penalty, top-k, top-p, min-p) on one row: compiled
`SamplingParams.probs`.

Nothing is sorted. One comparison drops the tokens that cannot stay; bisection finds the cut-off among the
rest, usually some dozens.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from omnidemo.backends.call_layout import Array, Marks, Numbers, Sampling, Whole
from omnidemo.backends.kernels import examples
from omnidemo.backends.kernels.outlined import outlined
from omnidemo.backends.kernels.rows_kernel import compiled, exponential, mass, ordered, softmax_, top

GROUP = 256  # tokens that are compared together
FARTHEST = np.float32(87.0)  # logits further below the highest have probability 0
# distance below the highest logit in which top-k is searched first, and the factor of the next distances
STEP, WIDER = np.float32(4.0), np.float32(1.5)
# added to a distance because of rounding: in exponents, and as a share of logits
MARGIN, ROUNDING = 1e-3, np.float32(1e-6)


@compiled
def plain(sampling: Sampling) -> Any:
    """Whether the draw is from a softmax alone, or at temperature 0 the argmax alone."""
    unfiltered = sampling.top_k == 0 and sampling.top_p == 1.0 and sampling.min_p == 0.0
    return sampling.penalty == 1.0 and (sampling.temperature == 0.0 or unfiltered)


@compiled
def mark(seen: Marks, token: int) -> None:
    """Count a token as seen. Without a penalty nothing happens."""
    if len(seen.there) and not seen.there[token]:
        seen.there[token] = True
        seen.ids[0] += 1
        seen.ids[seen.ids[0]] = token


@compiled
def mark_all(seen: Marks, tokens: Any) -> None:
    """Count tokens as seen."""
    for token in tokens:
        mark(seen, np.int64(token))


@compiled
def unmark(seen: Marks, count: int) -> None:
    """Keep only the first `count` tokens as seen."""
    for place in range(count, seen.ids[0]):
        seen.there[seen.ids[1 + place]] = False
    seen.ids[0] = count


@compiled
def cut(probs: Array, high: Any, factor: Any, top_k: int, top_p: float, min_p: float) -> None:
    """Replace logits [V], whose maximum is `high`, by their softmax at temperature 1 / `factor` after top-k
    (0: off), top-p and min-p."""
    whole, reach = 0.0, FARTHEST / factor
    if top_k > 0:
        farthest, reach = reach, min(reach, STEP)
        while reach < farthest and within(probs, high - reach) < top_k:
            reach = min(farthest, reach * WIDER)
    elif top_p < 1.0:
        # Everything beyond this distance has less than 1 − top-p of the mass.
        whole = np.float64(mass(probs, high, factor))
        reach = (
            np.float32(min(np.float64(FARTHEST), np.log(len(probs) / ((1.0 - top_p) * whole)) + MARGIN))
            / factor
        )
    if min_p > 0.0 and top_k == 0:
        reach = min(reach, np.float32(MARGIN - np.log(min_p)) / factor)
    least = high - reach - abs(high) * ROUNDING
    count = within(probs, least)
    ids, keys, weights = np.empty(count, np.int64), np.empty(count, np.int32), np.empty(count)
    gather(probs, least, ids, keys)
    for i in range(len(probs)):
        probs[i] = np.float32(0.0)
    if top_k > 0:
        if count > top_k:
            for i in range(count):
                weights[i] = 1.0
            count = keep(ids[:count], keys[:count], weights[:count], np.float64(top_k))
        whole = 0.0
    for i in range(count):
        away = (np.int32(ordered(keys[i])).view(np.float32) - high) * factor
        share = np.float32(exponential(away))
        weights[i], keys[i] = share, share.view(np.int32)
        whole += weights[i] if top_k > 0 else 0.0
    if top_p < 1.0:
        count = keep(ids[:count], keys[:count], weights[:count], top_p * whole)
    total = 0.0
    for i in range(count):
        weights[i] = weights[i] if weights[i] >= min_p else 0.0
        total += weights[i]
    for i in range(count):
        probs[ids[i]] = np.float32(weights[i] / total)


@compiled
def within(row: Array, least: Any) -> Any:
    """How many numbers are at least `least`."""
    count = np.int32(0)
    for i in range(len(row)):
        count += np.int32(row[i] >= least)
    return np.int64(count)


@compiled
def gather(row: Array, least: Any, ids: Whole, keys: NDArray[np.int32]) -> None:
    """The indices of the numbers that are at least `least`, in order, and their bits as sortable integers
    (`ordered`)."""
    bits, count = row.view(np.int32), 0
    for start in range(0, len(row), GROUP):
        end, there = min(len(row), start + GROUP), np.int32(0)
        for i in range(start, end):
            there |= np.int32(row[i] >= least)
        if there:
            for i in range(start, end):
                if row[i] >= least:
                    ids[count], keys[count] = i, ordered(bits[i])
                    count += 1


@compiled
def keep(ids: Whole, keys: NDArray[np.int32], weights: Numbers, need: float) -> Any:
    """Keep the tokens with the highest keys: each stays while the weights before it add up to less than
    `need`; the first stays always. Ties at the cut-off keep the lowest ids. They move to the front, in order;
    returns their number."""
    low, high = np.int64(keys[0]), np.int64(keys[0])
    for i in range(len(keys)):
        low, high = min(low, np.int64(keys[i])), max(high, np.int64(keys[i]))
    while low < high:  # the highest key from which on the weights reach `need`, else the lowest key
        middle = (low + high + 1) >> 1
        if above(keys, weights, middle) >= need:
            low = middle
        else:
            high = middle - 1
    before, kept = above(keys, weights, low + 1), 0
    for i in range(len(keys)):
        equal = keys[i] == low
        if keys[i] > low or (equal and (before < need or kept == 0)):
            before += weights[i] if equal else 0.0
            ids[kept], keys[kept], weights[kept] = ids[i], keys[i], weights[i]
            kept += 1
    return kept


@compiled
def above(keys: NDArray[np.int32], weights: Numbers, least: int) -> Any:
    """Σ of the weights whose keys are at least `least`."""
    total = 0.0
    for i in range(len(keys)):
        total += weights[i] if keys[i] >= least else 0.0
    return total


@compiled
def distribution(probs: Array, sampling: Sampling, seen: Marks) -> bool:
    """Replace logits [V] by the distribution that is drawn from; at temperature 0 by the logits after the
    penalty. False where logits are not finite; then all become NaN."""
    temperature, by = sampling.temperature, np.float32(sampling.penalty)
    for place in range(1, 1 + seen.ids[0]):
        logit = probs[seen.ids[place]]
        probs[seen.ids[place]] = logit / by if logit > np.float32(0.0) else logit * by
    high = top(probs)
    if not -np.inf < high < np.inf:
        for i in range(len(probs)):
            probs[i] = np.nan
        return False
    limited = 0 < sampling.top_k < len(probs)
    if temperature > 0.0 and (limited or sampling.top_p < 1.0 or sampling.min_p > 0.0):
        cut(
            probs,
            high,
            np.float32(1.0 / temperature),
            sampling.top_k if limited else 0,
            sampling.top_p,
            sampling.min_p,
        )
    elif temperature > 0.0:
        softmax_(probs, temperature)
    return True


filtered = outlined(distribution, examples.WEIGHT[0], examples.SAMPLING, examples.SEEN)
