"""Garbage collection and memory, looked after between two answers instead of during one."""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Callable
from functools import cache


def settle() -> None:
    """Collect what is no longer used, and have later collections leave out all that is there now.

    A full collection stops all threads while it goes through every object, half a million of the libraries and the vocabularies among
    them: a tenth of a second or more, in the middle of an answer. Only for the app's own process, after each load of models.
    """
    gc.unfreeze()  # some of it may be unused by now
    gc.collect()
    gc.freeze()


def give_back() -> None:
    """Have the C library return to the system what it keeps for later; a few milliseconds, without effect where it cannot.

    Threads come and go with the answers, each is served from one of several pieces of memory, and what has been freed in a piece that no
    thread uses any more would stay there: tens of megabytes in each.
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
