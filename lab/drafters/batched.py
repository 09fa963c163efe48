"""Many answers at once: one pass of some dozen rows, each of another answer, per step.

A product of 48 rows in bfloat16 takes three times as long as one of a single row. Two processes of one thread
each write half as much again as one of two threads. What is written is not quite what the model in float32
writes: its products are rounded. For a drafter to learn from that does not matter.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from lab.drafters import batched_attention
from omnidemo.backends.fused_llama import FusedLlama
from omnidemo.backends.weight_arena import Matrix

TOP = 16  # most probable tokens of each row that are kept
NUCLEUS = 64  # most probable tokens of which one is drawn under top-p
GROUP, LOOPS = 8, 4  # an answer ends when it writes a group of so many tokens for the so-manieth time


@dataclass(slots=True)
class Order:
    """An answer to be written: temperature 0 is greedy. `seed` decides what is drawn. `penalty`: repetition
    penalty within the answer."""

    id: str
    temperature: float
    seed: int
    length: int
    top_p: float = 1.0
    penalty: float = 1.0


@dataclass(slots=True)
class Answer:
    """What was written. `top` are the most probable tokens [tokens, TOP] before each, `logprobs` their
    log-probabilities at temperature 1. `reason`: end, length or loop."""

    order: Order
    prompt: list[int]
    ids: list[int]
    top: NDArray[np.int32]
    logprobs: NDArray[np.float16]
    reason: str


@dataclass(slots=True)
class _Row:
    order: Order
    prompt: list[int]
    generator: np.random.Generator
    next_id: int = 0
    ids: list[int] = field(default_factory=list)
    top: list[NDArray[np.int32]] = field(default_factory=list)
    logprobs: list[NDArray[np.float16]] = field(default_factory=list)
    groups: Counter[tuple[int, ...]] = field(default_factory=Counter)


@dataclass(slots=True)
class _Waiting:
    row: _Row
    keys_values: Tensor  # [layers, 2, Hkv, T, D]


class _Product:
    """A matrix in bfloat16; where oneDNN computes such products, laid out as it reads `rows` rows fastest."""

    def __init__(self, matrix: Matrix, rows: int) -> None:
        self.weight = matrix.weight.detach().to(torch.bfloat16)
        self.bias = None if matrix.bias is None else matrix.bias.detach().to(torch.bfloat16)
        self.laid_out = torch.backends.mkldnn.is_available() and bool(
            torch.ops.mkldnn._is_mkldnn_bf16_supported()
        )
        if self.laid_out:
            self.weight = torch.ops.mkldnn._reorder_linear_weight(self.weight, rows)

    def __call__(self, x: Tensor) -> Tensor:
        if not self.laid_out:
            return F.linear(x, self.weight, self.bias)
        return torch.ops.mkldnn._linear_pointwise(x, self.weight, self.bias, "none", [], "")


class BatchedWriter:
    """Writes answers of a `FusedLlama` on a CPU in rows of `rows`, with prompts and answers of at most
    `positions` tokens. `loops`: how often a group of tokens may come before the answer ends; 0: for ever."""

    def __init__(
        self,
        runner: FusedLlama,
        ends: Iterable[int],
        rows: int = 48,
        positions: int = 1024,
        loops: int = LOOPS,
    ) -> None:
        def product(matrix: Matrix) -> _Product:
            return _Product(matrix, rows)

        self.runner, self.ends, self.positions, self.loops = runner, frozenset(ends), positions, loops
        self.layers = [
            (
                layer.before.weight,
                product(layer.qkv),
                layer.heads,
                product(layer.out),
                layer.after.weight,
                product(layer.gate_up),
                product(layer.down),
            )
            for layer in runner.layers
        ]
        self.embed, self.head = runner.embed, product(runner.head)
        self.caches = torch.zeros(
            len(self.layers), 2, rows, runner.kv_heads, positions, runner.head_dim, dtype=torch.bfloat16
        )
        self.bits = self.caches.view(torch.int16).numpy().view(np.uint16)
        self.slots: list[_Row | None] = [None] * rows
        runner.extend_rope(positions)
        self.cos, self.sin = runner.rope  # [positions, 1, D]

    @torch.inference_mode()
    def write(self, orders: Iterable[tuple[list[int], list[Order]]]) -> Iterator[Answer]:
        """The answers to prompts' ids, each prompt with its orders, in the order in which they end. Too long
        prompts are left out."""
        source, waiting = iter(orders), deque[_Waiting]()
        while True:
            for slot in range(len(self.slots)):
                while self.slots[slot] is None:
                    while not waiting:
                        found = next(source, None)
                        if found is None:
                            break
                        waiting.extend(self._read(*found))
                    if not waiting:
                        break
                    new = waiting.popleft()
                    if new.row.next_id in self.ends:  # says nothing
                        continue
                    length = new.keys_values.shape[3]
                    self.caches[:, :, slot, :, :length] = new.keys_values
                    self.slots[slot] = new.row
            active = [(slot, row) for slot, row in enumerate(self.slots) if row is not None]
            if not active:
                return
            self._choose([row for _, row in active], self._step(active))
            for slot, row in active:
                reason = self._ended(row)
                if reason:
                    self.slots[slot] = None
                    yield Answer(
                        row.order, row.prompt, row.ids, np.stack(row.top), np.stack(row.logprobs), reason
                    )

    def _ended(self, row: _Row) -> str:
        group = tuple(row.ids[-GROUP:])
        row.groups[group] += 1
        if row.next_id in self.ends:
            row.ids.append(row.next_id)
            return "end"
        if len(row.ids) >= row.order.length or len(row.prompt) + len(row.ids) >= self.positions:
            row.top.pop()
            row.logprobs.pop()
            return "length"
        if self.loops and row.groups[group] >= self.loops and len(row.ids) > GROUP:
            row.top.pop()
            row.logprobs.pop()
            return "loop"
        return ""

    def _read(self, prompt: list[int], orders: list[Order]) -> Iterator[_Waiting]:
        """Read a prompt once, for all that is to be written to it."""
        count, runner = len(prompt), self.runner
        if count + 2 > self.positions or not orders:
            return
        cos, sin = self.cos[:count], self.sin[:count]
        kept: list[Tensor] = []

        def attend(layer: int, queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
            q, k, v = (part.transpose(0, 1).to(torch.bfloat16) for part in (queries, keys, values))
            kept.append(torch.stack([k, v]))
            return F.scaled_dot_product_attention(
                q[None], k[None], v[None], is_causal=True, enable_gqa=runner.heads > runner.kv_heads
            )[0].transpose(0, 1)

        states = self._pass(torch.tensor(prompt), cos, sin, attend)[-1:]
        logits, keys_values = self.head(states.to(torch.bfloat16)).float(), torch.stack(kept)
        rows = [_Row(order, prompt, np.random.default_rng(order.seed)) for order in orders]
        self._choose(rows, logits.expand(len(rows), -1))
        for row in rows:
            yield _Waiting(row, keys_values)

    def _step(self, active: list[tuple[int, _Row]]) -> Tensor:
        """Logits [rows, V] behind each row's next token, which is written with it."""
        for _, row in active:
            row.ids.append(row.next_id)
        places = torch.tensor([len(row.prompt) + len(row.ids) - 1 for _, row in active])
        slots = torch.tensor([slot for slot, _ in active])
        runner = self.runner
        scale, lengths, rows_of = runner.head_dim**-0.5, (places + 1).numpy(), slots.numpy()

        def attend(layer: int, queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
            cache = self.caches[layer]
            cache[0, slots, :, places] = keys.to(torch.bfloat16)
            cache[1, slots, :, places] = values.to(torch.bfloat16)
            mixed = np.empty(queries.shape, np.float32)
            batched_attention.attend((queries * scale).numpy(), *self.bits[layer], rows_of, lengths, mixed)
            return torch.from_numpy(mixed).to(torch.bfloat16)

        tokens = torch.tensor([row.next_id for _, row in active])
        states = self._pass(tokens, self.cos[places], self.sin[places], attend)
        return self.head(states.to(torch.bfloat16)).float()

    def _pass(self, tokens: Tensor, cos: Tensor, sin: Tensor, attend) -> Tensor:  # type: ignore[no-untyped-def]
        """The normalised last states [T, H]; see `FusedLlama.run`. The residual stream is float32."""
        runner, eps = self.runner, self.runner.eps
        heads, dim, both = runner.heads, runner.head_dim, runner.heads + runner.kv_heads
        x, half = F.embedding(tokens, self.embed), torch.bfloat16
        for number, (before, qkv, head_norms, out, after, gate_up, down) in enumerate(self.layers):
            mixed = (
                qkv(F.rms_norm(x, before.shape, before, eps).to(half))
                .float()
                .view(len(x), both + runner.kv_heads, dim)
            )
            turned = mixed[:, :both] if head_norms is None else head_norms(mixed[:, :both])
            turned = torch.addcmul(turned * cos, turned.roll(dim // 2, -1), sin)
            seen = attend(number, turned[:, :heads], turned[:, heads:], mixed[:, both:])
            x = x + out(seen.reshape(len(x), heads * dim))
            gate, up = gate_up(F.rms_norm(x, after.shape, after, eps).to(half)).chunk(2, -1)
            x = x + down(F.silu(gate) * up)
        return F.rms_norm(x, runner.norm.weight.shape, runner.norm.weight, eps)

    def _choose(self, rows: list[_Row], logits: Tensor) -> None:
        """Each row's next token, and what was most probable there."""
        values, ids = logits.topk(TOP)
        highest = values[:, :1]
        logprobs = (
            (values - highest - (logits - highest).exp_().sum(-1, keepdim=True).log_())
            .to(torch.float16)
            .numpy()
        )
        best = ids.to(torch.int32).numpy()
        picked: dict[int, int] = {}
        for number, row in enumerate(rows):
            if row.order.top_p < 1.0 or row.order.penalty != 1.0:
                picked[number] = _filtered(row, logits[number])
        drawn = [
            number for number, row in enumerate(rows) if row.order.temperature > 0 and number not in picked
        ]
        if drawn:
            heat = torch.tensor([rows[number].order.temperature for number in drawn])[:, None]
            mass = ((logits[drawn] - highest[drawn]) / heat).exp_().cumsum(-1)
            uniform = torch.tensor(
                [rows[number].generator.random() for number in drawn], dtype=torch.float32
            )[:, None]
            places = torch.searchsorted(mass, uniform * mass[:, -1:], right=True).clamp_(
                max=logits.shape[1] - 1
            )
            picked |= zip(drawn, places[:, 0].tolist(), strict=True)
        for number, row in enumerate(rows):
            row.next_id = picked[number] if number in picked else int(best[number, 0])
            row.top.append(best[number])
            row.logprobs.append(logprobs[number])


def _filtered(row: _Row, logits: Tensor) -> int:
    """A row's next token under a repetition penalty and top-p, from its `NUCLEUS` most probable ones."""
    order = row.order
    if order.penalty != 1.0:
        seen = torch.tensor(sorted(set(row.ids)), dtype=torch.int64)
        logits = logits.clone()
        logits[seen] = torch.where(
            logits[seen] > 0, logits[seen] / order.penalty, logits[seen] * order.penalty
        )
    values, ids = logits.topk(NUCLEUS)
    if order.temperature <= 0:
        return int(ids[0])
    probs = (values / order.temperature).softmax(-1).double()
    before = probs.cumsum(-1) - probs
    probs = torch.where(before < order.top_p, probs, 0.0)
    place = torch.searchsorted(probs.cumsum(-1), row.generator.random() * probs.sum(), right=True)
    return int(ids[min(int(place), NUCLEUS - 1)])
