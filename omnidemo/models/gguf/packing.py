"""The matrices of a GGUF file in the forms that compiled passes read: exactly what the file says, in about as
many bytes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from omnidemo.backends import packed_forms as forms
from omnidemo.backends.fused_llama import FusedLlama
from omnidemo.backends.packed_forms import ROWS, Coded, PackedMatrix
from omnidemo.backends.weight_arena import WeightArena
from omnidemo.models.gguf.architecture import Plan, plan_of
from omnidemo.models.gguf.block_types import BlockType
from omnidemo.models.gguf.header import Header
from omnidemo.models.gguf.header_walk import TensorInfo
from omnidemo.models.gguf.weights import GgufWeights, turned_heads

FORMS = {
    "Q4_0": forms.CENTRED, "Q4_1": forms.NIBBLES, "Q4_K": forms.K_NIBBLES, "Q5_0": forms.FIVES,
    "Q5_1": forms.RAISED_FIVES,
    "Q5_K": forms.K_FIVES, "Q3_K": forms.SIXES, "Q6_K": forms.SIXES, "Q8_0": forms.BYTES,
    "Q2_K": forms.HALVES,
}  # fmt: skip
WHOLE = ("model.embed_tokens.weight", "lm_head.weight")  # matrices that are no part of a product with others
TWO_BYTES = 2.0  # of a weight; a file that takes more in packed form is read in plain numbers

Weights = dict[str, PackedMatrix | NDArray[np.float32]]


def packed_bytes(header: Header, plan: Plan, config: Any) -> int | None:
    """What a file's weights take in memory where each matrix that has a packed form is in it. None where few
    have one, and where no compiled pass reads such a model."""
    if not FusedLlama.fits(config):
        return None
    size = sum(
        forms.nbytes(form, *tensor.shape) if (form := _form(tensor, name, config)) else 4 * numbers
        for name, tensor, numbers in _sizes(header, plan)
    )
    return size if size < TWO_BYTES * header.parameters else None


def _sizes(header: Header, plan: Plan) -> list[tuple[str, TensorInfo, int]]:
    """Each weight's name, tensor and how many numbers it has."""
    found = [(name, header.tensors[tensor]) for name, tensor in plan.names.items()]
    return [(name, tensor, math.prod(tensor.shape)) for name, tensor in found]


def _form(tensor: TensorInfo, weight: str, config: Any) -> int | None:
    """The packed form of a weight; None for one in plain numbers, and for a matrix that tasks of compiled
    passes would cut within a record."""
    if (
        tensor.kind.parts is None
        or len(tensor.shape) != 2
        or (tensor.shape[0] % ROWS and weight not in WHOLE)
    ):
        return None
    # a task is those of a head
    heads = weight.split(".")[-2] in ("q_proj", "k_proj", "v_proj")
    return None if heads and config.head_dim % ROWS else FORMS[tensor.kind.name]


def packed_weights(
    header: Header, config: Any, told: Callable[[float], None] = lambda share: None
) -> Weights:
    """All weights of a file, by the names that `transformers` gives them: matrices in their packed form,
    those that have none and everything else in float32. One is made after the other, straight from the mapped
    file; `told` hears which share of the file has been read."""
    plan, weights, found = plan_of(header), GgufWeights(header), Weights()
    read, every = 0, sum(tensor.size for tensor in header.tensors.values())
    for name, tensor, numbers in _sizes(header, plan):
        form = _form(tensor, name, config)
        if form is not None:
            found[name] = _packed(weights, tensor, form, turned_heads(plan, config, name))
            weights.leave(tensor)
        else:
            # on cache lines, as passes read it
            found[name] = place = WeightArena(numbers, 1, np.float32).take(*tensor.shape)
            place[...] = weights.weight(plan, config, name).numpy()
        read += tensor.size
        told(read / every)
    return found


def _packed(weights: GgufWeights, tensor: TensorInfo, form: int, turned_heads: int) -> PackedMatrix:
    """A matrix; `turned_heads` as in `GgufWeights.float32`."""
    rows, columns = tensor.shape
    blocks = weights.blocks(tensor).reshape(rows, -1, tensor.kind.size)
    order = np.arange(rows)
    if turned_heads:
        order = order.reshape(turned_heads, -1, 2).swapaxes(1, 2).ravel()

    def read(begin: int, end: int) -> Coded:
        return _coded(tensor.kind, blocks[order[begin:end]] if turned_heads else blocks[begin:end])

    return PackedMatrix.of(form, rows, columns, read)


def _coded(kind: BlockType, blocks: NDArray[np.uint8]) -> Coded:
    """Rows of blocks [rows, blocks, bytes] as their codes, scales and minima."""
    assert kind.parts is not None
    rows, parts = len(blocks), kind.parts(blocks.reshape(-1, kind.size))
    minima = None if parts.minima is None else parts.minima.reshape(rows, -1)
    factors = None if parts.factors is None else parts.factors.reshape(rows, -1, parts.factors.shape[1])
    return Coded(parts.codes.reshape(rows, -1), parts.scales.reshape(rows, -1), minima, factors)
