"""Compiles the kernels in another process and loads them when they are ready, so that no answer waits for a
compiler. Complete, undamaged machine code is loaded at once."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

from omnidemo.backends import processor
from omnidemo.core.resources import home
from omnidemo.decoding.sources import compiled, copy_chances, memory_chain, ngram_table, text_index
from omnidemo.vocabulary import trie_table

SUMS = "sums.json"  # beside the machine code: checksums of its files, and what it was compiled from and for
MADE = "made from"  # the entry for the latter
# The compiling process ends with this one: a killed app must not leave it behind.
START = """
from omnidemo.core.processes import end_with_parent
end_with_parent({parent})
from omnidemo.backends.kernels.entry_points import compile_all
compile_all()
"""
# seconds that compiling may take: at most one minute on an idle machine, many beside other processes
TIMEOUT_S = 1200
NICE = 10  # niceness of the compiling process

_log = logging.getLogger(__name__)
_ready: ModuleType | None = None
_failure = ""  # why there is no compiled code
_lock = threading.Lock()
_thread: threading.Thread | None = None
_waiting: list[Callable[[], None]] = []  # callbacks of `when_ready`


def kernels() -> ModuleType | None:
    """The module of compiled functions, or None while it is not ready."""
    return _ready


def kept() -> bool:
    """Whether this machine has the machine code, so that nothing has to be compiled."""
    try:
        return _complete(Path(_folder()), processor.told())
    except OSError:
        return False


def failure() -> str:
    """Why there is no compiled code, in a few words; empty where there is, and while compiling goes on."""
    return _failure


def prepare() -> None:
    """Begin to compile in another process. The first time on a machine this takes about three quarters of a
    minute. Until it is ready, and if it fails, passes run without compiled code."""
    global _thread
    with _lock:
        if _thread is None:
            _thread = threading.Thread(target=_prepare, name="compile", daemon=True)
            _thread.start()


def wait(seconds: float = TIMEOUT_S) -> bool:
    """`prepare`, and wait until the functions are ready or have failed; whether they are ready."""
    prepare()
    assert _thread is not None
    _thread.join(seconds)
    return _ready is not None


def when_ready(call: Callable[[], None]) -> None:
    """`prepare`, and call as soon as the functions are ready: at once if they are, never if they fail."""
    prepare()
    with _lock:
        if _ready is None:
            _waiting.append(call)
            return
    call()


def _prepare() -> None:
    global _ready, _failure
    command = [sys.executable, "-c", START.format(parent=os.getpid())]
    # the package may not be installed
    path = os.pathsep.join(filter(None, [str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH")]))
    low = partial(os.nice, NICE) if os.name == "posix" else None
    try:
        kept = _folder()
        features = processor.told()
        environment = {**os.environ, "PYTHONPATH": path, "NUMBA_CACHE_DIR": kept} | (
            {"NUMBA_CPU_FEATURES": features} if features else {}
        )
        options: Any = {
            "check": True,
            "capture_output": True,
            "timeout": TIMEOUT_S,
            "env": environment,
            "preexec_fn": low,
        }
        if not _complete(Path(kept), features):
            _drop_damaged(Path(kept))
            try:
                subprocess.run(command, **options)
            except subprocess.CalledProcessError:  # kept code may be damaged without a sum: try without it
                shutil.rmtree(kept, ignore_errors=True)
                Path(kept).mkdir(parents=True, exist_ok=True)
                subprocess.run(command, **options)
            _note_sums(Path(kept), features)
        from numba import config

        settings: Any = config
        settings.CACHE_DIR = kept
        use_processor()
        from omnidemo.backends.kernels import entry_points

        entry_points.compile_all()
        compiled.functions = entry_points
    except Exception as error:  # no numba, no folder for its machine code, an unknown processor
        said = (getattr(error, "stderr", None) or str(error).encode()).decode(errors="replace").strip()
        _failure = said.splitlines()[-1] if said else type(error).__name__
        _log.warning("passes go on without compiled code, slower: %s", _failure)
        return
    with _lock:
        _ready = entry_points
        calls = _waiting.copy()
        _waiting.clear()
    for call in calls:
        try:
            call()
        except Exception:
            _log.exception("what was to be done with compiled code failed; passes go on as they are")


def use_processor() -> None:
    """Let numba compile for this processor as `processor.told` says. numba reads this once in a process, so
    call it before anything is compiled: otherwise kept machine code does not fit and everything is compiled
    again."""
    from numba import config

    settings: Any = config
    settings.CPU_FEATURES = processor.told() or settings.CPU_FEATURES


def _sums(folder: Path) -> dict[str, str]:
    """The sums of all files of machine code (.nbc) and of numba's indexes of them (.nbi)."""
    files = sorted(folder.rglob("*.nb[ci]"))
    return {
        file.relative_to(folder).as_posix(): hashlib.sha256(file.read_bytes()).hexdigest() for file in files
    }


def _made_from(features: str | None) -> str:
    """Everything that numba checks before it uses kept code: its own version, the processor, size and date of
    the sources."""
    import numba
    from llvmlite import binding

    statuses = [source.stat() for source in _sources()]
    dates = [f"{status.st_size} {status.st_mtime_ns}" for status in statuses]
    given = [os.environ.get(name) for name in processor.GIVEN]
    return " ".join(
        map(str, [numba.__version__, sys.version, binding.get_host_cpu_name(), features, *given, *dates])
    )


def _noted(folder: Path) -> dict[str, str]:
    """The table that `_note_sums` wrote. OSError or ValueError where it cannot be read."""
    noted = json.loads((folder / SUMS).read_text())
    if not isinstance(noted, dict):
        raise ValueError("not a table of sums")
    return noted


def _complete(folder: Path, features: str | None) -> bool:
    """Whether the machine code is what a compiling process left at its end, for this processor and these
    sources. Then nothing is compiled, and loading takes half a second."""
    try:
        return _noted(folder) == _sums(folder) | {MADE: _made_from(features)}
    except (OSError, ValueError):
        return False


def _drop_damaged(folder: Path) -> None:
    """Remove machine code with a wrong checksum: it might crash, or compute something else. An index may have
    grown; numba notices where it cannot be read."""
    try:
        noted, found = _noted(folder), _sums(folder)
        if all(found.get(name) == known for name, known in noted.items() if name.endswith(".nbc")):
            return
    except FileNotFoundError:
        return
    except (OSError, ValueError):  # the notes are damaged themselves
        pass
    _log.warning("the machine code in %s is damaged and compiled again", folder)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)


def _note_sums(folder: Path, features: str | None) -> None:
    fresh = folder / f".new-{os.getpid()}"
    with suppress(OSError):
        fresh.write_text(json.dumps(_sums(folder) | {MADE: _made_from(features)}))
        os.replace(fresh, folder / SUMS)


def _sources() -> list[Path]:
    here = Path(__file__).parent
    beside = [
        here / name
        for name in (
            "thread_pool.py",
            "call_layout.py",
            "packed_forms.py",
            "processor.py",
            "arithmetic/integer.py",
        )
    ]
    beside += [
        Path(str(module.__file__))
        for module in (trie_table, ngram_table, text_index, copy_chances, memory_chain)
    ]
    return [*beside, *sorted((here / "kernels").rglob("*.py"))]


def _folder() -> str:
    """The folder of the machine code. numba looks for changes in the file of a function, not in the functions
    that it calls, so each state of the files, and each processor that the environment names, has a folder of
    its own. OSError where none can be written to."""
    here = Path(__file__).parent
    named = [os.environ.get(name, "").encode() for name in processor.GIVEN]
    state = b"".join([*(source.read_bytes() for source in _sources()), *named])
    name = "machine-code-" + hashlib.sha256(state).hexdigest()[:16]
    given = os.environ.get("NUMBA_CACHE_DIR")
    for place in (
        [Path(given)] if given else [here / "kernels" / "__pycache__", home() / ".cache" / "omnidemo"]
    ):
        with suppress(OSError):
            (place / name).mkdir(parents=True, exist_ok=True)
            if os.access(place / name, os.W_OK):
                return str(place / name)
    raise OSError("there is no folder for machine code; name one that can be written to in NUMBA_CACHE_DIR")
