"""Getting the compiled passes without keeping anybody waiting."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
from pathlib import Path
from types import ModuleType

PATIENCE = 120  # seconds that compiling may take

_log = logging.getLogger(__name__)
_ready: ModuleType | None = None
_lock = threading.Lock()
_thread: threading.Thread | None = None


def kernels() -> ModuleType | None:
    """The module of compiled functions, or None as long as it is not ready."""
    return _ready


def prepare() -> None:
    """Have the functions ready as soon as may be: a process of its own compiles them, which takes seconds the first time on a machine.
    Until then, and where it fails, passes are made without them."""
    global _thread
    with _lock:
        if _thread is None:
            _thread = threading.Thread(target=_prepare, name="compile", daemon=True)
            _thread.start()


def wait(seconds: float = PATIENCE) -> bool:
    """`prepare`, and wait until the functions are ready or have failed; whether they are ready."""
    prepare()
    assert _thread is not None
    _thread.join(seconds)
    return _ready is not None


def _prepare() -> None:
    global _ready
    command = [sys.executable, "-m", "omnidemo.runtime.kernels"]
    path = os.pathsep.join(filter(None, [str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH")]))  # it may not be installed
    low = _step_back if os.name == "posix" else None
    try:
        subprocess.run(
            command, check=True, capture_output=True, timeout=PATIENCE, env={**os.environ, "PYTHONPATH": path}, preexec_fn=low
        )
        from omnidemo.core.shares import use_compiled
        from omnidemo.runtime import kernels, shares

        kernels.compile_all()
        use_compiled(shares.share)
    except Exception as error:  # no numba, no folder for its machine code, a processor that it does not know
        said = (getattr(error, "stderr", None) or str(error).encode()).decode(errors="replace").strip()
        _log.warning("passes go on without compiled code, slower: %s", said.splitlines()[-1] if said else type(error).__name__)
        return
    _ready = kernels


def _step_back() -> None:
    os.nice(10)
