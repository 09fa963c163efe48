"""How processes end: the one that serves or measures by a signal, and those that it starts with it."""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

# Seconds in which a second signal is the first one's: `make` passes on what its whole group has been sent.
TOGETHER = 0.5
_first: tuple[int, float] | None = None  # the signal that asked this process to end, and when


def end_by_signal() -> None:
    """From now on Ctrl-C and SIGTERM end this process in order: KeyboardInterrupt or SystemExit in the main
    thread, status 130 or 143. A second signal ends it at once. To be called before torch is imported."""
    if signal.getsignal(signal.SIGTERM) is _asked_to_end:
        return
    atexit.register(_leave)
    # A shell starts background jobs with Ctrl-C ignored.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _asked_to_end)
    sys.excepthook = _unhandled


@contextlib.contextmanager
def signals_kept() -> Iterator[None]:
    """A library may take Ctrl-C and SIGTERM within the block. After it the handlers of before are back."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, heard in before.items():
            signal.signal(number, heard)


@contextlib.contextmanager
def deaf_to_ctrl_c() -> Iterator[None]:
    """Processes that begin within the block do not hear the terminal's Ctrl-C: whoever began them ends
    them."""
    with signals_kept():
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        yield


def _asked_to_end(number: int, _: object) -> None:
    global _first
    if _first is not None:
        if time.monotonic() - _first[1] > TOGETHER:
            os._exit(128 + number)
        return
    _first = number, time.monotonic()
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    sys.exit(128 + number)


def _unhandled(kind: type[BaseException], error: BaseException, trace: Any) -> None:
    """Ctrl-C before any command runs, as while modules are imported."""
    if issubclass(kind, KeyboardInterrupt):
        sys.stderr.write("\nStopped.\n")
    else:
        sys.__excepthook__(kind, error, trace)


def _leave() -> None:
    """The last of all exit handlers. Python would end threads within torch's code now, which aborts the
    process."""
    if _first is not None:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
        os._exit(128 + _first[0])


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
