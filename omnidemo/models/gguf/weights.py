"""The weights of a GGUF file as float32 tensors, and a `transformers` model with them."""

from __future__ import annotations

import math
import mmap
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers import AutoConfig, AutoModelForCausalLM
from transformers.initialization import no_init_weights

from omnidemo.core.config.refusals import explained
from omnidemo.core.resources import usable_cores
from omnidemo.models.gguf.architecture import ROPE_FREQS, ModelPlan, plan_of
from omnidemo.models.gguf.header import OTHER, Header, TensorInfo

# numbers computed at a time, so that intermediate results stay in a core's cache
PIECE = 2**18


class GgufWeights:
    """Reads tensors of a file on several cores. The files are mapped, and take memory only between reading a
    tensor and `leave`."""

    def __init__(self, header: Header) -> None:
        self.header = header
        self._files: list[mmap.mmap] = []
        for path in header.parts:
            with path.open("rb") as opened:
                self._files.append(mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ))

    def blocks(self, tensor: TensorInfo) -> NDArray[np.uint8]:
        """The bytes of a tensor's blocks [blocks, bytes of a block]."""
        file = np.frombuffer(self._files[tensor.part], np.uint8, tensor.size, tensor.offset)
        return file.reshape(-1, tensor.kind.size)

    def leave(self, tensor: TensorInfo) -> None:
        """Release the memory through which a tensor was read, where the system allows it."""
        if hasattr(mmap, "MADV_DONTNEED"):
            begin = tensor.offset // mmap.PAGESIZE * mmap.PAGESIZE
            size = tensor.offset + tensor.size - begin
            self._files[tensor.part].madvise(mmap.MADV_DONTNEED, begin, size)

    def float32(self, name: str, interleaved_heads: int = 0) -> Tensor:
        """A tensor's values. `interleaved_heads`: the number of heads whose rows stand in interleaved rotary
        pairs; they are reordered to halves."""
        tensor = self.header.tensors[name]
        kind, blocks = tensor.kind, self.blocks(tensor)
        assert kind.read is not None  # `plan_of` has refused it
        if interleaved_heads:
            each = blocks.reshape(interleaved_heads, tensor.shape[0] // interleaved_heads // 2, 2, -1)
            blocks = np.ascontiguousarray(each.swapaxes(1, 2)).reshape(-1, kind.size)
        values, read = np.empty((len(blocks), kind.numbers), np.float32), kind.read
        step = max(1, PIECE // kind.numbers)

        def fill(begin: int) -> None:
            # a damaged scale may be NaN, which the probe at load finds
            with np.errstate(all="ignore"):
                values[begin : begin + step] = read(blocks[begin : begin + step])

        pieces = range(0, len(blocks), step)
        if len(pieces) == 1:
            fill(0)
        else:
            with ThreadPoolExecutor(usable_cores()) as pool:
                list(pool.map(fill, pieces))
        self.leave(tensor)
        return torch.from_numpy(values.reshape(tensor.shape))

    def weight(self, plan: ModelPlan, config: Any, name: str) -> Tensor:
        """A weight of the model in float32, by its name in `transformers`."""
        values = self.float32(plan.names[name], interleaved_heads(plan, config, name))
        return values - plan.architecture.less if name.endswith("norm.weight") else values


def interleaved_heads(plan: ModelPlan, config: Any, weight: str) -> int:
    """The number of heads whose rows of a weight are in the order of interleaved rotary pairs; 0 for none."""
    heads = {"q_proj": config.num_attention_heads, "k_proj": config.num_key_value_heads}
    return heads.get(weight.split(".")[-2], 0) if plan.architecture.interleaved else 0


def build_config(plan: ModelPlan) -> Any:
    """`transformers`' configuration. ModelError for an impossible one."""
    with explained("the file describes a model that cannot be", OTHER):
        config = AutoConfig.for_model(plan.architecture.model_type, **plan.options)
        config.dtype = torch.bfloat16  # for `auto` on a GPU: the dtype of most published models
        return config


def check_shapes(header: Header, plan: ModelPlan, config: Any) -> None:
    """ModelError unless the file holds every weight of the model in its shape, and no other. Takes no memory
    for weights."""
    with explained(f"the weights of {header.name} are not those of its model", OTHER):
        with torch.device("meta"):
            model: Any = AutoModelForCausalLM.from_config(config)
        wanted = {weight: tuple(parameter.shape) for weight, parameter in model.named_parameters()}
        there = {weight: header.tensors[tensor].shape for weight, tensor in plan.names.items()}
        # some files have biases of queries, keys and values alone: that of the output product is zero there
        if lacks := [one for one in wanted if one not in there and not one.endswith("o_proj.bias")]:
            raise ValueError(f"it lacks {lacks[0]}")
        for weight, shape in there.items():
            if shape != wanted.get(weight):
                raise ValueError(f"it has {weight} as {shape}, not {wanted.get(weight, 'at all')}")
        factors = header.tensors.get(ROPE_FREQS)
        if factors is not None and math.prod(factors.shape) != config.head_dim // 2:
            raise ValueError(
                f"it has {math.prod(factors.shape)} rotary factors for heads of {config.head_dim}"
            )


def build_shape(header: Header, config: Any) -> Any:
    """A `transformers` model of the Llama shape with the file's rotary tables and without weights (device
    "meta")."""
    with torch.device("meta"):
        model: Any = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    model.model.rotary_emb = type(model.model.rotary_emb)(config)
    return _turning(header, model)


def build_model(header: Header, config: Any, dtype: torch.dtype) -> Any:
    """A `transformers` model with the file's weights in `dtype`, without another copy of them."""
    plan, weights = plan_of(header), GgufWeights(header)
    with no_init_weights():  # memory that is never touched is never taken
        model: Any = AutoModelForCausalLM.from_config(config, dtype=dtype)
    for name, parameter in list(model.named_parameters()):
        there = name in plan.names
        values = weights.weight(plan, config, name) if there else torch.zeros(parameter.shape)
        parameter.data = values.to(dtype)
    model.tie_weights()
    return _turning(header, model).eval().requires_grad_(False)


def _turning(header: Header, model: Any) -> Any:
    """The model with the file's own rotary frequencies, if it has any: each divided by a factor (Llama 3.1
    and later)."""
    if ROPE_FREQS in header.tensors:
        factors = GgufWeights(header).float32(ROPE_FREQS).flatten()
        for name, frequencies in model.named_buffers():
            if name.endswith("inv_freq"):
                frequencies.div_(factors.to(frequencies))
    return model
