"""The machine that figures come from: what it is, how fast it moves bytes and multiplies, and how much memory a process takes."""

from __future__ import annotations

import gc
import importlib.metadata
import os
import platform
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from time import perf_counter
from typing import Any

import psutil
import torch

LIBRARIES = ("torch", "transformers", "numpy", "tokenizers", "peft")
SIZES = (1 << 18, 1 << 20, 1 << 22, 1 << 24, 1 << 26, 1 << 28)  # bytes: from a core's cache to main memory
REPEATS, LEAST = 5, 2e-3  # a probe takes the best of so many tries, each of at least so many seconds


def facts(device: torch.device) -> dict[str, Any]:
    """CPU or GPU, cores, load, versions and commit: what has to stand beside a figure."""
    known: dict[str, Any] = {
        "cpu": _cpu(),
        "cores": cores(),
        "load": [round(value, 2) for value in os.getloadavg()] if hasattr(os, "getloadavg") else None,
        "system": platform.platform(),
        "python": platform.python_version(),
        "device": str(device),
        "commit": commit(),
    }
    if device.type == "cuda":
        known |= {"gpu": torch.cuda.get_device_name(device), "cuda": torch.version.cuda}
    return known | {name: importlib.metadata.version(name) for name in LIBRARIES}


def cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _cpu() -> str:
    with suppress(OSError):
        if found := re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")):
            return found[1].strip()
    return platform.processor() or "unknown"


def commit() -> str:
    """The checkout's commit, with a + where files differ from it; "unknown" without git."""
    folder = Path(__file__).parents[3]

    def git(*words: str) -> str:
        return subprocess.run(["git", *words], cwd=folder, capture_output=True, text=True, check=True, timeout=10).stdout.strip()

    try:
        return git("rev-parse", "--short", "HEAD") + ("+" if git("status", "--porcelain", "--untracked-files=no") else "")
    except (OSError, subprocess.SubprocessError):
        return "unknown"


def synchronise(device: torch.device) -> None:
    """Wait until the device has done everything; a CPU always has."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    elif device.type == "mps":
        torch.mps.synchronize()


# probes ----------------------------------------------------------------------------------------------------------------------


class Probe:
    """Bandwidth and rate of a device, each measured once for a size and number of threads."""

    def __init__(self, device: torch.device, dtype: torch.dtype, largest: int | None = None) -> None:
        """`largest`: bytes of a working set at most, where caches are smaller than that and more would not fit the memory."""
        self.device, self.dtype, self.largest = device, dtype, largest
        self._bandwidth: dict[tuple[int, int], float] = {}
        self._rate: dict[int, float] = {}

    def bandwidth(self, size: int, threads: int) -> float:
        """Bytes a second at which a matrix-vector product, or a sum, reads a working set of `size` bytes again and again."""
        size = _rounded(min(size, self.largest or size))
        if (size, threads) not in self._bandwidth:
            with _threads(threads):
                columns = 512
                rows = max(1, size // (columns * self.dtype.itemsize))
                matrix = torch.rand(rows, columns, device=self.device).to(self.dtype)
                vector = torch.rand(columns, device=self.device).to(self.dtype)
                seconds = min(self._best(lambda: torch.mv(matrix, vector)), self._best(lambda: matrix.sum()))
                self._bandwidth[size, threads] = matrix.nbytes / seconds
        return self._bandwidth[size, threads]

    def rate(self, threads: int) -> float:
        """Operations a second (a multiplication and an addition are two) of the best square product."""
        if threads not in self._rate:
            with _threads(threads):
                sizes = (256, 512, 1024) if self.device.type == "cpu" else (2048, 8192)
                self._rate[threads] = max(self._square(size) for size in sizes)
        return self._rate[threads]

    def table(self, threads: int) -> dict[str, float]:
        """GB/s for the sizes of `SIZES` and all that were asked for."""
        for size in SIZES:
            self.bandwidth(size, threads)
        measured = sorted((size, speed) for (size, count), speed in self._bandwidth.items() if count == threads)
        return {f"{size / 1e6:.3g} MB": round(speed / 1e9, 1) for size, speed in measured}

    def _square(self, size: int) -> float:
        matrix = torch.rand(size, size, device=self.device).to(self.dtype)
        return 2 * size**3 / self._best(lambda: matrix @ matrix)

    def _best(self, call: Any) -> float:
        """Seconds of one call, the best of a few tries."""
        times, calls = [], 1
        while True:
            synchronise(self.device)
            began = perf_counter()
            for _ in range(calls):
                call()
            synchronise(self.device)
            seconds = perf_counter() - began
            if seconds < LEAST:  # also the warm-up
                calls *= 2
                continue
            times.append(seconds / calls)
            if len(times) >= REPEATS:
                return min(times)


def _rounded(size: int) -> int:
    """Two significant binary digits are enough to tell caches apart, and keep the probes few."""
    step = 1 << max(0, size.bit_length() - 2)
    return max(1 << 12, -(-size // step) * step)


@contextmanager
def _threads(count: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


# memory ----------------------------------------------------------------------------------------------------------------------


def resident() -> int:
    """Bytes of this process in memory now."""
    return int(psutil.Process().memory_info().rss)


class Peak:
    """Most memory within the block: `rss_growth` bytes over what there was before, and `cuda` bytes allocated (None without CUDA).

    Linux can forget its high-water mark; elsewhere only what is still there at the end is seen.
    """

    rss_growth: int
    cuda: int | None = None

    def __init__(self, device: torch.device) -> None:
        self.device = device

    def __enter__(self) -> Peak:
        with suppress(OSError):
            Path("/proc/self/clear_refs").write_text("5")
        self._before = resident()
        if self.device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(self.device)
        return self

    def __exit__(self, *error: object) -> None:
        self.rss_growth = max(0, _high_water() - self._before)
        if self.device.type == "cuda":
            self.cuda = int(torch.cuda.max_memory_allocated(self.device))


def _high_water() -> int:
    """Most bytes that this process had in memory since Linux forgot the mark; elsewhere what it has now."""
    with suppress(OSError):
        found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
        if found:
            return int(found[1]) * 1024
    return resident()


def live_tensors() -> tuple[int, int]:
    """(count, bytes) of all tensors that Python still holds; storages that are shared count once."""
    gc.collect()
    tensors = [thing for thing in gc.get_objects() if issubclass(type(thing), torch.Tensor)]
    storages = {one.untyped_storage().data_ptr(): one.untyped_storage().nbytes() for one in tensors if one.layout == torch.strided}
    return len(tensors), sum(storages.values())
