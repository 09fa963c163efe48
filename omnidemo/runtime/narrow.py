"""Passes of a few rows on a CPU: decoding and verifying with numpy between the matrix products.

At batch 1 a small model spends as long between its products as in them, for every call costs torch 2 to 5 µs. The same call costs
numpy a quarter of that, and its matrix-vector products have less to set out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController
from torch import Tensor

from omnidemo.runtime.matrices import ROWS, Matrix, Norm

if TYPE_CHECKING:
    from omnidemo.runtime.lean import LeanLlamaRunner

Array = NDArray[np.float32]
SMALL = 4_000_000  # models of fewer parameters stay in a core's cache, and their products end before another thread has woken up
BY_ROW = {True: 380_000, False: 100_000}  # for small models and others: multiplications up to which numpy, row by row, is done sooner

_blas = [library for library in ThreadpoolController().lib_controllers if library.user_api == "blas"]


class Narrow:
    """The forward pass of a `LeanLlamaRunner` in float32 on a CPU, on the same weights and the same cache."""

    def __init__(self, runner: LeanLlamaRunner) -> None:
        self.runner = runner
        by_row = BY_ROW[runner.parameters < SMALL]
        self.product: Callable[[Matrix, Array], Array] = partial(_product, by_row)
        self.embed: Array = runner.embed.numpy()
        self.scale = np.float32(runner.head_dim**-0.5)
        self.states: Array | None = None  # what the output layer read in the newest pass
        # Among new tokens, 0 where one may look and −∞ at those after it.
        self.masks: list[Array] = [np.triu(np.full((n, n), -np.inf, np.float32), 1) for n in range(ROWS + 1)]

    def forward(self, ids: Sequence[int], start: int, buffer: Array, rows: int) -> Tensor:
        """Logits [rows, V] of `ids` at positions start…, which are written into the cache's buffer
        [layers, 2, Hkv, capacity, D]."""
        before = [library.num_threads for library in _blas]
        for library in _blas:
            library.set_num_threads(1)
        try:
            return self._forward(ids, start, buffer, rows)
        finally:
            for library, threads in zip(_blas, before, strict=True):
                library.set_num_threads(threads)

    def _forward(self, ids: Sequence[int], start: int, buffer: Array, rows: int) -> Tensor:
        runner, product = self.runner, self.product
        count, end = len(ids), start + len(ids)
        heads, kv_heads, dim, inner = runner.heads, runner.kv_heads, runner.head_dim, runner.inner
        both, groups = heads + kv_heads, heads // kv_heads
        cos, sin = (table[start:end].numpy().reshape(count, 1, 2, dim // 2) for table in runner.turns)
        matmul = np.matmul if count == 1 else _matmul
        x = self.embed[ids[0] : ids[0] + 1] if count == 1 else self.embed[np.asarray(ids)]
        for layer, cache in zip(runner.layers, buffer, strict=True):
            qkv = product(layer.qkv, _normed(layer.before, x))
            turning = qkv[:, : both * dim].reshape(count, both, 2, dim // 2)
            turned = turning * cos
            turned += turning[:, :, ::-1] * sin
            turned = turned.reshape(count, both, dim)
            cache[0, :, start:end] = turned[:, heads:].transpose(1, 0, 2)
            cache[1, :, start:end] = qkv[:, both * dim :].reshape(count, kv_heads, dim).transpose(1, 0, 2)
            query = turned[:, :heads]
            if groups == 1:
                query = query.transpose(1, 0, 2)
            else:  # the query heads that share a key head, below each other
                query = query.reshape(count, kv_heads, groups, dim).transpose(1, 2, 0, 3).reshape(kv_heads, groups * count, dim)
            scores: Array = matmul(query * self.scale, cache[0, :, :end].transpose(0, 2, 1))
            if count > 1:
                scores.reshape(kv_heads, groups, count, end)[..., start:] += self.masks[count]
            scores -= np.maximum.reduce(scores, axis=-1, keepdims=True)
            np.exp(scores, out=scores)
            scores /= np.add.reduce(scores, axis=-1, keepdims=True)
            mixed = matmul(scores, cache[1, :, :end])
            mixed = mixed.transpose(1, 0, 2) if groups == 1 else mixed.reshape(kv_heads, groups, count, dim).transpose(2, 0, 1, 3)
            x = x + product(layer.out, mixed.reshape(count, heads * dim))
            gate_up = product(layer.gate_up, _normed(layer.after, x))
            x += product(layer.down, _gated(gate_up[:, :inner], gate_up[:, inner:]))
        self.states = _normed(runner.norm, x[count - rows :])
        return torch.from_numpy(product(runner.head, self.states))


def _normed(norm: Norm, x: Array) -> Array:
    """Root mean square norm, with √n moved into the weight."""
    size = np.vecdot(x, x)
    size += norm.floor
    np.sqrt(size, out=size)
    scaled: Array = x / size[:, None]
    scaled *= norm.array
    return scaled


def _matmul(left: Array, right: Array) -> Array:
    """numpy multiplies stacks of small matrices as slowly as torch multiplies stacks of vectors."""
    return torch.bmm(torch.from_numpy(left), torch.from_numpy(right)).numpy()


def _gated(gate: Array, up: Array) -> Array:
    """silu(gate) · up by way of tanh, which does not overflow: silu(g) = g/2 · (1 + tanh(g/2))."""
    half = gate * np.float32(0.5)
    open_: Array = np.tanh(half)
    open_ += 1.0
    open_ *= half
    open_ *= up
    return open_


def _product(by_row: int, matrix: Matrix, x: Array) -> Array:
    """x · Wᵀ + bias."""
    if len(x) * matrix.array.size > by_row:
        return matrix.times(torch.from_numpy(x)).numpy()
    if len(x) == 1:
        product: Array = x @ matrix.array.T
    else:
        product = np.empty((len(x), len(matrix.array)), np.float32)
        for row, out in zip(x, product, strict=True):
            np.dot(matrix.array, row, out=out)
    if matrix.bias is not None:
        product += matrix.bias.numpy()
    return product
