"""What Python's garbage collector does between two answers instead of in one."""

from __future__ import annotations

import gc


def settle() -> None:
    """Collect what is no longer used, and have later collections leave out all that is there now.

    A full collection stops all threads while it goes through every object, half a million of the libraries and the vocabularies among
    them: a tenth of a second or more, in the middle of an answer. For processes that are ours, after each load of models.
    """
    gc.unfreeze()  # some of it may be unused by now
    gc.collect()
    gc.freeze()
