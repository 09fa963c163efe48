"""The matrices of a GGUF file in the forms that compiled passes read: exactly what the file says, in about as
many bytes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from omnidemo.backends import packed_forms as forms
from omnidemo.backends.packed_forms import ROWS, Coded, PackedMatrix
from omnidemo.gguf.architecture import plan_of
from omnidemo.gguf.block_types import BlockType
from omnidemo.gguf.header import Header
from omnidemo.gguf.header_walk import TensorInfo
from omnidemo.gguf.weights import GgufWeights

FORMS = {
    "Q4_0": forms.CENTRED, "Q4_1": forms.NIBBLES, "Q4_K": forms.LONG_NIBBLES, "Q5_0": forms.FIVES,
    "Q5_1": forms.LONG_FIVES,
    "Q5_K": forms.LONG_FIVES, "Q3_K": forms.SIXES, "Q6_K": forms.SIXES, "Q8_0": forms.BYTES,
    "Q2_K": forms.HALVES,
}  # fmt: skip
WHOLE = ("model.embed_tokens.weight", "lm_head.weight")  # matrices that are no part of a product with others


def packed_weights(header: Header, config: Any) -> dict[str, PackedMatrix]:
    """Each matrix that has a packed form, by the name that `transformers` gives it. One in plain numbers has
    none, and stays float32."""
    plan, weights, packed = plan_of(header), GgufWeights(header), {}
    for weight, name in plan.names.items():
        tensor = header.tensors[name]
        if (
            tensor.kind.parts is None
            or len(tensor.shape) != 2
            or (tensor.shape[0] % ROWS and weight not in WHOLE)
        ):
            continue
        part = weight.split(".")[-2]
        if part in ("q_proj", "k_proj", "v_proj") and config.head_dim % ROWS:  # a task is those of a head
            continue
        heads = {"q_proj": config.num_attention_heads, "k_proj": config.num_key_value_heads}.get(part, 0)
        packed[weight] = _packed(weights, tensor, heads if plan.architecture.turned else 0)
    return packed


def _packed(weights: GgufWeights, tensor: TensorInfo, turned_heads: int) -> PackedMatrix:
    """A matrix; `turned_heads` as in `GgufWeights.float32`."""
    rows, columns = tensor.shape
    blocks = weights.blocks(tensor).reshape(rows, -1, tensor.kind.size)
    order = np.arange(rows)
    if turned_heads:
        order = order.reshape(turned_heads, -1, 2).swapaxes(1, 2).ravel()

    def read(begin: int, end: int) -> Coded:
        return _coded(tensor.kind, blocks[order[begin:end]] if turned_heads else blocks[begin:end])

    return PackedMatrix.of(FORMS[tensor.kind.name], rows, columns, read)


def _coded(kind: BlockType, blocks: NDArray[np.uint8]) -> Coded:
    """Rows of blocks [rows, blocks, bytes] as their codes, scales and minima."""
    assert kind.parts is not None
    rows, parts = len(blocks), kind.parts(blocks.reshape(-1, kind.size))
    minima = None if parts.minima is None else parts.minima.reshape(rows, -1)
    return Coded(parts.codes.reshape(rows, -1), parts.scales.reshape(rows, -1), minima)
