"""The compiled forms of functions of `decoding`, which take a fifth of the time or less."""

from __future__ import annotations

from typing import Any

import numpy as np

# `backends/kernels/entry_points.py` once its machine code is loaded; its functions have the names of these
functions: Any = None


def call(function: Any, *given: Any) -> int:
    """Call the compiled function; without one, the plain function with views of the arrays, which Python
    reads in a third of the time."""
    if functions is not None:
        return int(getattr(functions, function.__name__)(*given))
    return int(function(*map(_viewed, given)))


def _viewed(given: Any) -> Any:
    if isinstance(given, tuple):
        return tuple(map(_viewed, given))
    return given.data if isinstance(given, np.ndarray) else given
