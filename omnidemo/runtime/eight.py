"""Drafting with weights of eight bits: a drafter's law is nobody's wish, so it may be rounded for speed, while the target's may not.

At batch 1 a small drafter costs what its bytes and the calls between its products cost. A quarter of the bytes survive in the caches
while the target's pass goes by, and a pass that is one compiled function has no calls between its products.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from omnidemo.runtime import compiling

if TYPE_CHECKING:
    from omnidemo.runtime.lean import LeanLlamaRunner
    from omnidemo.runtime.matrices import Matrix

Array = NDArray[np.float32]
MOST = 150_000_000  # parameters of a drafter that is rounded: one thread reads it, and each swap rounds it anew


def round_rows(weight: Tensor) -> tuple[NDArray[np.int8], Array]:
    """Round `weight` [n, k], in place, to multiples of a 127th of each row's largest number: (the multiples, the factors [n])."""
    with torch.no_grad():
        scale = weight.abs().amax(-1).div_(127.0)
        scale[scale == 0] = 1.0
        whole = torch.round(weight / scale[:, None])
        weight.copy_(whole * scale[:, None])
    return whole.to(torch.int8).numpy(), scale.numpy()


class Eight:
    """The forward pass of a `LeanLlamaRunner` on a CPU whose matrices have been rounded, and what it is given. The runner's own float32
    weights are the rounded ones, so its other passes compute the same."""

    def __init__(self, runner: LeanLlamaRunner) -> None:
        self.runner = runner
        self.states: Array | None = None  # what the output layer read in the newest pass
        compiling.prepare()
        self.refresh()

    def refresh(self) -> None:
        """Round the runner's weights anew; call before whatever else is made of them."""
        runner, layers = self.runner, self.runner.layers

        def all_of(matrices: Sequence[Matrix]) -> tuple[Any, Array]:
            numbers, factors = zip(*(round_rows(matrix.weight) for matrix in matrices), strict=True)
            return np.stack(numbers), np.stack(factors)

        norms = [[layer.before.weight.numpy(), layer.after.weight.numpy()] for layer in layers]
        biases = np.zeros((len(layers), len(layers[0].qkv.weight)), np.float32)
        for layer, bias in zip(layers, biases, strict=True):
            bias[:] = 0.0 if layer.qkv.bias is None else layer.qkv.bias.numpy()
        head = round_rows(runner.head.weight)
        self._given = (
            runner.embed.numpy(), np.array(norms), runner.norm.weight.numpy(),
            *all_of([layer.qkv for layer in layers]), biases,
            *all_of([layer.out for layer in layers]), *all_of([layer.gate_up for layer in layers]),
            *all_of([layer.down for layer in layers]), *head,
        )  # fmt: skip

    def forward(self, ids: Sequence[int], start: int, buffer: Array, rows: int) -> Tensor | None:
        """Logits [rows, V] of `ids` at positions start…, which are written into the cache's buffer [layers, 2, Hkv, capacity, D]. None
        while the compiled pass is not there."""
        kernels, runner = compiling.kernels(), self.runner
        if kernels is None:
            return None
        cos, sin = (table.numpy().reshape(len(table), -1) for table in runner.turns)
        logits, states = np.empty((rows, runner.rows), np.float32), np.empty((rows, runner.embed.shape[1]), np.float32)
        kernels.forward(np.array(ids), start, buffer, *self._given, cos, sin, runner.eps, logits, states)
        self.states = states
        return torch.from_numpy(logits)


def fits(runner: LeanLlamaRunner) -> bool:
    """Whether a drafter can be rounded and run compiled."""
    return runner.device.type == "cpu" and runner.dtype == torch.float32 and runner.parameters <= MOST
