"""The instruction sets that compiled code may use: the machine's, or those of NUMBA_CPU_FEATURES."""

from __future__ import annotations

import os

GIVEN = ("NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES")  # as numba reads them


def features() -> dict[str, bool]:
    """Instruction sets by LLVM's names. Those that NUMBA_CPU_FEATURES leaves out are absent."""
    given = os.environ.get("NUMBA_CPU_FEATURES")
    if given is not None:
        return {name[1:]: name[0] == "+" for name in given.split(",") if name[:1] in ("+", "-")}
    from llvmlite import binding  # without numba the app works without compiled code

    return dict(binding.get_host_cpu_features())


def has(name: str) -> bool:
    """Whether compiled code may use an instruction set."""
    return features().get(name, False)


def flags(given: dict[str, bool]) -> str:
    """Instruction sets in the form of NUMBA_CPU_FEATURES."""
    return ",".join(f"{'+' if there else '-'}{name}" for name, there in sorted(given.items()))


def told() -> str | None:
    """The value of NUMBA_CPU_FEATURES that compiling needs; None where numba's own choice is right.

    LLVM avoids vectors of 512 bits, because some processors slow down for a while after them. Intel's do not
    since Ice Lake, and there loops over a vocabulary gain a quarter.
    """
    if "NUMBA_CPU_FEATURES" in os.environ or not has("avx512vbmi2"):
        return None
    return flags(features()) + ",-prefer-256-bit"
