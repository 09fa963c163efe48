"""The arithmetic `int8` in numpy. Compiled products have the same bits on every processor.

The activations of a row are quantized for each 32 columns: the scale d is the largest of them divided by the
largest code, 127, and each becomes the whole number a nearest to x / d. Sums of code · a are exact.
The rest is float32, one operation after the other, block by block:

    part  = Σ over the scales of the block: Σ(code · a) · scale, + minimum · Σa where there are minima
    total = total + part · d

So a row has the same bits whatever other rows the pass has.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from omnidemo.backends.packed_forms import COLUMNS, LAYOUTS, PackedMatrix

Array = NDArray[np.float32]
TOP = 127  # the largest code of an activation
LEAST = 2.0**-100  # blocks with a smaller largest activation are zeros: top / it must be finite


class Quantized(NamedTuple):
    """Rows of activations: whole numbers [rows, blocks, 32], and scales [rows, blocks]."""

    quants: NDArray[Any]
    scales: Array


def quantize(x: Array) -> Quantized:
    """Quantize rows [rows, k] of whole blocks. A block with a number that is not
    finite gets a scale of NaN, and so do its products."""
    blocks, top = x.reshape(len(x), -1, COLUMNS), np.float32(TOP)
    most = np.abs(blocks).max(-1, initial=0)
    finite, there = np.isfinite(most), np.isfinite(most) & (most >= LEAST)
    factors = np.divide(top, most, out=np.zeros_like(most), where=there)
    with np.errstate(invalid="ignore", over="ignore"):
        quants = np.where(there[..., None], np.rint(blocks * factors[..., None]), 0).astype(np.int8)
    scales = np.where(there, most / top, np.where(finite, 0, np.nan)).astype(np.float32)
    return Quantized(quants, scales)


def multiply(matrix: PackedMatrix, x: Array) -> Array:
    """x [rows, k] · Wᵀ [rows, n]."""
    layout, quantized, given = LAYOUTS[matrix.form], matrix.quantized(), quantize(x)
    scales, minima = quantized.numbers
    each = COLUMNS // layout.scales
    # float32 holds the products and sums of quants exactly
    weights = quantized.quants.reshape(matrix.rows, -1, each).astype(np.float32)
    quants = given.quants.reshape(len(x), -1, each).astype(np.float32)
    out = np.zeros((len(x), matrix.rows), np.float32)
    with np.errstate(all="ignore"):
        for block in range(matrix.columns // COLUMNS):
            part: Array | None = None
            for at in range(block * layout.scales, (block + 1) * layout.scales):
                more = quants[:, at] @ weights[:, at].T * scales[:, at]
                part = more if part is None else part + more
                if minima is not None:
                    sums = quants[:, at].sum(-1, keepdims=True)
                    part = part + sums * minima[:, at]
            assert part is not None
            out += part * given.scales[:, block, None]
    return out
