"""Products of a few rows with weights in bfloat16."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numba.cpython.unsafe.tuple import tuple_setitem as _tuple_setitem
from numpy.typing import NDArray

from omnidemo.runtime.compiled.shares import compiled

Array = NDArray[np.float32]
Bits = NDArray[np.uint16]  # of bfloat16 numbers
tuple_setitem: Any = _tuple_setitem  # (tuple, place, number) → the tuple with that number; typed as if for interpreters
THREE, FOUR, FIVE = ((np.float32(0.0),) * size for size in (3, 4, 5))


@compiled
def multiply(weight: Bits, x: Array, out: Array) -> None:
    """out = x · Wᵀ: [m, k] · [n, k]ᵀ → [m, n], in strips of at most five rows of x."""
    row = 0
    for strips in range((len(x) + 4) // 5, 0, -1):
        size = (len(x) - row + strips - 1) // strips
        some, place = x[row : row + size], out[row : row + size]
        if size == 1:
            single(weight, some[0], place[0])
        elif size == 2:
            double(weight, some, place)
        elif size == 3:
            strip(weight, some, THREE, place)
        elif size == 4:
            strip(weight, some, FOUR, place)
        else:
            strip(weight, some, FIVE, place)
        row += size


@njit(cache=True, inline="always")
def widened(bits: Any) -> Any:
    """The float32 of which these are the upper half."""
    return np.uint32(np.uint32(bits) << np.uint32(16)).view(np.float32)


@compiled
def single(weight: Bits, x: Array, out: Array) -> None:
    """out [n] = x [k] · Wᵀ, four rows of the weight at a time."""
    n, k = weight.shape
    for o in range(0, n - n % 4, 4):
        a = b = c = d = np.float32(0.0)
        for i in range(k):
            value = x[i]
            a += widened(weight[o, i]) * value
            b += widened(weight[o + 1, i]) * value
            c += widened(weight[o + 2, i]) * value
            d += widened(weight[o + 3, i]) * value
        out[o], out[o + 1], out[o + 2], out[o + 3] = a, b, c, d
    for o in range(n - n % 4, n):
        a = np.float32(0.0)
        for i in range(k):
            a += widened(weight[o, i]) * x[i]
        out[o] = a


@compiled
def double(weight: Bits, x: Array, out: Array) -> None:
    """out [2, n] = x [2, k] · Wᵀ, four rows of the weight at a time."""
    n, k = weight.shape
    y, z = x[0], x[1]
    for o in range(0, n - n % 4, 4):
        a = b = c = d = e = f = g = h = np.float32(0.0)
        for i in range(k):
            p, q, r, s = widened(weight[o, i]), widened(weight[o + 1, i]), widened(weight[o + 2, i]), widened(weight[o + 3, i])
            a, b, c, d = a + p * y[i], b + q * y[i], c + r * y[i], d + s * y[i]
            e, f, g, h = e + p * z[i], f + q * z[i], g + r * z[i], h + s * z[i]
        out[0, o], out[0, o + 1], out[0, o + 2], out[0, o + 3] = a, b, c, d
        out[1, o], out[1, o + 1], out[1, o + 2], out[1, o + 3] = e, f, g, h
    for o in range(n - n % 4, n):
        single(weight[o : o + 1], y, out[0, o : o + 1])
        single(weight[o : o + 1], z, out[1, o : o + 1])


@compiled
def strip(weight: Bits, x: Array, zeros: Any, out: Array) -> None:
    """out [r, n] = x [r, k] · Wᵀ, with r `zeros`. The sums are tuples, for only what has a fixed length is kept in registers; longer
    ones than five are not."""
    n, k = weight.shape
    for o in range(0, n - n % 4, 4):
        a, b, c, d = zeros, zeros, zeros, zeros
        for i in range(k):
            e, f, g, h = widened(weight[o, i]), widened(weight[o + 1, i]), widened(weight[o + 2, i]), widened(weight[o + 3, i])
            for j in range(len(zeros)):
                value = x[j, i]
                a, b = tuple_setitem(a, j, a[j] + e * value), tuple_setitem(b, j, b[j] + f * value)
                c, d = tuple_setitem(c, j, c[j] + g * value), tuple_setitem(d, j, d[j] + h * value)
        for j in range(len(zeros)):
            out[j, o], out[j, o + 1], out[j, o + 2], out[j, o + 3] = a[j], b[j], c[j], d[j]
    for o in range(n - n % 4, n):
        for j in range(len(zeros)):
            total = np.float32(0.0)
            for i in range(k):
                total += widened(weight[o, i]) * x[j, i]
            out[j, o] = total
