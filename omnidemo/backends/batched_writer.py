"""Many answers at once: one pass of some dozen rows, each of another answer, per step.

The products are those of the app, in its arithmetic, so what is written is what the app would write. A row of
many costs as much as a token of a prompt. So a large target's own answers cost no more than labels for those
of another model, which it would have to read.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import takewhile
from operator import eq
from typing import Any

import numpy as np
from numpy.typing import NDArray

from omnidemo.backends import compile_kernels
from omnidemo.backends.call_layout import SPAN
from omnidemo.backends.fused_llama import FusedLlama

LEAST = 0.01  # probability of a token that becomes a label
NEAR = 16.0  # below the highest logit ÷ temperature; what lies lower is never drawn
GROUP, LOOPS = 8, 4  # an answer ends when it writes a group of so many tokens for the so-manieth time


@dataclass(slots=True)
class Order:
    """An answer to be written to the prompt `id` of a set: temperature 0 is greedy. `seed` decides what is
    drawn. `penalty`: repetition penalty within the answer."""

    set: str
    id: str
    seed: int
    length: int
    temperature: float = 0.0
    top_p: float = 1.0
    penalty: float = 1.0
    top_k: int = 0


@dataclass(slots=True)
class WrittenAnswer:
    """What was written to the prompt `id` of a set. `labels` [tokens, K] are the most probable tokens at each
    place, `probs` their probabilities at temperature 1; −1 and 0 where there are fewer. Without labels it is
    a text that people wrote. `reason`: end, length or loop."""

    set: str
    id: str
    temperature: float
    reason: str
    prompt: list[int]
    ids: list[int]
    labels: NDArray[np.int32] | None = None
    probs: NDArray[np.float32] | None = None
    penalty: float = 1.0

    @property
    def order(self) -> str:
        return order_of(self.set, self.id, self.temperature)


def order_of(name: str, prompt: str, temperature: float) -> str:
    """The name of an answer: of its set, of its prompt there, and how it is written."""
    return f"{name}/{prompt}/{'drawn' if temperature > 0 else 'greedy'}"


@dataclass(slots=True)
class _Row:
    order: Order
    prompt: list[int]
    generator: np.random.Generator
    next_id: int = 0
    ids: list[int] = field(default_factory=list)
    labels: list[NDArray[np.int64]] = field(default_factory=list)
    probs: list[NDArray[np.float32]] = field(default_factory=list)
    groups: Counter[tuple[int, ...]] = field(default_factory=Counter)


@dataclass(slots=True)
class _Waiting:
    row: _Row
    keys_values: NDArray[Any]  # [layers, 2, Hkv, T, D], T a multiple of SPAN


class BatchedWriter:
    """Writes answers of a model with compiled passes in rows of `rows`, with prompts and answers of at most
    `positions` tokens. `labels`: most of them at a token. `loops`: how often a group of tokens may come
    before the answer ends; 0: for ever. `hold`: called before each pass; it may wait, and what it raises ends
    the work. ValueError for a model without compiled passes."""

    def __init__(
        self, runner: FusedLlama, ends: Iterable[int], rows: int = 48, positions: int = 1024,
        labels: int = 4, loops: int = LOOPS, hold: Callable[[], object] = lambda: None,
    ) -> None:  # fmt: skip
        passes = runner.passes
        if passes is None or not compile_kernels.wait():
            why = compile_kernels.failure() or "it is not on a CPU"
            raise ValueError(f"its passes cannot be compiled ({why}); many answers are written by such alone")
        # here, where there is machine code: see there
        from omnidemo.backends.batched_pass import step

        self.runner, self.passes, self.compiled, self.hold = runner, passes, step, hold
        self.ends, self.positions, self.labels, self.loops = frozenset(ends), positions, labels, loops
        # one of each row, and one for a prompt that is read
        capacity, halves = -(-positions // SPAN) * SPAN, runner.form == "packed"
        size = (rows + 1, *runner.buffer_size(capacity))
        self.caches: NDArray[Any] = np.zeros(size, np.float16 if halves else np.float32)
        self.logits, self.stats = np.empty((rows, runner.rows), np.float32), np.empty((rows, 4), np.float32)
        self.read: list[int] = []  # what the last cache holds
        self.slots: list[_Row | None] = [None] * rows
        runner.extend_rope(capacity)

    def write(self, orders: Iterable[tuple[list[int], list[Order]]]) -> Iterator[WrittenAnswer]:
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
            self.hold()
            self._step(active)
            for number, (slot, row) in enumerate(active):
                self._choose(row, self.logits[number], self.stats[number])
                if reason := self._ended(row):
                    self.slots[slot] = None
                    yield _answer(row, reason, self.labels)

    def _ended(self, row: _Row) -> str:
        group = tuple(row.ids[-GROUP:])
        row.groups[group] += 1
        if row.next_id in self.ends:
            row.ids.append(row.next_id)
            return "end"
        if len(row.ids) >= row.order.length:
            row.labels.pop()
            row.probs.pop()
            return "length"
        if self.loops and row.groups[group] >= self.loops and len(row.ids) > GROUP:
            row.labels.pop()
            row.probs.pop()
            return "loop"
        return ""

    def _read(self, prompt: list[int], orders: list[Order]) -> Iterator[_Waiting]:
        """Read a prompt once, for all that is to be written to it."""
        if len(prompt) + max(order.length for order in orders) > self.positions:
            return
        self.hold()
        buffer = self.caches[-1]
        # every prompt begins as the one before: with the chat template's words
        known = len(list(takewhile(bool, map(eq, self.read, prompt[:-1]))))
        found = self.passes.forward(prompt[known:], known, buffer, 1, 1.0)
        assert found is not None and found[2] is not None
        self.read = prompt
        keys_values = buffer[:, :, :, : -(-len(prompt) // SPAN) * SPAN].copy()
        for order in orders:
            row = _Row(order, prompt, np.random.default_rng(order.seed))
            self._choose(row, found[0][0], found[2].numbers[0])
            yield _Waiting(row, keys_values)

    def _step(self, active: list[tuple[int, _Row]]) -> None:
        """Logits behind each row's next token, which is written with it, and their `RowStats`."""
        for _, row in active:
            row.ids.append(row.next_id)
        slots = np.array([slot for slot, _ in active])
        places = np.array([len(row.prompt) + len(row.ids) - 1 for _, row in active])
        ids, count = np.array([row.next_id for _, row in active]), len(active)
        model = self.passes.model(self.caches[-1])
        first, each = self.caches.ctypes.data, self.caches[0].nbytes
        self.passes.call(
            self.compiled, count, model, first, each, slots, places, ids, self.logits[:count],
            self.stats[:count],
        )  # fmt: skip

    def _choose(self, row: _Row, logits: NDArray[np.float32], stats: NDArray[np.float32]) -> None:
        """A row's next token, and what is probable there."""
        best, high, mass, _ = stats.tolist()
        found = np.flatnonzero(logits >= high + math.log(LEAST * mass))
        found = found[np.argsort(-logits[found], kind="stable")][: self.labels]
        row.next_id = _drawn(row, logits) if row.order.temperature > 0 else int(best)
        row.labels.append(found)
        row.probs.append(np.exp(logits[found] - high) / mass)


def _answer(row: _Row, reason: str, most: int) -> WrittenAnswer:
    order, there = row.order, np.arange(most) < np.array([len(one) for one in row.labels])[:, None]
    labels, probs = np.full(there.shape, -1, np.int32), np.zeros(there.shape, np.float32)
    labels[there], probs[there] = np.concatenate(row.labels), np.concatenate(row.probs)
    return WrittenAnswer(
        order.set, order.id, order.temperature, reason, row.prompt, row.ids, labels, probs, order.penalty
    )


def _drawn(row: _Row, logits: NDArray[np.float32]) -> int:
    """A row's next token under a repetition penalty, top-k and top-p."""
    order = row.order
    if order.penalty != 1.0:
        logits, seen = logits.copy(), np.array(row.ids, np.int64)
        logits[seen] *= np.where(logits[seen] > 0, 1 / order.penalty, order.penalty)
    near = np.flatnonzero(logits > logits.max() - NEAR * order.temperature)
    near = near[np.argsort(-logits[near], kind="stable")][: order.top_k or None]
    probs = np.exp((logits[near] - logits[near[0]]).astype(float) / order.temperature)
    sums = probs.cumsum() / probs.sum()
    kept = sums[: 1 + np.searchsorted(sums, order.top_p)]
    return int(near[np.searchsorted(kept, row.generator.random() * kept[-1], side="right")])
