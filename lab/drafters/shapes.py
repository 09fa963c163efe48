"""The candidate shapes of a drafter, and how long one of their steps takes."""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping
from typing import Any

import torch
from transformers import LlamaConfig, LlamaForCausalLM

from lab.drafters.training.family import Shape
from omnidemo.backends import compile_kernels
from omnidemo.backends.fused_llama import FusedLlama

VOCABULARY = 6000  # where a shape is asked for without a tokenizer
SHAPES: Mapping[str, Mapping[str, int]] = {
    "tiny": {"layers": 2, "hidden": 160, "heads": 5, "head_dim": 32, "inter": 432},  # today's
    "small": {"layers": 2, "hidden": 256, "heads": 4, "head_dim": 64, "inter": 704},
    "medium": {"layers": 3, "hidden": 320, "heads": 5, "head_dim": 64, "inter": 880},
    "deep": {"layers": 4, "hidden": 320, "heads": 5, "head_dim": 64, "inter": 880},
}


def shape_named(name: str, vocabulary: int) -> Shape:
    """KeyError for a name that there is not."""
    return Shape(vocabulary, **SHAPES[name])


def runner_of(shape: Shape) -> FusedLlama:
    """A runner with random weights, in the form in which drafters serve."""
    config = LlamaConfig(
        vocab_size=shape.vocab, hidden_size=shape.hidden, intermediate_size=shape.inter,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads, num_key_value_heads=shape.heads, head_dim=shape.head_dim,
        max_position_embeddings=2048,
        tie_word_embeddings=True,
    )  # fmt: skip
    model: Any = LlamaForCausalLM(config).eval().requires_grad_(False)
    runner = FusedLlama(model)
    runner.compact(True, rounding=True)
    return runner


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
    return int(torch.tensor(shape_named(name, vocabulary).numel()))
