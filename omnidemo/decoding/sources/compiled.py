"""The compiled forms of functions of `decoding`, which take a fifth of the time or less."""

from __future__ import annotations

from typing import Any

# `backends/kernels/entry_points.py` once its machine code is loaded; its functions have the names of these
functions: Any = None
