"""Memory of a process that answers for days: when Python collects, and from how many arenas glibc gives."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import sys

ARENAS = 2


def settle() -> None:
    """Collect what is no longer used, and have later collections leave out all that is there now.

    A full collection stops all threads while it goes through every object, half a million of the libraries and the vocabularies among
    them: a tenth of a second or more, in the middle of an answer. For processes that are ours, after each load of models.
    """
    gc.unfreeze()  # some of it may be unused by now
    gc.collect()
    gc.freeze()


def few_arenas() -> bool:
    """Have glibc serve all threads from `ARENAS` arenas, before there are more; whether it does.

    Otherwise each of a web server's threads fills one of its own, up to eight a core, and what is freed in one serves no other: the app's
    memory grew by a fifth over 4,500 browsers. What takes long here allocates little, so threads hardly wait for each other.
    """
    if sys.platform != "linux":
        return False
    with contextlib.suppress(OSError, AttributeError):  # another C library
        return bool(ctypes.CDLL(None).mallopt(-8, ARENAS))  # M_ARENA_MAX
    return False
