"""What the arithmetic `int8` is, in numpy: compiled products have the same bits, whatever the processor.

The activations of a row are quantized for each 32 columns: their scale d is a 127th of the largest, and each
becomes the whole number a next to x / d. Sums of code · a are exact. What follows is float32, one operation
after the other, block by block:

    part  = Σ over the scales of the block: Σ(code · a) · scale, + minimum · Σa where there are minima
    total = total + part · d

So a row has the same bits in any company.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from omnidemo.backends.packed_forms import COLUMNS, LAYOUTS, PackedMatrix

Array = NDArray[np.float32]
TOP = 127  # the largest code of an activation
LEAST = 2.0**-100  # blocks whose largest activation is below count as zeros: 127 / it must be a number


class Quantized(NamedTuple):
    """Rows of activations: whole numbers [rows, blocks, 32], and scales [rows, blocks]."""

    codes: NDArray[np.int8]
    scales: Array


def quantize(x: Array) -> Quantized:
    """Rows [rows, k] of whole blocks. Where one of a block is not finite, its scale is no number, and so will
    be what comes of it."""
    blocks = x.reshape(len(x), -1, COLUMNS)
    most = np.abs(blocks).max(-1, initial=0)
    finite, there = np.isfinite(most), np.isfinite(most) & (most >= LEAST)
    factors = np.divide(np.float32(TOP), most, out=np.zeros_like(most), where=there)
    with np.errstate(invalid="ignore", over="ignore"):
        codes = np.where(there[..., None], np.rint(blocks * factors[..., None]), 0).astype(np.int8)
    scales = np.where(there, most / np.float32(TOP), np.where(finite, 0, np.nan)).astype(np.float32)
    return Quantized(codes, scales)


def multiply(matrix: PackedMatrix, x: Array) -> Array:
    """x [rows, k] · Wᵀ [rows, n]."""
    layout, coded, given = LAYOUTS[matrix.form], matrix.coded(), quantize(x)
    scales, minima = coded.numbers
    size = COLUMNS // layout.scales
    weights = coded.codes.reshape(matrix.rows, -1, size).astype(np.float32)
    codes = given.codes.reshape(len(x), -1, size).astype(np.float32)  # whose products and sums are exact
    out = np.zeros((len(x), matrix.rows), np.float32)
    with np.errstate(all="ignore"):
        for block in range(matrix.columns // COLUMNS):
            part: Array | None = None
            for at in range(block * layout.scales, (block + 1) * layout.scales):
                more = codes[:, at] @ weights[:, at].T * scales[:, at]
                part = more if part is None else part + more
                if minima is not None:
                    part = part + codes[:, at].sum(-1, keepdims=True) * minima[:, at]
            assert part is not None
            out += part * given.scales[:, block, None]
    return out
