"""Files of known phrases: contexts of one to four ids that a target has often written, with what followed
them."""

from __future__ import annotations

import logging
from pathlib import Path
from zipfile import BadZipFile

import numpy as np

from omnidemo.core.asset_files import ASSETS
from omnidemo.decoding.sources.continuations import Continuations
from omnidemo.decoding.sources.ngram_table import KEPT, LONGEST

log = logging.getLogger(__name__)
FOLDER = ASSETS / "phrases"
# of n contexts: [n, LONGEST], [n], [n, KEPT] and [n, KEPT]
ARRAYS = {"contexts": np.int32, "weights": np.uint16, "ids": np.int32, "counts": np.uint16}


def file_of(target: str, folder: Path = FOLDER) -> Path:
    """The file of a target by its whole name, which has a digest of its weights."""
    return folder / f"{target.rpartition('/')[2]}.npz"


def phrases_of(target: str) -> Continuations | None:
    """The phrases that ship for a target; None for none, and for a damaged file. It takes a fifth of a
    second."""
    path = file_of(target)
    if not target.startswith("gguf/") or not path.exists():
        return None
    try:
        with np.load(path) as arrays:
            contexts, weights, ids, counts = (arrays[name] for name in ARRAYS)
        if contexts.shape[1] != LONGEST or ids.shape[1] != KEPT:
            raise ValueError("other shapes")
    except (OSError, EOFError, ValueError, KeyError, BadZipFile) as error:
        log.warning("the known phrases in %s cannot be read (%s), so none are proposed", path.name, error)
        return None
    return Continuations.of(contexts, weights, ids, counts)
