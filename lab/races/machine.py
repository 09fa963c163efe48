"""The machine that figures come from: what it is."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch

from omnidemo.core.resources import usable_cores

LIBRARIES = ("torch", "transformers", "numpy", "tokenizers", "peft")


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
