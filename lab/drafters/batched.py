"""Many answers at once: one pass of some dozen rows, each of another answer, per step.

The products are those of the app, in its arithmetic, so what is written is what the app would write. A row of
many costs as much as a token of a prompt. So a large target's own answers cost no more than labels for those
of another model, which it would have to read.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lab.drafters.training.pause import hold
from omnidemo.backends import compile_kernels
from omnidemo.backends.call_layout import SPAN
from omnidemo.backends.fused_llama import FusedLlama

TOP = 16  # most probable tokens of each row that are kept
NUCLEUS = 64  # most probable tokens of which one is drawn under top-k and top-p
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
    top_k: int = 0


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
    keys_values: NDArray[Any]  # [layers, 2, Hkv, T, D], T a multiple of SPAN


class BatchedWriter:
    """Writes answers of a model with compiled passes in rows of `rows`, with prompts and answers of at most
    `positions` tokens. `loops`: how often a group of tokens may come before the answer ends; 0: for ever.
    `pause`: nothing is computed while this file exists. ValueError for a model without compiled passes."""

    def __init__(
        self, runner: FusedLlama, ends: Iterable[int], rows: int = 48, positions: int = 1024,
        loops: int = LOOPS, pause: Path | None = None,
    ) -> None:  # fmt: skip
        passes = runner.passes
        if passes is None or not compile_kernels.wait():
            why = compile_kernels.failure() or "it is not on a CPU"
            raise ValueError(f"its passes cannot be compiled ({why}); many answers are written by such alone")
        # here, where there is machine code: see there
        from lab.drafters.batched_pass import step

        self.runner, self.passes, self.compiled, self.pause = runner, passes, step, pause
        self.ends, self.positions, self.loops = frozenset(ends), positions, loops
        # one of each row, and one for a prompt that is read
        capacity, halves = -(-positions // SPAN) * SPAN, runner.arithmetic == "int8"
        size = (rows + 1, *runner.buffer_size(capacity))
        self.caches: NDArray[Any] = np.zeros(size, np.float16 if halves else np.float32)
        self.logits = np.empty((rows, runner.rows), np.float32)
        self.slots: list[_Row | None] = [None] * rows
        runner.extend_rope(capacity)

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
                    self.caches[slot, :, :, :, : new.keys_values.shape[3]] = new.keys_values
                    self.slots[slot] = new.row
            active = [(slot, row) for slot, row in enumerate(self.slots) if row is not None]
            if not active:
                return
            hold(self.pause)
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
        if len(prompt) + 2 > self.positions or not orders:
            return
        hold(self.pause)
        buffer = self.caches[-1]
        found = self.passes.forward(prompt, 0, buffer, 1)
        assert found is not None
        keys_values = buffer[:, :, :, : -(-len(prompt) // SPAN) * SPAN].copy()
        rows = [_Row(order, prompt, np.random.default_rng(order.seed)) for order in orders]
        self._choose(rows, torch.from_numpy(found[0]).expand(len(rows), -1))
        for row in rows:
            yield _Waiting(row, keys_values)

    def _step(self, active: list[tuple[int, _Row]]) -> Tensor:
        """Logits [rows, V] behind each row's next token, which is written with it."""
        for _, row in active:
            row.ids.append(row.next_id)
        slots = np.array([slot for slot, _ in active])
        places = np.array([len(row.prompt) + len(row.ids) - 1 for _, row in active])
        ids, logits = np.array([row.next_id for _, row in active]), self.logits[: len(active)]
        model = self.passes.model(self.caches[-1])
        first, each = self.caches.ctypes.data, self.caches[0].nbytes
        self.passes.call(self.compiled, len(active), model, first, each, slots, places, ids, logits)
        return torch.from_numpy(logits)

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
            if row.order.top_p < 1.0 or row.order.top_k or row.order.penalty != 1.0:
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
    """A row's next token under a repetition penalty, top-k and top-p, from its `NUCLEUS` most probable
    ones."""
    order = row.order
    if order.penalty != 1.0:
        seen = torch.tensor(sorted(set(row.ids)), dtype=torch.int64)
        logits = logits.clone()
        logits[seen] = torch.where(
            logits[seen] > 0, logits[seen] / order.penalty, logits[seen] * order.penalty
        )
    values, ids = logits.topk(min(NUCLEUS, order.top_k or NUCLEUS))
    if order.temperature <= 0:
        return int(ids[0])
    probs = (values / order.temperature).softmax(-1).double()
    before = probs.cumsum(-1) - probs
    probs = torch.where(before < order.top_p, probs, 0.0)
    place = torch.searchsorted(probs.cumsum(-1), row.generator.random() * probs.sum(), right=True)
    return int(ids[min(int(place), len(ids) - 1)])
