"""Passes of a few tokens as CUDA graphs: recorded once with fixed shapes and addresses, then replayed by one
launch.

At batch 1 a GPU finishes a small layer before the host has launched the next one.
"""

from __future__ import annotations

import gc
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, partial
from threading import Lock

import torch
from torch import Tensor

from omnidemo.backends.kv_buffers import KVBuffer
from omnidemo.backends.weight_arena import ROWS

Outputs = tuple[Tensor, Tensor]  # logits [rows, V], and what the output layer read for them [rows, H]
# function → its replay, on the inputs' contents at that time
Record = Callable[[Callable[[], Outputs]], Callable[[], Outputs]]

# `FusedLlama.fixed_pass`
FixedPass = Callable[[Tensor, Tensor, Tensor, int], Outputs]

# Recordings share inputs, memory and workspaces, so one at a time is made or replayed, in the order of one
# stream.
lock = Lock()


class GraphCache:
    """The recorded passes of one runner."""

    def __init__(self, device: torch.device, record: Record) -> None:
        self.record: Record | None = record  # None after a recording that failed
        # the first position, and the ids
        self.inputs = torch.zeros(1 + ROWS, dtype=torch.int64, device=device)
        self.steps = torch.arange(ROWS, device=device)

    def read(
        self, fixed_pass: FixedPass, kv: KVBuffer, ids: Sequence[int], start: int, rows: int
    ) -> Outputs | None:
        """Logits [rows, V] on the host and states [rows, H] of at most ROWS `ids` at positions start…. None
        where the general pass has to serve: the first time, because a first answer must not wait for a
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
                    partial(fixed_pass, kv.buffer, self.inputs, self.steps[: len(ids)], rows)
                )
                if repeat is None:
                    return None
                kv.passes[key] = repeat
            logits, states = repeat()
            return logits.float().to("cpu", copy=True), states.to(torch.float32, copy=True)

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
