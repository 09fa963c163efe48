"""Recorded passes without a CUDA device: what stands for a graph runs the function again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from omnidemo.backends.cuda_graphs import GraphCache, Outputs
from omnidemo.backends.fused_llama import FusedLlama

CUDA = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")


class Notes:
    """Records by calling again, and counts. As with CUDA's graphs, a repetition overwrites what the one
    before returned."""

    def __init__(self) -> None:
        self.made = self.repeated = 0
        self.fail: Exception | None = None

    def __call__(self, function: Callable[[], Outputs]) -> Callable[[], Outputs]:
        if self.fail is not None:
            raise self.fail
        function()
        self.made += 1
        outputs = function()

        def repeat() -> Outputs:
            self.repeated += 1
            for kept, new in zip(outputs, function(), strict=True):
                kept.copy_(new)
            return outputs

        return repeat


def recorded(model: Any) -> tuple[FusedLlama, Notes]:
    """A runner whose passes are fixed, and never numpy's."""
    runner, notes = FusedLlama(model), Notes()
    runner.passes, runner.fixed = None, GraphCache(runner.device, notes)
    return runner, notes
