"""How processes end: those that serve or measure by a signal, and their children with them."""

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

# seconds in which a second signal counts as the first one: `make` passes on a signal of its whole group
TOGETHER = 0.5
_first: tuple[int, float] | None = None  # the signal that asked this process to end, and when


def end_by_signal() -> None:
    """From now on Ctrl-C and SIGTERM end this process in order: KeyboardInterrupt or SystemExit in the main
    thread, status 130 or 143. A second signal ends it at once. Call this before torch is imported."""
    if signal.getsignal(signal.SIGTERM) is _asked_to_end:
        return
    atexit.register(_leave)
    # A shell starts background jobs with Ctrl-C ignored.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _asked_to_end)
    sys.excepthook = _unhandled


@contextlib.contextmanager
def signals_kept() -> Iterator[None]:
    """Within the block a library may take Ctrl-C and SIGTERM. Afterwards the earlier handlers are back."""
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
    """Processes that begin within the block ignore the terminal's Ctrl-C: their parent ends them."""
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
    """Ctrl-C before any command runs, such as during imports."""
    if issubclass(kind, KeyboardInterrupt):
        sys.stderr.write("\nStopped.\n")
    else:
        sys.__excepthook__(kind, error, trace)


def _leave() -> None:
    """The last exit handler. Python would now end threads within torch's code, which aborts the process."""
    if _first is not None:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
        os._exit(128 + _first[0])


def end_with_parent(parent: int) -> None:
    """End with the parent. The end of standard input would not reach a paused process, so Linux kills it. A
    `parent` that died before is checked for, because Linux reports only later deaths."""
    if sys.platform == "linux":
        import ctypes

        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(1, int(signal.SIGKILL), 0, 0, 0)  # PR_SET_PDEATHSIG
        if os.getppid() != parent:
            os._exit(1)
