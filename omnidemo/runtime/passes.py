"""Passes on a CPU as one compiled function, which several threads share.

At batch 1 a small model spends as long between its products as in them when each step is a call of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from omnidemo.runtime import compact, compiling, crew

if TYPE_CHECKING:
    from omnidemo.runtime.lean import LeanLlamaRunner

Array = NDArray[np.float32]
WORTH_SHARING = 4_000_000  # passes of fewer parameters times tokens are done before another thread has looked up
CHUNK = 256  # tokens that are read at once: what is computed of them stays in the caches
PIECES = 3  # of a product, for each thread that helps: who begins late takes fewer


class Passes:
    """The forward passes of a `LeanLlamaRunner` in float32 on a CPU. `two_bytes`: over copies of its matrices in bfloat16, else over the
    matrices themselves."""

    def __init__(self, runner: LeanLlamaRunner, two_bytes: bool) -> None:
        self.runner, self.two_bytes = runner, two_bytes
        self.states: Array | None = None  # what the output layer read in the newest pass
        layers = runner.layers
        biases = [np.zeros(len(layer.qkv.weight), np.float32) if layer.qkv.bias is None else layer.qkv.bias.numpy() for layer in layers]
        self._weights = [compact.bits(one) if two_bytes else one.contiguous().numpy() for one in compact.matrices(runner)]
        self._given = (
            runner.embed.numpy(), np.array([[layer.before.array, layer.after.array] for layer in layers]), runner.norm.array,
            np.array(biases), np.array([one.ctypes.data for one in self._weights]), 2 if two_bytes else 4, runner.inner,
        )  # fmt: skip
        self._width = int(runner.embed.shape[1])
        self._turns: tuple[Any, ...] = (None,)  # the runner's tables, and the same as numpy's
        compiling.prepare()

    @property
    def helpers(self) -> int:
        """How many threads help the one that makes a pass, unless it is a small one."""
        return crew.pick_size(self.runner.threads)

    def forward(self, ids: Sequence[int], start: int, buffer: Array, rows: int) -> Tensor | None:
        """Logits [rows, V] of `ids` at positions start…, which are written into the cache's buffer [layers, 2, Hkv, capacity, D]. None
        as long as there is no compiled code."""
        kernels, runner = compiling.kernels(), self.runner
        if kernels is None:
            return None
        turns = self._turns
        if turns[0] is not runner.turns:
            turns = self._turns = runner.turns, *(table.numpy().reshape(len(table), -1) for table in runner.turns)
        logits, states = np.empty((rows, runner.rows), np.float32), np.empty((rows, self._width), np.float32)
        given = (np.array(ids), start, buffer, *self._given, *turns[1:], runner.eps, logits, states)
        helpers = self.helpers if runner.parameters * len(ids) >= WORTH_SHARING else 0
        if helpers:
            with crew.helping(helpers, kernels.serve) as board:
                kernels.forward(board, PIECES * helpers + 1, CHUNK, *given)
        else:
            kernels.forward(crew.new_board(), 1, CHUNK, *given)
        self.states = states
        return torch.from_numpy(logits)
