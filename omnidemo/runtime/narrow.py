"""Passes of a few rows on a CPU: decoding and verifying with compiled code between the matrix products."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from omnidemo.runtime import compiling
from omnidemo.runtime.matrices import Matrix

if TYPE_CHECKING:
    from omnidemo.runtime.lean import LeanLlamaRunner

Array = NDArray[np.float32]
SMALL = 4_000_000  # models of fewer parameters stay in a core's cache, and their products end before another thread has woken up
ALONE = 50_000_000  # models of fewer parameters: one thread reads the weights for a single row as fast as several, and needs no packing
BY_ROW = 100_000  # multiplications up to which a call of oneDNN takes longer to set out than to compute
NONE = np.empty(0, np.float32)


class Narrow:
    """The forward pass of a `LeanLlamaRunner` in float32 on a CPU, on the same weights and the same cache."""

    def __init__(self, runner: LeanLlamaRunner) -> None:
        self.runner = runner
        self.alone = runner.parameters < ALONE
        self.embed: Array = runner.embed.numpy()
        compiling.prepare()
        self.states: Array | None = None  # what the output layer read in the newest pass

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
            wide = self._product(kernels.multiply, layer.qkv, y)
            kernels.mix(wide, start, cache, cos, sin, mixed)
            y = self._product(kernels.multiply, layer.out, mixed)
            kernels.add_normed(x, y, layer.after.array, runner.eps, y)
            kernels.gate(self._product(kernels.multiply, layer.gate_up, y), gated)
            y = self._product(kernels.multiply, layer.down, gated)
        kernels.add_normed(x, y, runner.norm.array, runner.eps, y)
        self.states = y[count - rows :]
        return torch.from_numpy(self._product(kernels.multiply, runner.head, self.states))

    def _product(self, multiply: Callable[..., None], matrix: Matrix, x: Array) -> Array:
        """x · Wᵀ + bias, [rows, out]."""
        if (len(x) == 1 and self.alone) or len(x) * matrix.array.size <= BY_ROW:
            product = np.empty((len(x), len(matrix.array)), np.float32)
            multiply(matrix.array, NONE, x, product)
            if matrix.bias is not None:
                product += matrix.bias.numpy()
            return product
        return matrix.times(torch.from_numpy(x)).numpy()
