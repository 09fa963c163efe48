"""Passes of a few rows on a CPU over weights that need all of float32: compiled code between the matrix products."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from omnidemo.runtime import compiling
from omnidemo.runtime.matrices import ROWS, Matrix

if TYPE_CHECKING:
    from omnidemo.runtime.lean import LeanLlamaRunner

Array = NDArray[np.float32]
SMALL = 4_000_000  # models of fewer parameters stay in a core's cache, and their products end before another thread has woken up


class Narrow:
    """The forward pass of a `LeanLlamaRunner` in float32 on a CPU, on the same weights and the same cache."""

    reads_prompts = False  # torch is faster at many rows

    def __init__(self, runner: LeanLlamaRunner, pack: bool) -> None:
        """`pack`: whether the matrices keep packed copies of themselves."""
        self.runner = runner
        for layer in runner.layers if pack else ():
            for matrix in (layer.qkv, layer.out, layer.gate_up, layer.down):
                matrix.pack()
        if pack:
            runner.head.pack()
        self.embed: Array = runner.embed.numpy()
        compiling.prepare()
        self.states: Array | None = None  # what the output layer read in the newest pass

    def rehearse(self) -> None:
        """Make each packed product once for every number of rows: oneDNN prepares each of them when it first comes, which takes several
        times as long as the pass. To be repeated when torch's number of threads changes."""
        layer = self.runner.layers[0]
        for matrix in (layer.qkv, layer.out, layer.gate_up, layer.down, self.runner.head):
            for rows in range(1, ROWS + 1) if matrix.packed is not None else ():
                matrix.times(torch.zeros(rows, matrix.weight.shape[1]))

    def forward(self, ids: Sequence[int], start: int, buffer: Array, rows: int) -> Tensor | None:
        """Logits [rows, V] of `ids` at positions start…, which are written into the cache's buffer [layers, 2, Hkv, capacity, D]. None
        as long as there is no compiled code."""
        kernels = compiling.kernels()
        if kernels is None:
            return None
        runner, count = self.runner, len(ids)
        cos, sin = (table.numpy().reshape(len(table), -1) for table in runner.turns)
        x = self.embed[ids]
        y, mixed = np.zeros_like(x), np.empty((count, runner.heads * runner.head_dim), np.float32)
        gated = np.empty((count, runner.inner), np.float32)
        for layer, cache in zip(runner.layers, buffer, strict=True):
            kernels.add_normed(x, y, layer.before.array, runner.eps, y)
            wide = _product(layer.qkv, y)
            kernels.mix(wide, start, cache, cos, sin, mixed)
            y = _product(layer.out, mixed)
            kernels.add_normed(x, y, layer.after.array, runner.eps, y)
            kernels.gate(_product(layer.gate_up, y), gated)
            y = _product(layer.down, gated)
        kernels.add_normed(x, y, runner.norm.array, runner.eps, y)
        self.states = y[count - rows :]
        return torch.from_numpy(_product(runner.head, self.states))


def _product(matrix: Matrix, x: Array) -> Array:
    """x · Wᵀ + bias, [rows, out]."""
    return matrix.times(torch.from_numpy(x)).numpy()
