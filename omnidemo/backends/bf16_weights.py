"""Weights of two bytes, over which passes say what they say over four.

At batch 1 a pass costs what its bytes cost. Most published weights are bfloat16, and what was read from such a file is held exactly by half
of the bytes; only sums and activations need float32. So a target's law stays what it was, and a drafter's may be rounded to that.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np
import psutil
import torch
from numpy.typing import NDArray
from torch import Tensor

from omnidemo.backends.weight_arena import WeightArena

if TYPE_CHECKING:
    from omnidemo.backends.fused_llama import FusedLlama

PASSES = 15  # of each form, that a probe times at most,
SECONDS = 0.5  # and the time after which it has seen enough, if there were three of each


def fits(runner: FusedLlama) -> bool:
    """Whether such copies can be used here, had the weights no more than two bytes' worth: half of the memory that is free is the most
    that they may take."""
    roomy = 2 * runner.parameters < psutil.virtual_memory().available / 2
    return runner.device.type == "cpu" and runner.dtype == torch.float32 and roomy


def exact(runner: FusedLlama) -> bool:
    """Whether all matrices are what bfloat16 can hold."""
    return all(torch.equal(weight, weight.to(torch.bfloat16).to(weight.dtype)) for weight in matrices(runner))


def round_matrices(runner: FusedLlama) -> None:
    """Round all matrices, in place, to what bfloat16 can hold."""
    with torch.no_grad():
        for weight in matrices(runner):
            weight.copy_(weight.to(torch.bfloat16))


def matrices(runner: FusedLlama) -> Iterator[Tensor]:
    """Those of each layer in the order of a pass, and the output layer's."""
    for layer in runner.layers:
        yield from (layer.qkv.weight, layer.out.weight, layer.gate_up.weight, layer.down.weight)
    yield runner.head.weight


def bits(runner: FusedLlama) -> list[NDArray[np.uint16]]:
    """Of each matrix the upper halves of its numbers, which are those in bfloat16."""
    each = list(matrices(runner))
    memory, found = WeightArena(sum(weight.numel() for weight in each), len(each), np.uint16), []
    for weight in each:
        found.append(memory.take(*weight.shape))
        np.copyto(found[-1], weight.to(torch.bfloat16).view(torch.int16).numpy().view(np.uint16))
    return found


def pick(runner: FusedLlama, clock: Callable[[], float] = time.perf_counter) -> None:
    """Have a target run in the form in which it decodes fastest alone, verifying too, so that drafting is held against plain decoding at
    its best. Passes of one token are timed in both forms by turns, and the fastest of each are compared: what else the machine does can
    only slow a pass down. Nothing where the weights are not exactly those of two bytes."""
    runner.compact(True)
    if runner.passes is None or not runner.passes.two_bytes:
        return
    forms = [runner.passes, runner.four_bytes()]
    cache, best, began = runner.new_cache(), [float("inf")] * 2, clock()
    for attempt in range(PASSES):
        if attempt >= 3 and clock() - began > SECONDS:
            break
        for which, form in enumerate(forms):
            before = clock()
            if form.forward([0], 0, cache.array, 1) is None:
                return  # without compiled code both forms are read by torch alike
            best[which] = min(best[which], clock() - before)
    if best[1] < best[0]:
        runner.compact(False)
