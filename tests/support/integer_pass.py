"""The pass in whole numbers by torch and numpy: what compiled passes in `int8` are held to. Slow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from omnidemo.backends.arithmetic import integer
from omnidemo.backends.packed_forms import PackedMatrix
from omnidemo.backends.weight_arena import Matrix, ModelWeights


class IntegerMatrix(Matrix):
    """Products in whole numbers with the packed weights of `weight`."""

    __slots__ = ("parts",)

    def __init__(self, matrix: Matrix, parts: Sequence[PackedMatrix | NDArray[np.float32]]) -> None:
        super().__init__(matrix.weight, matrix.bias)
        self.parts = parts

    def times(self, x: Tensor) -> Tensor:
        rows = x.numpy()
        made = [
            integer.multiply(part, rows) if isinstance(part, PackedMatrix) else rows @ part.T
            for part in self.parts
        ]
        out = torch.from_numpy(np.concatenate(made, 1))
        return out if self.bias is None else out + self.bias


def in_integers(
    whole: ModelWeights, weights: Mapping[str, PackedMatrix | NDArray[np.float32]]
) -> ModelWeights:
    """The same weights, with products in whole numbers where they are packed."""

    def made(matrix: Matrix, *names: str) -> IntegerMatrix:
        return IntegerMatrix(matrix, [weights[f"{name}.weight"] for name in names])

    layers = []
    for number, layer in enumerate(whole.layers):
        of = f"model.layers.{number}"
        qkv = [f"{of}.self_attn.{part}_proj" for part in "qkv"]
        layers.append(
            replace(
                layer,
                qkv=made(layer.qkv, *qkv),
                out=made(layer.out, f"{of}.self_attn.o_proj"),
                gate_up=made(layer.gate_up, f"{of}.mlp.gate_proj", f"{of}.mlp.up_proj"),
                down=made(layer.down, f"{of}.mlp.down_proj"),
            )
        )
    head = "lm_head" if "lm_head.weight" in weights else "model.embed_tokens"
    return replace(whole, layers=layers, head=made(whole.head, head))
