"""What every process that this one starts has in common."""

from __future__ import annotations

import contextlib
import os
import signal
import sys


def end_with_parent(parent: int) -> None:
    """The end of standard input says that the parent is gone, but a paused process would not notice; Linux
    can kill it all the same. A `parent` that was killed while this process began is looked for, since Linux
    tells only of what happens from now on."""
    if sys.platform == "linux":
        import ctypes

        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(1, int(signal.SIGKILL), 0, 0, 0)  # PR_SET_PDEATHSIG
        if os.getppid() != parent:
            os._exit(1)
