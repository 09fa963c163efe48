"""Short pauses by garbage collection, and freed memory that goes back to the system."""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache


def settle() -> None:
    """Collect garbage, then freeze all objects that are left, so that later collections skip them.

    A full collection stops all threads while it visits every object, half a million of the libraries' and
    vocabularies' among them: a tenth of a second or more, in the middle of an answer. Called by the process
    that holds the models, when it has loaded or dropped some.
    """
    gc.unfreeze()  # some of it may be unused by now
    gc.collect()
    gc.freeze()


@contextmanager
def off() -> Iterator[None]:
    """No collection within. What libraries make when they are imported stays, and looking through it again
    and again takes a sixth of the time."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def give_back() -> None:
    """Return freed memory that the C library keeps to the system (`malloc_trim`): a few milliseconds; no
    effect without glibc.

    glibc gives threads separate arenas. Threads come and go with the answers, and memory freed in an arena
    that no thread uses any more would stay there: tens of megabytes in each.
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
