"""A forward pass for Llama, Qwen2 and Qwen3 shapes in few torch calls: at batch 1 the host's overhead per
call decides the speed.

Computes what `transformers` computes, layer by layer: x += Wo·attention(rope(Wqkv·norm(x))); x +=
Wd·(silu(gate)·up).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from copy import copy, deepcopy
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from omnidemo.backends import bf16_weights, compile_kernels
from omnidemo.backends.compiled_passes import CompiledPasses, Form
from omnidemo.backends.cuda_graphs import CudaGraphs, GraphCache, Outputs
from omnidemo.backends.fused_cache import FusedCache
from omnidemo.backends.kv_buffers import KVBufferPool
from omnidemo.backends.packed_forms import PackedMatrix
from omnidemo.backends.runner import overwrite_named
from omnidemo.backends.weight_arena import Layer, Matrix, Norm, Packed, Whole
from omnidemo.core.config import Arithmetic

# rotary types whose frequencies do not depend on the length read
STATIC_ROPES = ("default", "linear", "llama3", "yarn")
# queries, keys, new keys, values, new values → mixed [T, …, D]
Attend = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], Tensor]


class FusedLlama:
    """Runs a `LlamaForCausalLM`, `Qwen2ForCausalLM` or `Qwen3ForCausalLM` without its modules. The weights
    are held once: those of `model` become views of the fused ones, so both see a change (copies made from
    them only after `overwrite`). Rotary frequencies and their scale are those of the model's `rotary_emb`.
    With packed weights, float32 weights are made at request (by torch, while there is no compiled code) and
    dropped when they are no longer needed."""

    def __init__(self, model: Any, fast: bool = True, packed: Packed | None = None) -> None:
        """fast: passes may be compiled (on a CPU) or recorded (on CUDA); otherwise torch computes all of
        them. packed: the weights of a `model` without weights, for compiled passes on the CPU."""
        config = model.config
        self.fast = fast
        if not self.fits(config):
            name = type(model).__name__
            raise ValueError(f"{name} is not of the plain Llama shape; use the general runner")
        self.max_positions = int(config.max_position_embeddings)
        self.parameters = sum(parameter.numel() for parameter in model.parameters())
        self.device: torch.device = model.device if packed is None else torch.device("cpu")
        self.dtype: torch.dtype = model.dtype
        self.heads, self.kv_heads = config.num_attention_heads, config.num_key_value_heads
        self.head_dim = int(getattr(config, "head_dim", None) or config.hidden_size // self.heads)
        self.inner = int(config.intermediate_size)
        self.eps = float(config.rms_norm_eps)
        self._shape = self.heads, self.kv_heads, self.eps
        self._making = threading.Lock()  # held while weights are made
        self.packed = packed
        self._whole: Whole | None = Whole.of(model, *self._shape) if packed is None else None
        self.rows, self.width = map(int, model.lm_head.weight.shape)
        self.tied = model.lm_head.weight is model.model.embed_tokens.weight
        self.depth = len(model.model.layers)
        self.frequencies = model.model.rotary_emb.inv_freq.float().to(self.device)
        self.rope_scale = float(model.model.rotary_emb.attention_scaling)
        self.rope = (torch.empty(0), torch.empty(0))  # rotary cosines and sines [positions, 1, D]
        # most threads of a pass on a CPU; 0: the cores, up to 8, or by the model's size for torch
        self.threads = 0
        self.two_bytes, self.rounds_weights = False, False  # see `compact`
        self.passes = self._passes()
        cuda = fast and self.device.type == "cuda"
        self.fixed = GraphCache(self.device, CudaGraphs(self.device)) if cuda else None
        self.kv_pool = KVBufferPool(self.device)

    @property
    def arithmetic(self) -> Arithmetic:
        """The arithmetic of products now: float32 without compiled code, because numpy takes seconds in whole
        numbers."""
        waits = self.packed is None or (self.fast and compile_kernels.kernels() is None)
        return "float32" if waits else self.packed.arithmetic  # type: ignore[union-attr]

    def _held(self) -> Whole:
        """The weights in torch's form, made if they are missing."""
        whole = self._whole
        if whole is None:
            with self._making, torch.inference_mode(False):  # a pass may ask, and they outlast it
                if (whole := self._whole) is None:
                    assert self.packed is not None
                    whole = self._whole = Whole.of(self.packed.dequantized(), *self._shape)
        return whole

    @property
    def layers(self) -> list[Layer]:
        return self._held().layers

    @property
    def norm(self) -> Norm:
        return self._held().norm

    @property
    def head(self) -> Matrix:
        return self._held().head

    @property
    def embed(self) -> Tensor:
        return self._held().embed

    @property
    def whole(self) -> bool:
        """Whether the weights are in memory in torch's form."""
        return self._whole is not None

    @staticmethod
    def fits(config: Any) -> bool:
        """Whether this runner supports models of this configuration. A new `model_type` needs a check of
        every option that its configuration can have beyond these, such as a `sliding_window` without
        `layer_types`."""
        rope = getattr(config, "rope_parameters", None) or {}
        return (
            config.model_type in ("llama", "qwen2", "qwen3")
            and config.hidden_act == "silu"
            and rope.get("rope_type", "default") in STATIC_ROPES
            and rope.get("partial_rotary_factor", 1.0) == 1.0
            and not getattr(config, "attention_bias", False)
            and not getattr(config, "mlp_bias", False)
            and set(getattr(config, "layer_types", None) or ["full_attention"]) == {"full_attention"}
            and getattr(config, "quantization_config", None) is None
        )

    def new_cache(self) -> FusedCache:
        return FusedCache(self)

    def spare(self, most: int) -> int:
        """See `Runner`."""
        return self.kv_pool.shrink(most)

    def copy(self) -> FusedLlama:
        if self.packed is None:
            other = FusedLlama(deepcopy(self._held().model), self.fast)
            other.threads = self.threads
            if self.two_bytes:
                other.compact(self.rounds_weights)
            return other
        other = copy(self)  # packed weights never change, so that both read the same
        other._making, other._whole, other.kv_pool = threading.Lock(), None, KVBufferPool(self.device)
        other.passes = other._passes()
        return other

    def compact(self, rounding: bool = False) -> None:
        """Run passes on a CPU over fewer bytes: over packed weights if there are any, else over two-byte
        copies of the weights, where these are exact and memory suffices. `rounding`: round the weights to
        bfloat16, now and after each `overwrite`; for drafters only, since it changes the output."""
        self.two_bytes, self.rounds_weights = True, rounding and bf16_weights.fits(self)
        if self.rounds_weights:
            self._unpack()
        self._refresh()

    def _unpack(self) -> None:
        """Make the weights in float32 for good."""
        self._held()
        self.packed = None

    def forms(self) -> list[Form]:
        """The forms of the weights that compiled passes can read, the smallest first."""
        if self.packed is not None:
            return ["packed", "float32"]
        two = self.two_bytes and bf16_weights.fits(self) and bf16_weights.exact(self)
        return ["bfloat16", "float32"] if two else ["float32"]

    def drop_float32(self) -> None:
        """Drop the weights that torch has made of packed ones while there was no compiled code."""
        with self._making:  # a pass of torch's may have begun to
            whole = self._whole if self.packed is not None else None
            self._whole = None if whole is not None else self._whole
        if whole is not None:
            whole.empty()

    def _passes(self) -> CompiledPasses | None:
        """The compiled passes on a CPU; None without any."""
        if not self.fast or self.device.type != "cpu" or self.dtype != torch.float32:
            return None
        return CompiledPasses(self, self.forms()[0])

    def __deepcopy__(self, memo: dict[int, Any]) -> FusedLlama:
        return self.copy()  # recorded passes belong to the weights that they were recorded with

    def weights(self) -> dict[str, Tensor]:
        return dict(self._held().named)

    def overwrite(self, named: Mapping[str, Tensor]) -> None:
        overwrite_named(self._held().named, named)
        self.packed = None  # which are the weights as they were
        self._refresh()

    def named(self, form: Form) -> Mapping[str, PackedMatrix | NDArray[np.float32]]:
        """The weights by name for passes over a form: packed, or in float32."""
        if form == "packed" and self.packed is not None:
            return self.packed.weights
        return {name: weight.numpy() for name, weight in self._held().named.items()}

    def _refresh(self) -> None:
        """Update everything derived from the weights after an overwrite."""
        if self.rounds_weights:
            bf16_weights.round_matrices(self)
        if self._whole is not None:
            self._whole.refresh()
        self.passes = self._passes()

    def extend_rope(self, length: int) -> None:
        """Extend the rotary tables to `length` positions."""
        if length > len(self.rope[0]):
            # both at once: another thread may be reading
            self.rope = self.rope_at(torch.arange(length, device=self.device))

    def rope_at(self, positions: Tensor) -> tuple[Tensor, Tensor]:
        """Rotary cosines and sines [T, 1, D] of positions [T]. The first half of the sines is negative,
        because `roll` does not negate."""
        angles = torch.outer(positions.float(), self.frequencies)
        cos, sin = angles.cos(), angles.sin()
        if self.rope_scale != 1:
            cos, sin = cos * self.rope_scale, sin * self.rope_scale
        cos, sin = torch.cat([cos, cos], -1)[:, None], torch.cat([-sin, sin], -1)[:, None]
        return cos.to(self.dtype), sin.to(self.dtype)

    def buffer_size(self, capacity: int) -> tuple[int, ...]:
        """The shape of keys and values for `capacity` positions."""
        return self.depth, 2, self.kv_heads, capacity, self.head_dim

    def forward(self, tokens: Tensor, start: int, buffer: Tensor, rows: int) -> Outputs:
        """`run` for tokens [T] at positions start…; `buffer` is the used part [layers, 2, Hkv, start + T, D]
        of a cache."""
        end = start + len(tokens)
        causal = len(tokens) > 1 and start == 0  # then the fused attention needs no mask
        mask = None if causal or len(tokens) == 1 else _mask(len(tokens), end, self.dtype, self.device)
        grouped = self.heads > self.kv_heads

        def attend(
            queries: Tensor, keys: Tensor, new_keys: Tensor, values: Tensor, new_values: Tensor
        ) -> Tensor:
            keys[:, start:].copy_(new_keys)
            values[:, start:].copy_(new_values)
            held = keys.to(queries.dtype)[None], values.to(queries.dtype)[None]
            given = queries.transpose(0, 1)[None], *held, mask
            return F.scaled_dot_product_attention(*given, is_causal=causal, enable_gqa=grouped)[0].transpose(
                0, 1
            )

        return self.run(tokens, self.rope[0][start:end], self.rope[1][start:end], buffer, rows, attend)

    def run(
        self, tokens: Tensor, cos: Tensor, sin: Tensor, buffer: Tensor, rows: int, attend: Attend
    ) -> Outputs:
        """Logits [rows, V] of tokens [T], and the output layer's input [rows, H]. `cos` and `sin` [T, 1, D]:
        see `rope_at`. `buffer` [layers, 2, Hkv, positions, D] are keys and values; `attend` adds the new ones
        [Hkv, T, D] of each layer and mixes over them for the queries [T, heads, D]."""
        count, heads, dim, inner = len(tokens), self.heads, self.head_dim, self.inner
        both = heads + self.kv_heads
        keys, values = buffer.unbind(1)
        whole, packed = self._held(), self.packed  # once: they may be given up meanwhile
        whole = packed.in_integers(whole) if packed is not None and self.arithmetic != "float32" else whole
        x = F.embedding(tokens, whole.embed)
        for layer, key, value in zip(whole.layers, keys.unbind(0), values.unbind(0), strict=True):
            qkv = layer.qkv.times(layer.before(x)).view(count, both + self.kv_heads, dim)
            unrotated = qkv[:, :both] if layer.heads is None else layer.heads(qkv[:, :both])
            rotated = torch.addcmul(unrotated * cos, unrotated.roll(dim // 2, -1), sin)
            mixed = attend(
                rotated[:, :heads],
                key,
                rotated[:, heads:].transpose(0, 1),
                value,
                qkv[:, both:].transpose(0, 1),
            )
            x = layer.out.added(mixed.reshape(count, heads * dim), x)
            gate_up = layer.gate_up.times(layer.after(x))
            x = layer.down.added(F.silu(gate_up[:, :inner]) * gate_up[:, inner:], x)
        states = whole.norm(x[count - rows :])
        return whole.head.times(states), states


def _mask(count: int, end: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """[count, end]: 0 where a new token may attend, −∞ at later positions."""
    mask = torch.zeros(count, end, dtype=dtype, device=device)
    mask[:, end - count :].fill_(float("-inf")).triu_(1)
    return mask
