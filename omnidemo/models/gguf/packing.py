"""The matrices of a GGUF file in the forms of compiled passes: exactly the file's values, in about as many
bytes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from omnidemo.backends import packed_forms as forms
from omnidemo.backends.fused_llama import FusedLlama
from omnidemo.backends.packed_forms import ROWS, PackedMatrix, Quantized
from omnidemo.backends.weight_arena import WeightArena
from omnidemo.models.gguf.architecture import ModelPlan, plan_of
from omnidemo.models.gguf.header import Header, TensorInfo
from omnidemo.models.gguf.weights import GgufWeights, interleaved_heads

FORMS = {
    "Q4_0": forms.CENTRED, "Q4_1": forms.NIBBLES, "Q4_K": forms.K_NIBBLES, "Q5_0": forms.FIVES,
    "Q5_1": forms.RAISED_FIVES,
    "Q5_K": forms.K_FIVES, "Q3_K": forms.SIXES, "Q6_K": forms.SIXES, "Q8_0": forms.BYTES,
    "Q2_K": forms.HALVES,
}  # fmt: skip
WHOLE = ("model.embed_tokens.weight", "lm_head.weight")  # matrices with products of their own
TWO_BYTES = 2.0  # most bytes of a packed weight; a larger file is read as plain numbers

Weights = dict[str, PackedMatrix | NDArray[np.float32]]


def packed_bytes(header: Header, plan: ModelPlan, config: Any) -> int | None:
    """Bytes of a file's weights in memory with each matrix in its packed form, if it has one. None where few
    have one, and where no compiled pass reads such a model."""
    if not FusedLlama.fits(config):
        return None
    size = sum(
        forms.nbytes(form, *tensor.shape) if (form := _form(tensor, name, config)) else 4 * numbers
        for name, tensor, numbers in _sizes(header, plan)
    )
    return size if size < TWO_BYTES * header.parameters else None


def _sizes(header: Header, plan: ModelPlan) -> list[tuple[str, TensorInfo, int]]:
    """(name, tensor, numbers) of each weight."""
    found = [(name, header.tensors[tensor]) for name, tensor in plan.names.items()]
    return [(name, tensor, math.prod(tensor.shape)) for name, tensor in found]


def _form(tensor: TensorInfo, weight: str, config: Any) -> int | None:
    """The packed form of a weight; None for plain numbers, and for a matrix that tasks of compiled passes
    would cut within a tile."""
    if (
        tensor.kind.parts is None
        or len(tensor.shape) != 2
        or (tensor.shape[0] % ROWS and weight not in WHOLE)
    ):
        return None
    # a task has the rows of a head
    heads = weight.split(".")[-2] in ("q_proj", "k_proj", "v_proj")
    return None if heads and config.head_dim % ROWS else FORMS[tensor.kind.name]


def packed_weights(
    header: Header, config: Any, told: Callable[[float], None] = lambda share: None
) -> Weights:
    """All weights of a file by their names in `transformers`: matrices in their packed form, the others in
    float32. They are made one after the other from the mapped file; `told` receives the share of the file
    that has been read."""
    plan, weights, found = plan_of(header), GgufWeights(header), Weights()
    read, every = 0, sum(tensor.size for tensor in header.tensors.values())
    for name, tensor, numbers in _sizes(header, plan):
        form = _form(tensor, name, config)
        if form is not None:
            found[name] = _packed(weights, tensor, form, interleaved_heads(plan, config, name))
            weights.leave(tensor)
        else:
            # on cache lines, as passes read it
            found[name] = place = WeightArena(numbers, 1, np.float32).take(*tensor.shape)
            place[...] = weights.weight(plan, config, name).numpy()
        read += tensor.size
        told(read / every)
    return found


def _packed(weights: GgufWeights, tensor: TensorInfo, form: int, interleaved_heads: int) -> PackedMatrix:
    """A matrix; `interleaved_heads` as in `GgufWeights.float32`."""
    parts, (rows, columns) = tensor.kind.parts, tensor.shape
    assert parts is not None
    blocks = weights.blocks(tensor).reshape(rows, -1, tensor.kind.size)
    order = np.arange(rows)
    if interleaved_heads:
        order = order.reshape(interleaved_heads, -1, 2).swapaxes(1, 2).ravel()

    def read(begin: int, end: int) -> Quantized:
        some = blocks[order[begin:end]] if interleaved_heads else blocks[begin:end]
        return parts(some.reshape(-1, tensor.kind.size)).in_rows(len(some))

    return PackedMatrix.of(form, rows, columns, read)
