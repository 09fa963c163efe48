"""A pair that learns while it is measured."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from omnidemo.core import private_folders
from omnidemo.core.config import Settings
from omnidemo.learning.lines.trainer_pool import TrainerPool
from omnidemo.pair.pair import Pair
from omnidemo.serving.pair_loading import attach_storage, open_store
from omnidemo.storage.store import Store


@contextmanager
def learning(
    pair: Pair, settings: Settings, keep: bool = False, **changed: Any
) -> Iterator[tuple[Settings, Store, TrainerPool]]:
    """Let the pair learn within the block, with `changed` settings and without the test whether training
    pays. keep: in the settings' storage (ValueError where another process uses it); else in a temporary
    folder."""
    with ExitStack() as stack:
        if not keep:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="omnidemo-"))
            changed |= {"storage": Path(folder), "database_url": ""}
        settings = settings.model_copy(update={"cost_aware": False, **changed})
        private_folders.hold(settings.storage)
        stack.callback(private_folders.let_go, settings.storage)
        store = open_store(settings)
        stack.callback(store.close)
        lines = attach_storage(pair, settings, store)
        stack.callback(lines.close)
        yield settings, store, lines
