"""`load_pair`, the entry to the public API."""

from __future__ import annotations

import atexit
import os
from pathlib import Path
from typing import Literal

from omnidemo.core import private_folders
from omnidemo.core.config import Arithmetic, Settings, changed
from omnidemo.learning.lines.learned_file import read_learned
from omnidemo.models.adapters.adapter_state import BaseWeights, merged_weights
from omnidemo.models.adapters.peft_zip import import_peft
from omnidemo.pair.conversation_pool import DOMAIN
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
    backend: Literal["auto", "reference"] | None = None,
    progress: StageReport = lambda stage, fraction, detail: None,
    arithmetic: Arithmetic | None = None,
    learned: str | Path | None = None,
) -> Pair:
    """Load a target and a drafter: bundled names, Hub ids, local folders or GGUF files. A target may also be
    the address of an `omnidemo serve`, which then checks drafts made here; its key is the setting `api_keys`.
    Missing arguments come from `settings`, by default those of the environment (`OMNIDEMO_*`).

    storage: a folder for n-gram cache, adapters and history. The pair then learns from its answers by the
    setting `training`, one adapter line per domain (an option of `generate`). None: all stays in memory, and
    only the n-gram cache learns.
    backend: "reference" is plain torch, one pass at a time, by which "auto", the fastest, is checked.
    progress: called with a stage, the fraction of the whole (0 to 1), and a detail.
    arithmetic: of packed weights on a CPU: "float32", or "int8" activations.
    learned: a file of `omnidemo learn`, by which the pair drafts; with a storage it becomes the newest
    version of the default line there.
    Raises ModelError (a ValueError), one sentence; ValueError for an unknown backend, and where another
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
        if learned is not None:
            _draft_by(pair, Path(learned))
    else:
        settings = settings.model_copy(update={"storage": storage})
        store = open_store(settings)
        lines = attach_storage(pair, settings, store)
        if learned is not None:
            lines.adopt(DOMAIN, Path(learned))
        if is_address(settings.target):
            pair.learners.clear()  # they need the target's distributions, which are not sent
        if settings.training == "inline":
            pair.learners.append(lambda trace: lines.run_pending(trace.domain))
        atexit.register(store.close)
    return pair


def _draft_by(pair: Pair, file: Path) -> None:
    """Let a pair without storage draft by a file."""
    found, folder = read_learned(file, pair), pair.drafter.folder
    pair.publish(1, merged_weights(BaseWeights(folder), import_peft(file, folder)))
    if found is not None:
        pair.know(DOMAIN, found.ngrams, found.answers)
