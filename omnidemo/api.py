"""`load_pair`: the public API's way in."""

from __future__ import annotations

import atexit
import os
from pathlib import Path
from typing import Literal

from omnidemo.core import private_folders
from omnidemo.core.config import Arithmetic, Settings, changed
from omnidemo.pair.pair import Pair
from omnidemo.pair.remote.target_link import is_address
from omnidemo.serving.pair_loading import (
    StageReport,
    attach_storage,
    build_linked_pair,
    build_pair,
    open_store,
)


def load_pair(
    target: str | None = None,
    drafter: str | None = None,
    device: str | None = None,
    dtype: str | None = None,
    storage: str | Path | None = None,
    settings: Settings | None = None,
    backend: Literal["auto", "reference", "cpu", "cuda"] | None = None,
    progress: StageReport = lambda stage, fraction, detail: None,
    arithmetic: Arithmetic | None = None,
) -> Pair:
    """Load a target and a drafter: bundled names, Hub ids or local folders. What is not given is taken from
    `settings`, and without them from the environment (`OMNIDEMO_*`) or its default. A target may be the
    address of an `omnidemo serve`, which then checks what is drafted here; `api_keys` is its key.

    storage: a folder in which the n-gram cache, the adapters and the training history are kept; the pair then
    learns from what it generates, as `training` says, one adapter line per domain (an option of `generate`).
    None: everything stays in memory, and nothing is learned but the n-gram cache. backend: what makes the
    rounds: "reference" is plain torch, one pass at a time, by which the others are checked; "cpu" and "cuda"
    are refused where they cannot serve the pair; "auto" takes what is there. progress: called with a stage,
    how much of the whole is done (0 to 1), and a detail. arithmetic: how a target on a CPU multiplies weights
    that its GGUF file packs, in "float32", or with activations of eight or 16 bits, "int8" or "int16". Raises
    ModelError (a ValueError), one sentence; ValueError for a backend that there is not, and where another
    process uses the storage folder.
    """
    given = {"target": target, "drafter": drafter, "device": device, "dtype": dtype, "backend": backend}
    given["arithmetic"] = arithmetic
    settings = changed(
        settings or Settings(),
        {name: value for name, value in given.items() if value is not None},
        list(given),
    )
    if storage is not None:
        storage = Path(os.path.expanduser(storage))
        private_folders.hold(storage)
    build = build_linked_pair if is_address(settings.target) else build_pair
    pair = build(settings.target, settings.drafter, settings, progress)
    if storage is None:
        pair.prices.keep_in(None)
    if storage is not None:
        settings = settings.model_copy(update={"storage": storage})
        store = open_store(settings)
        lines = attach_storage(pair, settings, store)
        if is_address(settings.target):
            pair.learners.clear()  # the target's distributions, which they learn from, stay there
        if settings.training == "inline":
            pair.learners.append(lambda trace: lines.run_pending(trace.domain))
        atexit.register(store.close)
    return pair
