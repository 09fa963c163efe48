"""The parts of the fused forward pass: matrices, norms, layers, and one block of memory for weights."""

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
    """A weight [out, in] and its product with a few rows. `weight` may be written to."""

    __slots__ = ("bias", "transposed", "weight")

    def __init__(self, weight: Tensor, bias: Tensor | None = None) -> None:
        self.weight, self.transposed, self.bias = weight, weight.t(), bias

    def times(self, x: Tensor) -> Tensor:
        """x · Wᵀ + bias, [rows, out]."""
        return F.linear(x, self.weight, self.bias)

    def added(self, x: Tensor, rest: Tensor) -> Tensor:
        """rest + x · Wᵀ, [rows, out]; for a matrix without bias."""
        return torch.addmm(rest, x, self.transposed)


class Norm:
    """Root mean square norm: x · w / √(mean x² + ε). `torch.rms_norm` is made of twice as many calls."""

    __slots__ = ("eps", "root", "scaled", "weight")

    def __init__(self, weight: Tensor, eps: float) -> None:
        self.weight, self.eps = weight, eps
        self.root = torch.tensor((len(weight) * eps) ** 0.5, device=weight.device)
        self.scaled = torch.empty_like(weight)
        self.refresh()

    def __call__(self, x: Tensor) -> Tensor:
        if x.dtype != torch.float32:
            return torch.rms_norm(x, self.weight.shape, self.weight, self.eps)
        # √n · √(mean x² + ε) is the hypotenuse of |x| and √(n ε).
        return x / torch.hypot(torch.linalg.vector_norm(x, 2, -1, True), self.root) * self.scaled

    def refresh(self) -> None:
        # In place: recorded passes read it where it lies.
        torch.mul(self.weight, len(self.weight) ** 0.5, out=self.scaled)


class HeadNorms:
    """The norms of queries and keys over the head dimension, for x [T, heads + kv_heads, D]; see `Norm`.
    Their weights are [D]."""

    __slots__ = ("eps", "keys", "parts", "queries", "root", "scaled")

    def __init__(self, queries: Tensor, keys: Tensor, heads: int, kv_heads: int, eps: float) -> None:
        self.queries, self.keys, self.eps = queries, keys, eps
        self.root = torch.tensor((len(queries) * eps) ** 0.5, device=queries.device)
        self.scaled = queries.new_empty(heads + kv_heads, len(queries))  # each head's weights
        self.parts = self.scaled.split([heads, kv_heads])
        self.refresh()

    def __call__(self, x: Tensor) -> Tensor:
        if x.dtype != torch.float32:
            return torch.rms_norm(x, self.queries.shape, None, self.eps) * self.scaled
        return x / torch.hypot(torch.linalg.vector_norm(x, 2, -1, True), self.root) * self.scaled

    def refresh(self) -> None:
        factor = len(self.queries) ** 0.5 if self.scaled.dtype == torch.float32 else 1.0
        for part, weight in zip(self.parts, (self.queries, self.keys), strict=True):
            part.copy_(weight * factor)  # in place, as above


def as_array(tensor: Tensor) -> NDArray[np.float32] | NDArray[np.float16]:
    """The tensor's memory as a numpy array, for float32 or float16 on a CPU; else an empty array, which is
    never read."""
    return (
        tensor.numpy()
        if tensor.device.type == "cpu" and tensor.dtype in (torch.float32, torch.float16)
        else np.empty(0, np.float32)
    )


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
    before: Norm
    qkv: Matrix
    heads: HeadNorms | None  # of queries and keys, before the rotation; None for a model without
    out: Matrix
    after: Norm
    gate_up: Matrix
    down: Matrix

    @classmethod
    def of(cls, layer: Any, heads: int, kv_heads: int, eps: float, memory: WeightArena | None) -> Layer:
        attention, mlp = layer.self_attn, layer.mlp
        qkv = [attention.q_proj, attention.k_proj, attention.v_proj]
        bias = None if attention.q_proj.bias is None else _stacked([part.bias for part in qkv])
        norms = None
        if hasattr(attention, "q_norm"):
            queries, keys = attention.q_norm.weight.detach(), attention.k_norm.weight.detach()
            norms = HeadNorms(queries, keys, heads, kv_heads, eps)
        return cls(
            before=Norm(layer.input_layernorm.weight.detach(), eps),
            qkv=Matrix(_joined([part.weight for part in qkv], memory), bias),
            heads=norms,
            out=Matrix(_joined([attention.o_proj.weight], memory)),
            after=Norm(layer.post_attention_layernorm.weight.detach(), eps),
            gate_up=Matrix(_joined([mlp.gate_proj.weight, mlp.up_proj.weight], memory)),
            down=Matrix(_joined([mlp.down_proj.weight], memory)),
        )


@dataclass(frozen=True, slots=True)
class Whole:
    """The weights in torch's form. The parameters of `model` are views of them, by name in `named`."""

    layers: list[Layer]
    norm: Norm
    head: Matrix
    embed: Tensor
    model: Any
    named: dict[str, Tensor]

    @classmethod
    def of(cls, model: Any, heads: int, kv_heads: int, eps: float) -> Whole:
        """Join the weights of a model into the matrices that a pass reads."""
        parameters, layers = list(model.parameters()), model.model.layers
        on_cpu = model.device.type == "cpu" and model.dtype == torch.float32
        memory = (
            WeightArena(sum(one.numel() for one in parameters), 1 + 4 * len(layers), np.float32)
            if on_cpu
            else None
        )
        return cls(
            layers=[Layer.of(layer, heads, kv_heads, eps, memory) for layer in layers],
            norm=Norm(model.model.norm.weight.detach(), eps),
            head=Matrix(_joined([model.lm_head.weight], memory)),
            embed=model.model.embed_tokens.weight.detach(),  # which may be the same
            model=model,
            named={name: weight.detach() for name, weight in model.named_parameters(remove_duplicate=False)},
        )

    def refresh(self) -> None:
        """Update what is derived from weights."""
        for layer in self.layers:
            layer.before.refresh()
            layer.after.refresh()
            if layer.heads is not None:
                layer.heads.refresh()
        self.norm.refresh()

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
