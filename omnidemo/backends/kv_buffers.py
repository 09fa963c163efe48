"""Buffers of keys and values, and the pool of those that no conversation uses."""

from __future__ import annotations

import math
import mmap
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor


@dataclass(slots=True, eq=False)
class KVBuffer:
    """A cache's buffer [layers, 2, Hkv, capacity, D], and its recorded passes by (tokens, rows of logits)."""

    buffer: Tensor
    seen: set[tuple[int, int]] = field(default_factory=set)
    passes: dict[tuple[int, int], Callable[[], Any]] = field(default_factory=dict)

    @property
    def capacity(self) -> int:
        return self.buffer.shape[3]

    @property
    def recorded(self) -> bool:
        return bool(self.passes)


class KVBufferPool:
    """The idle KV buffers of one runner, kept for the next conversation: with their recorded passes, or on a
    CPU with memory that is mapped already."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        # one of each capacity with recorded passes, and the smallest without
        self.idle: dict[int, KVBuffer] = {}

    def take(self, size: tuple[int, ...], dtype: torch.dtype) -> KVBuffer:
        """A buffer of this size. With recorded passes it is zeroed: attention covers all of it, and 0 · NaN
        is NaN."""
        kv = self.idle.pop(size[3], None)
        if kv is None:
            on_cpu = self.device.type == "cpu"
            return KVBuffer(
                pages(size, dtype) if on_cpu else torch.zeros(size, dtype=dtype, device=self.device)
            )
        if kv.recorded or self.device.type != "cpu":
            with torch.inference_mode():  # the buffer may have been made in this mode
                kv.buffer.zero_()
        return kv

    def give(self, kv: KVBuffer) -> None:
        """Keep a buffer, or return it to the system: a large one without recorded passes is allocated in far
        less time than it takes to fill. Without a lock, because the garbage collector may call this at any
        time."""
        for other in list(self.idle.values()):
            if not other.recorded and (
                other.capacity > kv.capacity or (kv.recorded and other.capacity == kv.capacity)
            ):
                self.idle.pop(other.capacity, None)
        if kv.recorded or all(other.recorded for other in list(self.idle.values())):
            self.idle.setdefault(kv.capacity, kv)

    def shrink(self, most: int) -> int:
        """Free the largest buffers until the others take at most `most` bytes; returns the bytes that they
        take."""
        for capacity in sorted(self.idle, reverse=True):
            if self.nbytes <= most:
                break
            self.idle.pop(capacity, None)
        return self.nbytes

    @property
    def nbytes(self) -> int:
        return sum(kv.buffer.nbytes for kv in list(self.idle.values()))


def pages(size: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    """Zeros on a CPU by a memory mapping: untouched pages cost nothing, and the memory returns to the system
    with the tensor. glibc's allocator would place a buffer in a thread's arena, where a few bytes after it
    keep all of it."""
    private = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if hasattr(mmap, "MAP_PRIVATE") else {}
    return torch.frombuffer(mmap.mmap(-1, math.prod(size) * dtype.itemsize, **private), dtype=dtype).view(
        size
    )
