"""The files of rows that a training reads."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

SHARD_TOKENS = 1 << 20


def shard_path(folder: Path, length: int, index: int) -> Path:
    return folder / f"{length}-{index:05d}.npy"


def row_at(folder: Path, length: int, index: int) -> NDArray[np.uint16]:
    """One row by its number. FileNotFoundError where its shard is not there."""
    each = SHARD_TOKENS // length
    row: NDArray[np.uint16] = np.load(shard_path(folder, length, index // each), mmap_mode="r")[index % each]
    return row
