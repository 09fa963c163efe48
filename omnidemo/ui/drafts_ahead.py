"""An answer written by a thread of its own, so that a draft can be shown while the target checks it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from contextvars import copy_context
from queue import SimpleQueue

from omnidemo.core.records import Part

OnDraft = Callable[[list[str]], object]


def with_drafts(begin: Callable[[OnDraft], Iterator[Part]]) -> Iterator[Part | list[str]]:
    """The parts of the answer that `begin` starts, and before each round the texts of its draft. Where the
    caller stops iterating, the thread closes the answer at its next part."""
    found = SimpleQueue[Part | list[str] | BaseException | None]()
    left = threading.Event()
    answer = begin(found.put)  # here, so that a refusal is raised before the thread starts

    def write() -> None:
        try:
            with closing(answer):  # type: ignore[type-var]
                for part in answer:
                    found.put(part)
                    if left.is_set():
                        return
            found.put(None)
        except BaseException as error:  # raised again where the parts are read
            found.put(error)

    threading.Thread(target=copy_context().run, args=(write,), name="answer", daemon=True).start()
    try:
        while (item := found.get()) is not None:
            if isinstance(item, BaseException):
                raise item
            yield item
    finally:
        left.set()
