"""What compiled code may use of the processor: what the machine has, or what NUMBA_CPU_FEATURES names."""

from __future__ import annotations

import os

GIVEN = ("NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES")  # as numba reads them


def features() -> dict[str, bool]:
    """The instruction sets, by LLVM's names. Those that NUMBA_CPU_FEATURES leaves out are absent."""
    given = os.environ.get("NUMBA_CPU_FEATURES")
    if given is not None:
        return {name[1:]: name[0] == "+" for name in given.split(",") if name[:1] in ("+", "-")}
    from llvmlite import binding  # where there is no numba the app works without compiled code

    return dict(binding.get_host_cpu_features())


def has(name: str) -> bool:
    """Whether compiled code may use an instruction set."""
    return features().get(name, False)


def flags(given: dict[str, bool]) -> str:
    """Instruction sets as NUMBA_CPU_FEATURES writes them."""
    return ",".join(f"{'+' if there else '-'}{name}" for name, there in sorted(given.items()))


def told() -> str | None:
    """What numba is told of the features, where it is not what numba finds: vectors of 512 bits, which LLVM
    avoids for processors that are slower all over for a while after them. Those of Intel are not since Ice
    Lake, and loops over a vocabulary gain a quarter."""
    if "NUMBA_CPU_FEATURES" in os.environ or not has("avx512vbmi2"):
        return None
    return flags(features()) + ",-prefer-256-bit"
