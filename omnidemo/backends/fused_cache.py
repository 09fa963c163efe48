"""One context of the fused Llama: its keys and values, and the passes over them."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from omnidemo.backends import compile_kernels
from omnidemo.backends.call_layout import SPAN
from omnidemo.backends.runner import check_ids
from omnidemo.backends.weight_arena import ROWS, as_array
from omnidemo.core.resources import usable_cores
from omnidemo.decoding.backend import Pass
from omnidemo.decoding.rollout import Rollout, RolloutRequest
from omnidemo.decoding.sampling import Logits

if TYPE_CHECKING:
    from omnidemo.backends.fused_llama import FusedLlama

START = 256  # positions of a new cache's buffer, which doubles when they are used up
# factor of START on a CPU, where untouched memory costs nothing, and moving a buffer costs as much as a pass
CPU_START = 4
# smaller models fit into a core's cache, and their products end before another thread has woken up
SMALL = 4_000_000


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
            and (fixed := runner.fixed.read(runner, self._kv, ids, start, rows)) is not None
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


LARGE = 100_000_000  # larger models keep half of the cores busy


def pick_threads(parameters: int) -> int:
    """CPU threads for a forward pass of torch. Small matrices are done before another thread has woken up,
    and more threads than idle cores cost far more than they gain, so half of the cores is the most."""
    most = max(1, usable_cores() // 2)
    return 1 if parameters < SMALL else min(2, most) if parameters < LARGE else most
