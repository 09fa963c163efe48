"""Probabilities of single tokens under logits on the host, without a whole softmax being made."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Row = NDArray[Any]  # [V], of float32 or float64
Share = Callable[[Row, int], float]

MOST = 88.0  # e to the power of more does not fit into float32, and what is less probable than its inverse is never looked at

_compiled: Share | None = None  # for float32 rows that lie in one piece


def use_compiled(compiled: Share) -> None:
    """Have compiled code do it from now on, in a fifth of the time."""
    global _compiled
    _compiled = compiled


def share(row: Row, token: int) -> float:
    """The probability of `token` under logits [V]: 1 / Σ exp(logit − its own)."""
    if _compiled is not None and row.dtype == np.float32 and row.flags.c_contiguous:
        return _compiled(row, token)
    own = row[token]
    return 1.0 / float(np.exp(np.minimum(row - own, MOST)).sum(dtype=np.float64)) if own > -np.inf else 0.0

