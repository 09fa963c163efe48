"""The candidate shapes of a drafter, and how long one of their steps takes."""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping
from typing import Any

from transformers import LlamaForCausalLM

from lab.drafters.training.flat_llama import Shape, config_of
from omnidemo.backends import compile_kernels
from omnidemo.backends.fused_llama import FusedLlama

SHAPES: Mapping[str, Mapping[str, int]] = {
    "tiny": {"layers": 2, "hidden": 160, "heads": 5, "head_dim": 32, "inter": 432},  # of `bundled/drafter`
    "small": {"layers": 2, "hidden": 256, "heads": 4, "head_dim": 64, "inter": 704},  # of `bundled/drafter-4`
    "medium": {"layers": 3, "hidden": 320, "heads": 5, "head_dim": 64, "inter": 880},
    "deep": {"layers": 4, "hidden": 320, "heads": 5, "head_dim": 64, "inter": 880},
    "wide": {"layers": 2, "hidden": 384, "heads": 6, "head_dim": 64, "inter": 1056},
    "wide-deep": {"layers": 3, "hidden": 448, "heads": 7, "head_dim": 64, "inter": 1232},
    "large": {"layers": 3, "hidden": 512, "heads": 8, "head_dim": 64, "inter": 1408},
}


def shape_named(name: str, vocabulary: int) -> Shape:
    """KeyError for a name that there is not."""
    return Shape(vocabulary, **SHAPES[name])


def runner_of(shape: Shape) -> FusedLlama:
    """A runner with random weights, in the form in which drafters serve."""
    model: Any = LlamaForCausalLM(config_of(shape)).eval().requires_grad_(False)
    return FusedLlama(model, form="bfloat16")


def step_times(names: list[str], vocabulary: int, context: int, turns: int) -> dict[str, float]:
    """The median time of a pass of one token behind `context` others, in ms. The shapes take turns, so that
    all see the same machine."""
    caches: dict[str, Any] = {}
    for name in names:
        caches[name] = runner_of(shape_named(name, vocabulary)).new_cache()
        caches[name].forward(list(range(context)), 1)
    compile_kernels.wait(120)
    for cache in caches.values():
        assert cache.runner.passes is not None and compile_kernels.kernels() is not None
    found: dict[str, list[float]] = {name: [] for name in names}
    for turn in range(turns):
        for name, cache in caches.items():
            cache.trim(context)
            for _ in range(8):
                began = time.perf_counter()
                cache.forward([turn % vocabulary], 1)
                found[name].append(time.perf_counter() - began)
    return {name: 1e3 * statistics.median(values) for name, values in found.items()}


def parameters(name: str, vocabulary: int) -> int:
    return shape_named(name, vocabulary).numel()
