"""The weights of the fused forward pass, layer by layer, in one block of memory."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

LINE = 64  # bytes of a cache line
ROWS = 16  # passes of up to this many tokens decode or verify; longer ones are treated as prompts


class Matrix:
    """A weight [out, in], which may be written to, and its product with a few rows."""

    __slots__ = ("bias", "weight")

    def __init__(self, weight: Tensor, bias: Tensor | None = None) -> None:
        self.weight, self.bias = weight, bias

    def times(self, x: Tensor) -> Tensor:
        """x · Wᵀ + bias, [rows, out]."""
        return F.linear(x, self.weight, self.bias)


class WeightArena:
    """One block of memory for all weights of a model on a CPU. The system can back a large block with large
    pages, which need fewer page look-ups."""

    def __init__(self, numbers: int, arrays: int, kind: type[np.float32] | type[np.uint16]) -> None:
        self._left = np.empty(numbers + (arrays + 1) * LINE, kind)  # not touched yet

    def take(self, *shape: int) -> NDArray[Any]:
        """The next array of this shape; it begins on a cache line."""
        begin = -self._left.ctypes.data % LINE // self._left.itemsize
        end = begin + math.prod(shape)
        found, self._left = self._left[begin:end].reshape(shape), self._left[end:]
        return found


@dataclass(frozen=True, slots=True)
class Layer:
    before: Tensor  # a norm's weight, as `after`
    qkv: Matrix
    heads: tuple[Tensor, Tensor] | None  # of queries and keys, before the rotation; None for a model without
    out: Matrix
    after: Tensor
    gate_up: Matrix
    down: Matrix

    @classmethod
    def of(cls, layer: Any, memory: WeightArena | None) -> Layer:
        attention, mlp = layer.self_attn, layer.mlp
        qkv, heads = [attention.q_proj, attention.k_proj, attention.v_proj], None
        bias = None if attention.q_proj.bias is None else _stacked([part.bias for part in qkv])
        if hasattr(attention, "q_norm"):
            heads = attention.q_norm.weight.detach(), attention.k_norm.weight.detach()
        return cls(
            before=layer.input_layernorm.weight.detach(),
            qkv=Matrix(_joined([part.weight for part in qkv], memory), bias),
            heads=heads,
            out=Matrix(_joined([attention.o_proj.weight], memory)),
            after=layer.post_attention_layernorm.weight.detach(),
            gate_up=Matrix(_joined([mlp.gate_proj.weight, mlp.up_proj.weight], memory)),
            down=Matrix(_joined([mlp.down_proj.weight], memory)),
        )


@dataclass(frozen=True, slots=True)
class ModelWeights:
    """The weights in torch's form. The parameters of `model` are views of them, by name in `named`."""

    layers: list[Layer]
    norm: Tensor
    head: Matrix
    embed: Tensor
    model: Any
    named: dict[str, Tensor]

    @classmethod
    def of(cls, model: Any) -> ModelWeights:
        """Join the weights of a model into the matrices that a pass reads."""
        parameters, layers = list(model.parameters()), model.model.layers
        on_cpu = model.device.type == "cpu" and model.dtype == torch.float32
        memory = (
            WeightArena(sum(one.numel() for one in parameters), 1 + 4 * len(layers), np.float32)
            if on_cpu
            else None
        )
        return cls(
            layers=[Layer.of(layer, memory) for layer in layers],
            norm=model.model.norm.weight.detach(),
            head=Matrix(_joined([model.lm_head.weight], memory)),
            embed=model.model.embed_tokens.weight.detach(),  # which may be the same
            model=model,
            named={name: weight.detach() for name, weight in model.named_parameters(remove_duplicate=False)},
        )

    def matrices(self) -> Iterator[Tensor]:
        """The matrices of each layer in the order of a pass, then the output layer's."""
        for layer in self.layers:
            yield from (layer.qkv.weight, layer.out.weight, layer.gate_up.weight, layer.down.weight)
        yield self.head.weight


def _joined(parts: list[nn.Parameter], memory: WeightArena | None) -> Tensor:
    """One matrix of several, which become views of it; in `memory` if there is any."""
    if memory is None:
        return _stacked(parts) if len(parts) > 1 else parts[0].detach()
    return _stacked(parts, torch.from_numpy(memory.take(sum(map(len, parts)), parts[0].shape[1])))


def _stacked(parts: list[nn.Parameter], out: Tensor | None = None) -> Tensor:
    """One tensor of several stacked ones, which become views of it."""
    whole = torch.cat([part.detach() for part in parts], out=out)
    for part, piece in zip(parts, whole.split([len(part) for part in parts]), strict=True):
        part.data = piece
    return whole


def in_bfloat16(matrices: Sequence[NDArray[np.float32]]) -> list[NDArray[np.uint16]]:
    """Each matrix in bfloat16, as uint16 bits [out, in]."""
    memory, found = WeightArena(sum(one.size for one in matrices), len(matrices), np.uint16), []
    for one in map(torch.from_numpy, matrices):
        found.append(memory.take(*one.shape))
        np.copyto(found[-1], one.to(torch.bfloat16).view(torch.int16).numpy().view(np.uint16))
    return found
