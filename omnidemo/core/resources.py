"""The part of the machine that this process may use: a container may have less."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path

import psutil

GROUPS = Path("/sys/fs/cgroup")
MEMBERSHIP = Path("/proc/self/cgroup")


@cache
def usable_cores() -> int:
    """Cores that threads may use at once: those that this process is bound to, and whole cores of a
    container's share of time; at least one."""
    bound = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    for folder in _groups("cpu"):
        quota, _, period = _read(folder / "cpu.max").partition(" ")
        quota = quota or _read(folder / "cpu.cfs_quota_us")
        period = period or _read(folder / "cpu.cfs_period_us")
        if quota.isdigit() and period.isdigit() and int(period):
            bound = min(bound, int(quota) // int(period))
    return max(1, bound)


def free_memory() -> int:
    """Free bytes, in the machine and in a container."""
    free = int(psutil.virtual_memory().available)
    for folder in _groups("memory"):
        limit = _read(folder / "memory.max") or _read(folder / "memory.limit_in_bytes")
        used = _read(folder / "memory.current") or _read(folder / "memory.usage_in_bytes")
        if limit.isdigit() and used.isdigit():
            # file pages are freed when memory is needed
            stat = dict(line.partition(" ")[::2] for line in _read(folder / "memory.stat").splitlines())
            files = stat.get("inactive_file") or stat.get("total_inactive_file", "0")
            free = min(free, max(0, int(limit) - int(used) + int(files)))
    return free


def all_memory() -> int:
    """Bytes of memory of the machine, or of a container that has less."""
    limits = [_read(folder / name) for folder in _groups("memory") for name in LIMITS]
    return min([int(psutil.virtual_memory().total), *(int(one) for one in limits if one.isdigit())])


LIMITS = ("memory.max", "memory.limit_in_bytes")


def home() -> Path:
    """The user's folder; the temporary folder where the system knows none, as for a container's numeric
    user."""
    with suppress(RuntimeError):
        return Path.home()
    return Path(tempfile.gettempdir())


def _groups(controller: str) -> list[Path]:
    """The control groups that limit this process, from its own up to the root, in both versions."""
    found: list[Path] = []
    for line in _read(MEMBERSHIP).splitlines():
        _, names, place = [*line.split(":", 2), "", ""][:3]
        if names and controller not in names.split(","):
            continue
        root = GROUPS / controller if names else GROUPS
        own = root / place.lstrip("/")
        # within a container the root is its own group
        found += [one for one in (own, *own.parents) if one == root or root in one.parents]
    return list(dict.fromkeys(found))


def _read(path: Path) -> str:
    with suppress(OSError, UnicodeDecodeError):
        return path.read_text().strip()
    return ""
