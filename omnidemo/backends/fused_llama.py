"""A forward pass for Llama, Qwen2 and Qwen3 shapes in few torch calls: at batch 1 the host's overhead per
call decides the speed.

Computes what `transformers` computes, layer by layer: x += Wo·attention(rope(Wqkv·norm(x))); x +=
Wd·(silu(gate)·up).
"""

from __future__ import annotations

import threading
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
from omnidemo.backends.weight_arena import ROWS, Layer, Matrix, Norm, Packed, Whole, as_array
from omnidemo.core.config import Arithmetic
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
        self.two_bytes, self.rounds_weights = True, rounding and self._fits_twice()
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
        two = self.two_bytes and self._fits_twice() and self._exact()
        return ["bfloat16", "float32"] if two else ["float32"]

    def matrices(self) -> Iterator[Tensor]:
        """The matrices of each layer in the order of a pass, then the output layer's."""
        for layer in self.layers:
            yield from (layer.qkv.weight, layer.out.weight, layer.gate_up.weight, layer.down.weight)
        yield self.head.weight

    def _exact(self) -> bool:
        """Whether bfloat16 holds all matrices exactly."""
        return all(torch.equal(one, one.to(torch.bfloat16).to(one.dtype)) for one in self.matrices())

    def _fits_twice(self) -> bool:
        """Whether two-byte copies of the weights can be used here: float32 on a CPU, and copies of at most
        half of the free memory."""
        small_enough = 2 * self.parameters < free_memory() / 2
        return self.device.type == "cpu" and self.dtype == torch.float32 and small_enough

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
            with torch.no_grad():
                for weight in self.matrices():
                    weight.copy_(weight.to(torch.bfloat16))
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
        whole = self._held()  # once: it may be given up meanwhile
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
    a length. Its numbers are float16 with the arithmetic `int8`, else of the runner's dtype. Compiled passes
    need the keys of SPAN positions transposed ([D, SPAN], see `call_layout.Cache`), so the buffer is
    rewritten when compiled code becomes ready."""

    def __init__(self, runner: FusedLlama) -> None:
        self.runner, self.max_positions = runner, runner.max_positions
        self.length = 0
        self._enter(min(START * (CPU_START if runner.fixed is None else 1), self.max_positions))

    def _kind(self) -> tuple[torch.dtype, bool]:
        """The dtype of a buffer for the passes of now, and whether its keys are transposed."""
        runner = self.runner
        dtype = torch.float16 if runner.arithmetic == "int8" else runner.dtype
        return dtype, runner.passes is not None and compile_kernels.kernels() is not None

    @property
    def nbytes(self) -> int:
        """See `KVCache`."""
        return self._kv.buffer.nbytes

    def _enter(self, capacity: int) -> None:
        """Take a KV buffer for `capacity` positions. It returns to the pool when the next one is taken, or
        the cache is collected."""
        runner, (dtype, turned) = self.runner, self._kind()
        capacity = -(-capacity // SPAN) * SPAN if turned else capacity
        runner.extend_rope(capacity)
        self._kv = runner.kv_pool.take(runner.buffer_size(capacity), dtype)
        self._kv.turned = turned
        self._leave = weakref.finalize(self, runner.kv_pool.give, self._kv)
        self._leave.atexit = False
        self.array = as_array(self._kv.buffer)

    @torch.inference_mode()
    def _hold(self, end: int) -> None:
        """Have a KV buffer for `end` positions in the layout of the passes, with all keys and values so far.
        Old and new buffer exist together for a moment: on a CPU, where untouched positions cost nothing, that
        is twice the positions read; on CUDA one and a half times the new buffer."""
        before, leave, capacity = self._kv, self._leave, self._kv.capacity
        if end <= capacity and (before.buffer.dtype, before.turned) == self._kind():
            return
        while capacity < end:
            capacity *= 2
        self._enter(min(capacity, self.max_positions))
        before.copy_to(self._kv, self.length)
        leave()

    def forward(self, ids: Sequence[int], last: int, stats_at: float | None = None) -> Pass:
        """See `KVCache`."""
        found = self._compiled(ids, last, stats_at)
        if found is not None:
            return found
        logits, hidden = self._read(ids, last)
        self.length += len(ids)
        return Pass(logits, None, hidden)

    def _compiled(self, ids: Sequence[int], rows: int, temperature: float | None = None) -> Pass | None:
        """Read `ids` by compiled code; None without any (the KV buffer is then large enough for `ids`)."""
        runner = self.runner
        check_ids(ids, self.length, self.max_positions, runner.rows)
        end = self.length + len(ids)
        self._hold(end)
        found = (
            runner.passes.forward(ids, self.length, self.array, rows, temperature)
            if runner.passes is not None and self._kv.turned
            else None
        )
        if found is None:
            return None
        logits, hidden, stats = found
        self.length = end
        return Pass(logits if stats is not None else torch.from_numpy(logits), stats, hidden)

    @torch.inference_mode()
    def _read(self, ids: Sequence[int], rows: int) -> tuple[Tensor, Any]:
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
            logits, states = runner.forward(tokens, start, self._kv.buffer[:, :, :, : start + len(ids)], rows)
        return logits.float().cpu(), states

    @property
    def rolls(self) -> bool:
        """Whether `roll_out` can serve: passes are compiled, or will be."""
        return self.runner.passes is not None

    def roll_out(
        self, order: RolloutRequest, ids: Sequence[int], row: Logits | None, state: Any
    ) -> Rollout | None:
        """Read `ids` and draw on; without ids, from the logits `row` [D] and the hidden `state` [H] after
        everything read. The length grows by the ids alone: later tokens count as read when a caller sets the
        length. A rollout without draws where only the ids could be read. None, and nothing has changed, where
        the window is too short, or nothing is compiled yet."""
        runner = self.runner
        end = self.length + len(ids) + order.left + order.rule.overrun
        if end > self.max_positions or runner.passes is None:
            return None
        if ids:
            check_ids(ids, self.length, self.max_positions, runner.rows)
        self._hold(end)
        if not self._kv.turned:
            return None
        rollout = runner.passes.roll_out(self.length, self.array, order, ids, row, state)
        self.length += len(ids) if rollout is not None else 0
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
