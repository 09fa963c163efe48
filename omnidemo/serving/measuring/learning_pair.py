"""A pair that learns while it is measured."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from transformers.utils import logging

from omnidemo.core import private_folders
from omnidemo.core.config import Settings
from omnidemo.core.records import Generation
from omnidemo.learning.lines.trainer_pool import TrainerPool
from omnidemo.pair.pair import Pair
from omnidemo.serving.pair_loading import attach_storage, open_store
from omnidemo.storage.request_rows import RequestRecord
from omnidemo.storage.store import Store
from omnidemo.storage.tables import utc


@dataclass(frozen=True, slots=True)
class LearningPair:
    """A pair with its lines and its store; `settings` are those by which it learns."""

    pair: Pair
    settings: Settings
    lines: TrainerPool
    store: Store

    def record(
        self, prompt: str, made: Generation, options: Mapping[str, Any], created: str | None = None,
        remembered: bool = False,
    ) -> None:  # fmt: skip
        """Put an answer into the history. `created`: UTC ISO; None: now."""
        pair = self.pair
        self.store.record_request(RequestRecord(
            session="adapt", target=pair.target.name, drafter=pair.drafter.name, domain=made.domain,
            method=made.method, prompt=prompt if self.settings.keep_text else None, generation=made,
            settings=options, created_at=created or utc(), kind="traffic", cache_entries=len(pair.ngrams),
            cache_bytes=pair.ngrams.nbytes, remembered=remembered,
        ))  # fmt: skip

    def update(self, domain: str, answers: int) -> None:
        """Run a due update of a line. RuntimeError where it failed, after so many answers."""
        if self.lines.run_pending(domain) and (error := self.lines.status(domain).error):
            raise RuntimeError(f"after {answers} answers the drafter could not be trained: {error}")


@contextmanager
def learning(pair: Pair, settings: Settings, keep: bool = False, **changed: Any) -> Iterator[LearningPair]:
    """Let the pair learn within the block, with `changed` settings and without the test whether training
    pays. keep: in the settings' storage (ValueError where another process uses it); else in a temporary
    folder."""
    logging.disable_progress_bar()  # of the trainer, which loads the drafter within the measurement
    with ExitStack() as stack:
        if not keep:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="omnidemo-"))
            changed |= {"storage": Path(folder), "database_url": ""}
        settings = settings.model_copy(update=changed)
        private_folders.hold(settings.storage)
        stack.callback(private_folders.let_go, settings.storage)
        store = open_store(settings)
        stack.callback(store.close)
        lines = attach_storage(pair, settings, store)
        stack.callback(lines.close)
        yield LearningPair(pair, settings, lines, store)
