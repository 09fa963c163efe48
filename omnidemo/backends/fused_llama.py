"""A forward pass for Llama, Qwen2 and Qwen3 shapes in few torch calls: at batch 1 the host's overhead per
call decides the speed.

Computes what `transformers` computes, layer by layer: x += Wo·attention(rope(Wqkv·norm(x))); x +=
Wd·(silu(gate)·up).
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy, deepcopy
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from omnidemo.backends import compile_kernels
from omnidemo.backends.call_layout import SPAN
from omnidemo.backends.compiled_passes import CompiledPasses, Form
from omnidemo.backends.cuda_graphs import CudaGraphs, GraphCache, Outputs
from omnidemo.backends.kv_buffers import KVBufferPool
from omnidemo.backends.packed_forms import PackedMatrix
from omnidemo.backends.runner import check_ids, overwrite_named
from omnidemo.backends.weight_arena import ROWS, ModelWeights
from omnidemo.core.resources import free_memory, usable_cores
from omnidemo.decoding.backend import Pass
from omnidemo.decoding.rollout import Rollout, RolloutRequest
from omnidemo.decoding.sampling import Logits

START = 256  # positions of a new cache's buffer, which doubles when they are used up
# factor of START on a CPU, where untouched memory costs nothing, and moving a buffer costs as much as a pass
CPU_START = 4
# smaller models fit into a core's cache, and their products end before another thread has woken up
SMALL = 4_000_000
LARGE = 100_000_000  # larger models keep half of the cores busy
# rotary types whose frequencies do not depend on the length read
STATIC_ROPES = ("default", "linear", "llama3", "yarn")
Packed = Mapping[str, PackedMatrix | NDArray[np.float32]]  # by the names of `transformers`
# queries, keys, new keys, values, new values → mixed [T, …, D]
Attend = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], Tensor]


def form_of(model: Any, rounding: bool) -> Form:
    """The form with the fewest bytes in which compiled passes can read the weights of a `transformers` model:
    bfloat16 where these are float32 on a CPU, copies of them take at most half of the free memory, and they
    are exact or `rounding` is allowed, as for drafters."""
    small = model.device.type == "cpu" and model.dtype == torch.float32
    small = small and 2 * sum(one.numel() for one in model.parameters()) < free_memory() / 2
    matrices = [one for one in (*model.model.layers.parameters(), model.lm_head.weight) if one.dim() == 2]
    able = small and (rounding or all(torch.equal(one, one.to(torch.bfloat16).float()) for one in matrices))
    return "bfloat16" if able else "float32"


class FusedLlama:
    """Runs a `LlamaForCausalLM`, `Qwen2ForCausalLM` or `Qwen3ForCausalLM` without its modules. Rotary
    frequencies and their scale are those of the model's `rotary_emb`.

    The weights are held once, in one form for life. Those of `model` become views of the fused ones, so both
    see a change (copies made from them only after `overwrite`). In the form bfloat16 they are rounded, and
    passes read copies of two bytes. Packed weights never change, and only compiled passes read them."""

    def __init__(
        self, model: Any, fast: bool = True, form: Form = "float32", packed: Packed | None = None
    ) -> None:
        """fast: passes may be compiled (on a CPU) or recorded (on CUDA); otherwise torch computes all of
        them. packed: the weights of a `model` without weights, for compiled passes on the CPU."""
        config = model.config
        self.fast, self.packed = fast, packed
        self.form: Form = form if packed is None else "packed"
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
        self._whole = ModelWeights.of(model) if packed is None else None
        self.rows, self.width = map(int, model.lm_head.weight.shape)
        self.tied = model.lm_head.weight is model.model.embed_tokens.weight
        self.depth = len(model.model.layers)
        self.frequencies = model.model.rotary_emb.inv_freq.float().to(self.device)
        self.rope_scale = float(model.model.rotary_emb.attention_scaling)
        self.rope = (torch.empty(0), torch.empty(0))  # rotary cosines and sines [positions, 1, D]
        # most threads of a pass on a CPU; 0: the cores, up to 8, or by the model's size for torch
        self.threads = 0
        self.passes: CompiledPasses | None = None  # on a CPU
        self._refresh()
        cuda = fast and self.device.type == "cuda"
        self.fixed = GraphCache(self.device, CudaGraphs(self.device)) if cuda else None
        self.kv_pool = KVBufferPool(self.device)

    @property
    def whole(self) -> ModelWeights:
        """The weights in torch's form, which packed ones do not have."""
        assert self._whole is not None
        return self._whole

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
        if self.packed is not None:
            return self  # nothing of it changes
        other = FusedLlama(deepcopy(self.whole.model), self.fast, self.form)
        other.threads = self.threads
        return other

    def by_torch(self) -> FusedLlama:
        """A runner of the same weights whose passes torch computes."""
        other = copy(self)
        other.fast, other.passes, other.fixed, other.kv_pool = False, None, None, KVBufferPool(self.device)
        return other

    def __deepcopy__(self, memo: dict[int, Any]) -> FusedLlama:
        return self.copy()  # recorded passes belong to the weights that they were recorded with

    def weights(self) -> dict[str, Tensor]:
        return dict(self.whole.named)

    def overwrite(self, named: Mapping[str, Tensor]) -> None:
        overwrite_named(self.whole.named, named)
        self._refresh()

    @property
    def named(self) -> Packed:
        """The weights by name, in the form in which the file has them."""
        return self.packed or {name: weight.numpy() for name, weight in self.whole.named.items()}

    def _refresh(self) -> None:
        """Update everything derived from the weights."""
        if self.form == "bfloat16":
            with torch.no_grad():
                for weight in self.whole.matrices():
                    weight.copy_(weight.to(torch.bfloat16))
        if self.fast and self.device.type == "cpu" and self.dtype == torch.float32:
            self.passes = CompiledPasses(self)

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
        whole = self.whole
        x = F.embedding(tokens, whole.embed)
        for layer, key, value in zip(whole.layers, keys.unbind(0), values.unbind(0), strict=True):
            qkv = layer.qkv.times(self._normed(x, layer.before)).view(count, both + self.kv_heads, dim)
            unrotated = qkv[:, :both]
            if layer.heads is not None:
                parts = unrotated.split([heads, self.kv_heads], 1)
                unrotated = torch.cat([self._normed(*one) for one in zip(parts, layer.heads, strict=True)], 1)
            rotated = torch.addcmul(unrotated * cos, unrotated.roll(dim // 2, -1), sin)
            mixed = attend(
                rotated[:, :heads],
                key,
                rotated[:, heads:].transpose(0, 1),
                value,
                qkv[:, both:].transpose(0, 1),
            )
            x = x + layer.out.times(mixed.reshape(count, heads * dim))
            gate_up = layer.gate_up.times(self._normed(x, layer.after))
            x = x + layer.down.times(F.silu(gate_up[:, :inner]) * gate_up[:, inner:])
        states = self._normed(x[count - rows :], whole.norm)
        return whole.head.times(states), states

    def _normed(self, x: Tensor, weight: Tensor) -> Tensor:
        """The root mean square norm."""
        return torch.rms_norm(x, weight.shape, weight, self.eps)

    def fixed_pass(self, buffer: Tensor, inputs: Tensor, steps: Tensor, rows: int) -> Outputs:
        """`run` with shapes and addresses that depend only on the number of `steps` and `rows`.

        `inputs` [1 + ROWS] int64 are the first position and the ids; `steps` [T] is 0…T − 1. Keys and values
        are written to `buffer` [layers, 2, Hkv, capacity, D], which must hold numbers everywhere. Attention
        covers all of it, with −∞ at later positions.
        """
        count, capacity, kv_heads, dim = len(steps), buffer.shape[3], self.kv_heads, self.head_dim
        groups = self.heads // kv_heads
        positions = inputs[:1] + steps
        later = torch.arange(capacity, device=buffer.device) > positions[:, None]
        # Query heads that share a key head are rows of one product.
        mask = torch.zeros(groups, count, capacity, dtype=buffer.dtype, device=buffer.device).masked_fill_(
            later, float("-inf")
        )
        mask = mask.view(groups * count, capacity)

        def attend(
            queries: Tensor, keys: Tensor, new_keys: Tensor, values: Tensor, new_values: Tensor
        ) -> Tensor:
            keys.index_copy_(1, positions, new_keys)
            values.index_copy_(1, positions, new_values)
            query = (
                queries.view(count, kv_heads, groups, dim)
                .permute(1, 2, 0, 3)
                .reshape(kv_heads, groups * count, dim)
            )
            scores = torch.baddbmm(mask, query, keys.transpose(1, 2), alpha=dim**-0.5)
            mixed = torch.bmm(scores.softmax(-1, dtype=torch.float32).to(values.dtype), values)
            return mixed.view(kv_heads, groups, count, dim).permute(2, 0, 1, 3)

        return self.run(inputs[1 : 1 + count], *self.rope_at(positions), buffer, rows, attend)


def _mask(count: int, end: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """[count, end]: 0 where a new token may attend, −∞ at later positions."""
    mask = torch.zeros(count, end, dtype=dtype, device=device)
    mask[:, end - count :].fill_(float("-inf")).triu_(1)
    return mask


class FusedCache:
    """One context of a `FusedLlama`: a KV buffer [layers, 2, Hkv, capacity, D], doubled when it is full, and
    a length. Its numbers are float16 for packed weights, else of the runner's dtype. Compiled passes read it
    for life where there is compiled code when it begins: they need the keys of SPAN positions transposed ([D,
    SPAN], see `call_layout.Cache`)."""

    def __init__(self, runner: FusedLlama) -> None:
        self.runner, self.max_positions = runner, runner.max_positions
        self.length = 0
        self.compiled = runner.passes is not None and compile_kernels.kernels() is not None
        self._enter(min(START * (CPU_START if runner.fixed is None else 1), self.max_positions))

    @property
    def nbytes(self) -> int:
        """See `KVCache`."""
        return self._kv.buffer.nbytes

    def _enter(self, capacity: int) -> None:
        """Take a KV buffer for `capacity` positions. It returns to the pool when the next one is taken, or
        the cache is collected."""
        runner = self.runner
        capacity = -(-capacity // SPAN) * SPAN if self.compiled else capacity
        runner.extend_rope(capacity)
        dtype = torch.float16 if runner.form == "packed" else runner.dtype
        self._kv = runner.kv_pool.take(runner.buffer_size(capacity), dtype)
        self._leave = weakref.finalize(self, runner.kv_pool.give, self._kv)
        self._leave.atexit = False
        self.array: Any = self._kv.buffer.numpy() if self.compiled else None

    @torch.inference_mode()
    def _hold(self, end: int) -> None:
        """Have a KV buffer for `end` positions, with all keys and values so far. Old and new buffer exist
        together for a moment: on a CPU, where untouched positions cost nothing, that is twice the positions
        read; on CUDA one and a half times the new buffer."""
        before, leave, capacity = self._kv.buffer, self._leave, self._kv.capacity
        if end <= capacity:
            return
        while capacity < end:
            capacity *= 2
        self._enter(min(capacity, self.max_positions))
        self._kv.buffer[:, :, :, : before.shape[3]].copy_(before)
        leave()

    def forward(self, ids: Sequence[int], last: int, stats_at: float | None = None) -> Pass:
        """See `KVCache`."""
        check_ids(ids, self.length, self.max_positions, self.runner.rows)
        end = self.length + len(ids)
        self._hold(end)
        if not self.compiled:
            logits, hidden = self._read(ids, last)
            found = Pass(logits.float().cpu().numpy(), None, hidden.float().cpu().numpy())
        else:
            assert self.runner.passes is not None
            rows, states, stats = self.runner.passes.forward(ids, self.length, self.array, last, stats_at)
            found = Pass(rows, stats, states)
        self.length = end
        return found

    @torch.inference_mode()
    def _read(self, ids: Sequence[int], rows: int) -> Outputs:
        """Read `ids` by torch: logits [rows, V] and hidden states [rows, H]."""
        runner, start, few = self.runner, self.length, len(ids) <= ROWS
        if (
            few
            and runner.fixed is not None
            and (fixed := runner.fixed.read(runner.fixed_pass, self._kv, ids, start, rows)) is not None
        ):
            return fixed
        tokens = torch.tensor(ids).to(runner.device, non_blocking=True)
        with _threads(runner, few):
            return runner.forward(tokens, start, self._kv.buffer[:, :, :, : start + len(ids)], rows)

    def roll_out(
        self, order: RolloutRequest, ids: Sequence[int], row: Logits | None, state: Any
    ) -> Rollout | None:
        """Read `ids` and draw on; without ids, from the logits `row` [D] and the hidden `state` [H] after
        everything read. The length grows by the ids alone: later tokens count as read when a caller sets the
        length. A rollout without draws where only the ids could be read. None, and nothing has changed, where
        the window is too short, or without compiled passes."""
        end = self.length + len(ids) + order.left + order.rule.overrun
        passes = self.runner.passes
        if end > self.max_positions or passes is None or not self.compiled:
            return None
        if ids:
            check_ids(ids, self.length, self.max_positions, self.runner.rows)
        self._hold(end)
        rollout = passes.roll_out(self.length, self.array, order, ids, row, state)
        self.length += len(ids)
        return rollout

    def trim(self, length: int) -> int:
        """See `KVCache`. Nothing is cleared: positions beyond the length are never read."""
        self.length = min(self.length, length)
        return self.length


@contextmanager
def _threads(runner: FusedLlama, few: bool) -> Iterator[None]:
    """Set torch's threads for a pass that torch computes: few for a short pass, half of the cores for a long
    one."""
    before = torch.get_num_threads()
    suit = runner.threads or pick_threads(runner.parameters)
    most = before if runner.device.type != "cpu" else max(suit, 1 if few else pick_threads(LARGE))
    if most != before:
        torch.set_num_threads(most)
    try:
        yield
    finally:
        if most != before:
            torch.set_num_threads(before)


def pick_threads(parameters: int) -> int:
    """CPU threads for a forward pass of torch. Small matrices are done before another thread has woken up,
    and more threads than idle cores cost far more than they gain, so half of the cores is the most."""
    most = max(1, usable_cores() // 2)
    return 1 if parameters < SMALL else min(2, most) if parameters < LARGE else most
