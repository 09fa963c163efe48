"""Passes over weights of two bytes that compute what the float32 ones do.

At batch 1 a pass costs what its bytes cost. Most published weights are bfloat16, and what was read from such a file is held exactly by half
of the bytes; only sums and activations need float32. So a target's law stays what it was, and a drafter's may be rounded to that.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import psutil
import torch
from numpy.typing import NDArray
from torch import Tensor

from omnidemo.runtime import compiling, crew

if TYPE_CHECKING:
    from omnidemo.runtime.lean import LeanLlamaRunner
    from omnidemo.runtime.matrices import Matrix

Array = NDArray[np.float32]
WORTH_SHARING = 4_000_000  # passes of fewer parameters times tokens are done before another thread has looked up
CACHED = 30_000_000  # targets of fewer parameters stay in the caches: drafting for them, over weights of two bytes, hardly pays
CHUNK = 256  # tokens that are read at once: what is computed of them stays in the caches
PIECES = 5  # of a product, for each thread that helps: who begins late takes fewer


class Compact:
    """The forward pass of a `LeanLlamaRunner` as one compiled function, on copies of its matrices."""

    def __init__(self, runner: LeanLlamaRunner) -> None:
        self.runner = runner
        self.states: Array | None = None  # what the output layer read in the newest pass
        layers = runner.layers
        biases = [np.zeros(len(layer.qkv.weight), np.float32) if layer.qkv.bias is None else layer.qkv.bias.numpy() for layer in layers]
        self._given = (
            runner.embed.numpy(), np.array([[layer.before.array, layer.after.array] for layer in layers]), runner.norm.array,
            _stacked([layer.qkv for layer in layers]), np.array(biases), _stacked([layer.out for layer in layers]),
            _stacked([layer.gate_up for layer in layers]), _stacked([layer.down for layer in layers]), _bits(runner.head.weight),
        )  # fmt: skip
        compiling.prepare()

    @property
    def helpers(self) -> int:
        """How many threads help the one that makes a pass, unless it is a small one."""
        return crew.pick_size(self.runner.threads)

    @property
    def reads_prompts(self) -> bool:
        """Whether passes of many tokens are made here too: threads that share them are several times as fast as torch's."""
        return self.helpers > 0

    def forward(self, ids: Sequence[int], start: int, buffer: Array, rows: int) -> Tensor | None:
        """Logits [rows, V] of `ids` at positions start…, which are written into the cache's buffer [layers, 2, Hkv, capacity, D]. None
        as long as there is no compiled code."""
        kernels, runner = compiling.kernels(), self.runner
        if kernels is None:
            return None
        cos, sin = (table.numpy().reshape(len(table), -1) for table in runner.turns)
        logits, states = np.empty((rows, runner.rows), np.float32), np.empty((rows, runner.embed.shape[1]), np.float32)
        read, unread = np.array(ids), len(ids) - rows
        helpers = self.helpers if runner.parameters * len(ids) >= WORTH_SHARING else 0
        with crew.helping(helpers, kernels.serve) as board:
            for begin in range(0, len(ids), CHUNK):
                end = begin + CHUNK
                shown = slice(max(0, begin - unread), max(0, end - unread))
                kernels.forward(
                    board, PIECES * helpers + 1, read[begin:end], start + begin, buffer, *self._given, cos, sin, runner.eps,
                    logits[shown], states[shown],
                )  # fmt: skip
        self.states = states
        return torch.from_numpy(logits)


def fits(runner: LeanLlamaRunner) -> bool:
    """Whether such passes can be made here, had the weights no more than two bytes' worth: half of the memory that is free is the most
    that the copies may take."""
    roomy = 2 * runner.parameters < psutil.virtual_memory().available / 2
    return runner.device.type == "cpu" and runner.dtype == torch.float32 and roomy


def exact(runner: LeanLlamaRunner) -> bool:
    """Whether all matrices are what bfloat16 can hold."""
    return all(torch.equal(weight, weight.to(torch.bfloat16).to(weight.dtype)) for weight in _matrices(runner))


def round_matrices(runner: LeanLlamaRunner) -> None:
    """Round all matrices, in place, to what bfloat16 can hold."""
    with torch.no_grad():
        for weight in _matrices(runner):
            weight.copy_(weight.to(torch.bfloat16))


def _matrices(runner: LeanLlamaRunner) -> Iterator[Tensor]:
    for layer in runner.layers:
        yield from (layer.qkv.weight, layer.out.weight, layer.gate_up.weight, layer.down.weight)
    yield runner.head.weight


def _stacked(matrices: Sequence[Matrix]) -> Any:
    return np.stack([_bits(matrix.weight) for matrix in matrices])


def _bits(weight: Tensor) -> NDArray[np.uint16]:
    """The upper half of each float32, which is the number in bfloat16."""
    bits: NDArray[np.uint16] = weight.to(torch.bfloat16).view(torch.int16).numpy().view(np.uint16)
    return bits
