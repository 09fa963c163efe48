"""Passes of a few tokens as CUDA graphs: recorded once with fixed shapes and addresses, then replayed by one
launch.

At batch 1 a GPU finishes a small layer before the host has launched the next one.
"""

from __future__ import annotations

import gc
import logging
import math
import mmap
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, partial
from threading import Lock
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from omnidemo.backends.call_layout import SPAN
from omnidemo.backends.weight_arena import ROWS
from omnidemo.decoding.sampling import SamplingParams

if TYPE_CHECKING:
    from omnidemo.backends.fused_llama import FusedLlama
    from omnidemo.backends.graph_rollout import GraphRollout, RecordedStep

Outputs = tuple[Tensor, Tensor]  # logits [rows, V], and what the output layer read for them [rows, H]
# function → its replay, on the inputs' contents at that time
Record = Callable[[Callable[[], Outputs]], Callable[[], Outputs]]

# Recordings share inputs, memory and workspaces, so one at a time is made or replayed, in the order of one
# stream.
lock = Lock()


@dataclass(slots=True, eq=False)
class KVBuffer:
    """A cache's buffer [layers, 2, Hkv, capacity, D] with its recorded passes, by (tokens, rows of logits),
    and its recorded rollouts, by sampling parameters and trie. `turned`: see `FusedCache`."""

    buffer: Tensor
    turned: bool = False
    seen: set[tuple[Any, int]] = field(default_factory=set)
    passes: dict[tuple[int, int], Callable[[], Outputs]] = field(default_factory=dict)
    rollouts: dict[tuple[SamplingParams, int], RecordedStep] = field(default_factory=dict)

    @property
    def capacity(self) -> int:
        return self.buffer.shape[3]

    def copy_to(self, other: KVBuffer, length: int) -> None:
        """Copy the first positions to another buffer, in that buffer's layout."""
        if self.turned == other.turned:
            length = -(-length // SPAN) * SPAN if self.turned else length
            other.buffer[:, :, :, :length].copy_(self.buffer[:, :, :, :length])
            return
        other.buffer[:, 1, :, :length].copy_(self.buffer[:, 1, :, :length])
        for first in range(0, length, SPAN):
            size = min(SPAN, length - first)
            other._keys(first, size).copy_(self._keys(first, size))

    def _keys(self, first: int, size: int) -> Tensor:
        """The keys of up to SPAN positions, from a multiple of SPAN on: a view [layers, Hkv, size, D]."""
        if not self.turned:
            return self.buffer[:, 0, :, first : first + size]
        layers, _, heads, _, dim = self.buffer.shape
        span = self.buffer[:, 0, :, first : first + SPAN].view(layers, heads, dim, SPAN)
        return span[:, :, :, :size].transpose(2, 3)

    @property
    def recorded(self) -> bool:
        return bool(self.passes or self.rollouts)


class KVBufferPool:
    """The idle KV buffers of one runner, kept for the next conversation: with their recorded passes, or on a
    CPU with memory that is mapped already."""

    def __init__(self) -> None:
        # one of each capacity with recorded passes, and the smallest without
        self.idle: dict[int, KVBuffer] = {}

    def take(self, runner: FusedLlama, capacity: int, dtype: torch.dtype | None = None) -> KVBuffer:
        """A buffer for `capacity` positions, of the runner's dtype unless another is given. With recorded
        passes it is zeroed: attention covers all of it, and 0 · NaN is NaN."""
        kv, dtype = self.idle.pop(capacity, None), dtype or runner.dtype
        if kv is None or kv.buffer.dtype != dtype:
            size = runner.buffer_size(capacity)
            return KVBuffer(
                pages(size, dtype)
                if runner.device.type == "cpu"
                else torch.zeros(size, dtype=dtype, device=runner.device)
            )
        if runner.fixed is not None:
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
        with lock:  # recordings go with their buffers
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


class GraphCache:
    """The recorded passes of one runner."""

    def __init__(self, device: torch.device, record: Record) -> None:
        self.record: Record | None = record  # None after a recording that failed
        # the first position, and the ids
        self.inputs = torch.zeros(1 + ROWS, dtype=torch.int64, device=device)
        self.steps = torch.arange(ROWS, device=device)
        self.roller: GraphRollout | None = None  # made by the first rollout: a target never draws ahead

    def read(
        self, runner: FusedLlama, kv: KVBuffer, ids: Sequence[int], start: int, rows: int
    ) -> Outputs | None:
        """Logits [rows, V] and states [rows, H] of at most ROWS `ids` at positions start…, copied in float32.
        None where the general pass has to serve: the first time, because a first answer must not wait for a
        recording, and after a failed recording."""
        key = (len(ids), rows)
        if self.record is None:
            return None
        if key not in kv.seen:
            kv.seen.add(key)
            return None
        with lock:
            # Not blocking: the host would wait for all work launched before.
            self.inputs[: 1 + len(ids)].copy_(torch.tensor([start, *ids]), non_blocking=True)
            repeat = kv.passes.get(key)
            if repeat is None:
                repeat = self.recorded(
                    partial(fixed_pass, runner, kv.buffer, self.inputs, self.steps[: len(ids)], rows)
                )
                if repeat is None:
                    return None
                kv.passes[key] = repeat
            logits, states = repeat()
            return logits.to(torch.float32, copy=True), states.to(torch.float32, copy=True)

    def recorded(self, function: Callable[[], Outputs]) -> Callable[[], Outputs] | None:
        """Run and record `function`; None after a failed recording. The caller holds `lock`."""
        if self.record is None:  # another thread's recording has failed
            return None
        try:
            return self.record(function)
        except RuntimeError as problem:
            self.record = None
            logging.getLogger(__name__).warning(
                "Passes of this model cannot be recorded (%s); it goes on without, at a higher cost per"
                " token.",
                problem,
            )
            return None


def fixed_pass(runner: FusedLlama, buffer: Tensor, inputs: Tensor, steps: Tensor, rows: int) -> Outputs:
    """`FusedLlama.run` with shapes and addresses that depend only on the number of `steps` and `rows`.

    `inputs` [1 + ROWS] int64 are the first position and the ids; `steps` [T] is 0…T − 1. Keys and values are
    written to `buffer` [layers, 2, Hkv, capacity, D], which must hold numbers everywhere. Attention covers
    all of it, with −∞ at later positions.
    """
    count, capacity, kv_heads, dim = len(steps), buffer.shape[3], runner.kv_heads, runner.head_dim
    groups = runner.heads // kv_heads
    positions = inputs[:1] + steps
    later = torch.arange(capacity, device=buffer.device) > positions[:, None]
    # Query heads that share a key head are rows of one product.
    mask = torch.zeros(groups, count, capacity, dtype=buffer.dtype, device=buffer.device).masked_fill_(
        later, float("-inf")
    )
    mask = mask.view(groups * count, capacity)

    def attend(queries: Tensor, keys: Tensor, new_keys: Tensor, values: Tensor, new_values: Tensor) -> Tensor:
        keys.index_copy_(1, positions, new_keys)
        values.index_copy_(1, positions, new_values)
        query = (
            queries.view(count, kv_heads, groups, dim)
            .permute(1, 2, 0, 3)
            .reshape(kv_heads, groups * count, dim)
        )
        scores = torch.baddbmm(mask, query, keys.transpose(1, 2), alpha=dim**-0.5)
        mixed = torch.bmm(scores.softmax(-1, dtype=torch.float32).to(values.dtype), values)
        return mixed.view(kv_heads, groups, count, dim).permute(2, 0, 1, 3)

    return runner.run(inputs[1 : 1 + count], *runner.rope_at(positions), buffer, rows, attend)


class CudaGraphs:
    """Records with CUDA graphs. The next replay of any recording made here overwrites the outputs of a
    replay."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        # kept: the shared memory goes with the last graph in it
        self.first: torch.cuda.CUDAGraph | None = None

    def __call__(self, function: Callable[[], Outputs]) -> Callable[[], Outputs]:
        graph = torch.cuda.CUDAGraph()
        here, side = torch.cuda.current_stream(self.device), _side_stream(self.device)
        side.wait_stream(here)
        try:
            # A graph that is garbage collected would break the recording. `torch.cuda.graph` waits for the
            # device.
            with _no_collection(), torch.cuda.stream(side):
                # the first call loads kernels and takes workspaces, which cannot be recorded
                function()
                graph.capture_begin(
                    self.first.pool() if self.first else None, capture_error_mode="thread_local"
                )
                try:
                    outputs = function()
                finally:
                    graph.capture_end()
        finally:
            here.wait_stream(side)
        self.first = self.first or graph

        def repeat() -> Outputs:
            graph.replay()
            return outputs

        return repeat


@cache
def _side_stream(device: torch.device) -> torch.cuda.Stream:
    """One stream for all runners of a device: graphs share memory on one stream only, and each stream costs a
    workspace."""
    return torch.cuda.Stream(device)


@contextmanager
def _no_collection() -> Iterator[None]:
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
