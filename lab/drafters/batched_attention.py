"""Attention of one new token in each of many contexts, over as many positions as each has: torch would pad
all to the longest."""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from omnidemo.backends.compile_kernels import use_processor


def _attend(
    queries: NDArray[np.float32], keys: NDArray[np.uint16], values: NDArray[np.uint16],
    slots: NDArray[np.int64],
    lengths: NDArray[np.int64], out: NDArray[np.float32],
) -> None:  # fmt: skip
    """`out` [rows, heads, D] for scaled `queries` of that shape. Row r looks at the first `lengths[r]`
    positions of `slots[r]` in `keys` and `values` [slots, Hkv, positions, D], which are the bits of
    bfloat16."""
    rows, heads, dim = queries.shape
    kv_heads = keys.shape[1]
    shares = heads // kv_heads
    for task in numba.prange(rows * kv_heads):
        row, kv_head = task // kv_heads, task % kv_heads
        slot, length, first = slots[row], lengths[row], kv_head * shares
        scores = np.empty((shares, length), np.float32)
        bits = np.empty(dim, np.uint32)
        numbers = bits.view(np.float32)
        for place in range(length):
            for d in range(dim):
                bits[d] = np.uint32(keys[slot, kv_head, place, d]) << np.uint32(16)
            for share in range(shares):
                total = np.float32(0)
                for d in range(dim):
                    total += numbers[d] * queries[row, first + share, d]
                scores[share, place] = total
        sums = np.zeros(shares, np.float32)
        for share in range(shares):
            highest = scores[share].max()
            for place in range(length):
                weight = np.float32(math.exp(scores[share, place] - highest))
                scores[share, place] = weight
                sums[share] += weight
        mixed = np.zeros((shares, dim), np.float32)
        for place in range(length):
            for d in range(dim):
                bits[d] = np.uint32(values[slot, kv_head, place, d]) << np.uint32(16)
            for share in range(shares):
                weight = scores[share, place]
                for d in range(dim):
                    mixed[share, d] += weight * numbers[d]
        for share in range(shares):
            for d in range(dim):
                out[row, first + share, d] = mixed[share, d] / sums[share]


use_processor()
attend: Any = numba.njit(parallel=True, fastmath=True, cache=True)(_attend)
