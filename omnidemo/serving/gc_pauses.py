"""Shorter pauses by garbage collection, and freed memory for the system."""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache


def settle() -> None:
    """Collect garbage, then freeze the remaining objects, so that later collections skip them. Called after
    models were loaded or dropped.

    A full collection stops all threads while it visits every object. Libraries and vocabularies have half a
    million, which takes a tenth of a second or more in the middle of an answer.
    """
    gc.unfreeze()  # frozen objects may be unused by now
    gc.collect()
    gc.freeze()


@contextmanager
def off() -> Iterator[None]:
    """No garbage collection within, for imports: their objects stay, and collections take a sixth of the
    time."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def give_back() -> None:
    """Return memory that glibc keeps after it was freed (`malloc_trim`), in a few milliseconds; without glibc
    nothing happens.

    glibc gives threads separate arenas. Threads come and go with the answers, and tens of megabytes would
    stay in each arena that no thread uses any more.
    """
    trim = _malloc_trim()
    if trim is not None:
        trim(0)


@cache
def _malloc_trim() -> Callable[[int], int] | None:
    try:
        found: Callable[[int], int] = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):  # not of glibc
        return None
    return found
