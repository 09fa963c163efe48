"""A processor without AVX-512, on one that has it: `env $(python -m tests.support.narrow) make test`."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from omnidemo.backends import compile_kernels, processor

WIDE = processor.has("avx512f")


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


def machine_code(tmp_path: Path) -> Path:
    """A folder for what checks compile: a copy of what the app has compiled."""
    return Path(shutil.copytree(compile_kernels._folder(), tmp_path / "code"))


def run(checks: dict[str, str], kept: Path) -> None:
    """Run checks, by their names, in a process of their own."""
    own = {"NUMBA_CACHE_DIR": str(kept), "PYTHONPATH": str(Path(__file__).parents[2])}
    features = {"NUMBA_CPU_FEATURES": told} if (told := processor.told()) else {}
    code = CHECKS.format(checks=checks, lanes=16 if WIDE else 8)
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **features, **own},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr


if __name__ == "__main__":
    if not WIDE:
        sys.exit("This processor has no AVX-512: without it the tests are what they are anyway.")
    print(*(f"{name}={value}" for name, value in environment().items()))
