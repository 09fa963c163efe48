"""The machine that figures come from: what it is, and how fast it moves bytes and multiplies."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
import subprocess
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import torch
from torch.utils.benchmark import Timer

from omnidemo.core.resources import usable_cores

LIBRARIES = ("torch", "transformers", "numpy", "tokenizers", "peft")
SIZES = (1 << 18, 1 << 20, 1 << 22, 1 << 24, 1 << 26, 1 << 28)  # bytes: from a core's cache to main memory
SQUARES = ((2048, 8192), (256, 512, 1024))  # sides of the products on a GPU, and on a CPU
SECONDS = 0.1  # of the tries of a probe, of which the best counts


def facts(device: torch.device) -> dict[str, Any]:
    """CPU or GPU, cores, load, versions and commit: what has to stand beside a figure."""
    known: dict[str, Any] = {
        "cpu": _cpu(),
        "cores": usable_cores(),
        "load": [round(value, 2) for value in os.getloadavg()] if hasattr(os, "getloadavg") else None,
        "system": platform.platform(),
        "python": platform.python_version(),
        "device": str(device),
        "commit": commit(),
    }
    if device.type == "cuda":
        known |= {"gpu": torch.cuda.get_device_name(device), "cuda": torch.version.cuda}
    return known | {name: importlib.metadata.version(name) for name in LIBRARIES}


def _cpu() -> str:
    with suppress(OSError):
        if found := re.search(
            r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
        ):
            return found[1].strip()
    return platform.processor() or "unknown"


def commit() -> str:
    """The checkout's commit, with a + where files differ from it; "unknown" without git."""
    command = ["git", "describe", "--always", "--dirty=+", "--exclude=*"]
    try:
        return subprocess.run(
            command, cwd=Path(__file__).parent, capture_output=True, text=True, check=True, timeout=10
        ).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return "unknown"


def synchronise(device: torch.device) -> None:
    """Wait until the device has done everything; a CPU always has."""
    if device.type != "cpu":
        torch.accelerator.synchronize(device)


# probes
# ------------------------------------------------------------------------------------------------------------


class Probe:
    """Bandwidth and rate of a device, each measured once for a size and number of threads."""

    def __init__(self, device: torch.device, dtype: torch.dtype) -> None:
        self.device, self.dtype = device, dtype
        self._bandwidth: dict[tuple[int, int], float] = {}
        self._rate: dict[int, float] = {}

    def bandwidth(self, size: int, threads: int) -> float:
        """Bytes a second at which a matrix-vector product, or a sum, reads a working set of `size` bytes
        again and again."""
        size = _rounded(size)
        if (size, threads) not in self._bandwidth:
            columns = 512
            rows = max(1, size // (columns * self.dtype.itemsize))
            matrix = torch.rand(rows, columns, device=self.device).to(self.dtype)
            vector = torch.rand(columns, device=self.device).to(self.dtype)
            seconds = min(
                self._best(threads, lambda: torch.mv(matrix, vector)), self._best(threads, matrix.sum)
            )
            self._bandwidth[size, threads] = matrix.nbytes / seconds
        return self._bandwidth[size, threads]

    def rate(self, threads: int) -> float:
        """Operations a second (a multiplication and an addition are two) of the best square product."""
        if threads not in self._rate:
            matrices = (
                torch.rand(size, size, device=self.device).to(self.dtype)
                for size in SQUARES[self.device.type == "cpu"]
            )
            self._rate[threads] = max(
                2 * len(one) ** 3 / self._best(threads, partial(torch.mm, one, one)) for one in matrices
            )
        return self._rate[threads]

    def table(self, threads: int) -> dict[str, float]:
        """GB/s for the sizes of `SIZES` and all that were asked for."""
        for size in SIZES:
            self.bandwidth(size, threads)
        measured = sorted(
            (size, speed) for (size, count), speed in self._bandwidth.items() if count == threads
        )
        return {f"{size / 1e6:.3g} MB": round(speed / 1e9, 1) for size, speed in measured}

    def _best(self, threads: int, call: Callable[[], Any]) -> float:
        """Seconds of one call, the best of a few tries."""

        def clock() -> float:
            synchronise(self.device)
            return perf_counter()

        timer = Timer("call()", timer=clock, globals={"call": call}, num_threads=threads)
        return float(min(timer.blocked_autorange(min_run_time=SECONDS).times))


def _rounded(size: int) -> int:
    """Two significant binary digits are enough to tell caches apart, and keep the probes few."""
    step = 1 << max(0, size.bit_length() - 2)
    return max(1 << 12, -(-size // step) * step)
