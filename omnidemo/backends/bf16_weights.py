"""Weights of two bytes, with the same results as weights of four.

At batch 1 a pass takes as long as reading its weights. Most published weights are bfloat16, so half of the
bytes hold them exactly; only sums and activations need float32. A target keeps its distribution; a drafter's
weights may be rounded.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from omnidemo.backends import compile_kernels
from omnidemo.backends.weight_arena import WeightArena
from omnidemo.core.resources import free_memory

if TYPE_CHECKING:
    from omnidemo.backends.fused_llama import FusedLlama


def fits(runner: FusedLlama) -> bool:
    """Whether two-byte copies of the weights can be used here: float32 on a CPU, and copies of at most half
    of the free memory."""
    small_enough = 2 * runner.parameters < free_memory() / 2
    return runner.device.type == "cpu" and runner.dtype == torch.float32 and small_enough


def exact(runner: FusedLlama) -> bool:
    """Whether bfloat16 holds all matrices exactly."""
    return all(torch.equal(weight, weight.to(torch.bfloat16).to(weight.dtype)) for weight in matrices(runner))


def round_matrices(runner: FusedLlama) -> None:
    """Round all matrices to bfloat16, in place."""
    with torch.no_grad():
        for weight in matrices(runner):
            weight.copy_(weight.to(torch.bfloat16))


def matrices(runner: FusedLlama) -> Iterator[Tensor]:
    """The matrices of each layer in the order of a pass, then the output layer's."""
    for layer in runner.layers:
        yield from (layer.qkv.weight, layer.out.weight, layer.gate_up.weight, layer.down.weight)
    yield runner.head.weight


def bits(matrices: Sequence[NDArray[np.float32]]) -> list[NDArray[np.uint16]]:
    """Each matrix in bfloat16, as uint16 bits [out, in]."""
    memory, found = WeightArena(sum(one.size for one in matrices), len(matrices), np.uint16), []
    for one in map(torch.from_numpy, matrices):
        found.append(memory.take(*one.shape))
        np.copyto(found[-1], one.to(torch.bfloat16).view(torch.int16).numpy().view(np.uint16))
    return found


def described(**runners: object) -> dict[str, str | int]:
    """`<role>_form`, `<role>_form_bytes` and `<role>_arithmetic` of each runner with compiled passes: the
    form of the weights that a pass reads now, its bytes, and the arithmetic of its products. Without compiled
    code torch reads float32."""
    found: dict[str, str | int] = {}
    for role, runner in runners.items():
        passes = getattr(runner, "passes", None)
        if passes is not None:
            compiled = compile_kernels.kernels() is not None
            found |= {f"{role}_form": passes.form if compiled else "float32"}
            found |= {f"{role}_arithmetic": runner.arithmetic}  # type: ignore[attr-defined]
            found |= {f"{role}_form_bytes": passes.nbytes if compiled else 4 * passes.weights}
    return found
