"""Weights of two bytes, over which passes say what they say over four.

At batch 1 a pass costs what its bytes cost. Most published weights are bfloat16, and what was read from such a file is held exactly by half
of the bytes; only sums and activations need float32. So a target's law stays what it was, and a drafter's may be rounded to that.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import psutil
import torch
from numpy.typing import NDArray
from torch import Tensor

from omnidemo.runtime.matrices import Memory

if TYPE_CHECKING:
    from omnidemo.runtime.lean import LeanLlamaRunner

CACHED = 30_000_000  # targets of fewer parameters stay in the caches: drafting for them, over weights of two bytes, hardly pays


def fits(runner: LeanLlamaRunner) -> bool:
    """Whether such copies can be used here, had the weights no more than two bytes' worth: half of the memory that is free is the most
    that they may take."""
    roomy = 2 * runner.parameters < psutil.virtual_memory().available / 2
    return runner.device.type == "cpu" and runner.dtype == torch.float32 and roomy


def exact(runner: LeanLlamaRunner) -> bool:
    """Whether all matrices are what bfloat16 can hold."""
    return all(torch.equal(weight, weight.to(torch.bfloat16).to(weight.dtype)) for weight in matrices(runner))


def round_matrices(runner: LeanLlamaRunner) -> None:
    """Round all matrices, in place, to what bfloat16 can hold."""
    with torch.no_grad():
        for weight in matrices(runner):
            weight.copy_(weight.to(torch.bfloat16))


def matrices(runner: LeanLlamaRunner) -> Iterator[Tensor]:
    """Those of each layer in the order of a pass, and the output layer's."""
    for layer in runner.layers:
        yield from (layer.qkv.weight, layer.out.weight, layer.gate_up.weight, layer.down.weight)
    yield runner.head.weight


def bits(runner: LeanLlamaRunner) -> list[NDArray[np.uint16]]:
    """Of each matrix the upper halves of its numbers, which are those in bfloat16."""
    each = list(matrices(runner))
    memory, found = Memory(sum(weight.numel() for weight in each), len(each), np.uint16), []
    for weight in each:
        found.append(memory.take(*weight.shape))
        np.copyto(found[-1], weight.to(torch.bfloat16).view(torch.int16).numpy().view(np.uint16))
    return found
