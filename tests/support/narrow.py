"""A processor without AVX-512, on one that has it: `env $(python -m tests.support.narrow) make test`."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path
from shutil import rmtree

import pytest

from omnidemo.backends import compile_kernels, processor

# the widths of vectors for which kernels can be compiled here
WIDTHS = ("narrow", "wide") if processor.has("avx512f") else ("narrow",)


def environment() -> dict[str, str]:
    """The variables with which numba, and all that asks what the processor has, leave AVX-512 out."""
    kept = {name: has and not name.startswith("avx512") for name, has in processor.features().items()}
    return dict(zip(processor.GIVEN, ("haswell", processor.flags(kept)), strict=True))


@pytest.fixture
def machine_code(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A folder for what a check compiles. It stays for later runs, while no source of the kernels or of the
    check changes."""
    cache = getattr(request.config, "cache", None)  # it can be switched off
    if cache is None:
        return tmp_path
    of_all = cache.mkdir("machine-code")
    state = request.path.read_bytes() + compile_kernels._folder().encode()
    mine = f"{request.path.stem}-{request.node.name}-"
    own: Path = of_all / f"{mine}{hashlib.sha256(state).hexdigest()[:16]}"
    for old in of_all.glob(f"{mine.replace('[', '[[]')}*"):
        if old != own:
            rmtree(old, ignore_errors=True)
    own.mkdir(exist_ok=True)
    return own


def run(code: str, width: str, kept: Path) -> None:
    """Run a check with kernels for vectors of a width, in a process and a folder of machine code of its own:
    what it compiles is of other types than what the app keeps."""
    own = {"NUMBA_CACHE_DIR": str(kept), "PYTHONPATH": str(Path(__file__).parents[2])}
    given = {**os.environ, **(environment() if width == "narrow" else {}), **own}
    command = [sys.executable, "-c", code, "8" if width == "narrow" else "16"]
    done = subprocess.run(command, env=given, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


if __name__ == "__main__":
    if WIDTHS == ("narrow",):
        sys.exit("This processor has no AVX-512: without it the tests are what they are anyway.")
    print(*(f"{name}={value}" for name, value in environment().items()))
