"""A processor without AVX-512, on one that has it: `env $(python -m tests.support.narrow) make test`."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from omnidemo.backends import compile_kernels, processor

# the widths of vectors for which kernels can be compiled here
WIDTHS = ("narrow", "wide") if processor.has("avx512f") else ("narrow",)


def environment() -> dict[str, str]:
    """The variables with which numba, and all that asks what the processor has, leave AVX-512 out."""
    kept = {name: has and not name.startswith("avx512") for name, has in processor.features().items()}
    return dict(zip(processor.GIVEN, ("haswell", processor.flags(kept)), strict=True))


# Each check has its own names; what they compile is shared.
CHECKS = """
from omnidemo.backends.kernels.gemm import LANES
assert LANES == {lanes}
for name, check in {checks!r}.items():
    exec(compile(check, name, "exec"), {{}})
"""


def machine_code(width: str, request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A folder for what checks compile: for the processor as it is, a copy of what the app has compiled. What
    is compiled for other vectors stays for later runs, while no source of the kernels or of the checks
    changes."""
    if width == WIDTHS[-1]:
        return Path(shutil.copytree(compile_kernels._folder(), tmp_path / "code"))
    cache = getattr(request.config, "cache", None)  # it can be switched off
    if cache is None:
        return tmp_path
    of_all = cache.mkdir("machine-code")
    state = request.path.read_bytes() + compile_kernels._folder().encode()
    own: Path = of_all / f"{width}-{hashlib.sha256(state).hexdigest()[:16]}"
    for old in of_all.iterdir():
        if old != own:
            shutil.rmtree(old, ignore_errors=True)
    own.mkdir(exist_ok=True)
    return own


def run(checks: dict[str, str], width: str, kept: Path) -> None:
    """Run checks, by their names, with kernels for vectors of a width, in a process of their own."""
    own = {"NUMBA_CACHE_DIR": str(kept), "PYTHONPATH": str(Path(__file__).parents[2])}
    features = {"NUMBA_CPU_FEATURES": told} if (told := processor.told()) else {}
    given = {**os.environ, **(features if width == WIDTHS[-1] else environment()), **own}
    code = CHECKS.format(checks=checks, lanes=8 if width == "narrow" else 16)
    done = subprocess.run(
        [sys.executable, "-c", code], env=given, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr


if __name__ == "__main__":
    if WIDTHS == ("narrow",):
        sys.exit("This processor has no AVX-512: without it the tests are what they are anyway.")
    print(*(f"{name}={value}" for name, value in environment().items()))
