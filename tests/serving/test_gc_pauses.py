"""Memory goes back to the system: what threads have freed, and the rooms of conversations."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import pytest
import torch

from omnidemo.backends.kv_buffers import KVBufferPool
from omnidemo.serving import gc_pauses
from omnidemo.ui import guard
from tests.ui.test_guard import launched

needs_proc = pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is read from /proc")
MEGABYTE = 2**20


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def in_a_thread(work: Any) -> None:
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


@needs_proc
@pytest.mark.skipif(gc_pauses._malloc_trim() is None, reason="not glibc's allocator")
def test_what_threads_freed_goes_back() -> None:
    kept: list[bytes] = []

    def work() -> None:
        blocks = [os.urandom(1) * 100_000 for _ in range(2000)]
        kept.append(blocks[-1])  # behind all others, so that the C library keeps them

    gc_pauses.give_back()
    before = resident()
    in_a_thread(work)
    held = resident() - before
    gc_pauses.give_back()
    # of 200; what earlier tests freed is used first, and may go meanwhile
    assert held > 50 * MEGABYTE and resident() - before < held / 4


@needs_proc
def test_a_conversations_room_costs_what_was_written_and_goes_back() -> None:
    large = torch.empty(31 * MEGABYTE, dtype=torch.uint8)
    del large  # from now on the C library cuts blocks of that size out of a larger piece, and keeps it
    size, pool = (8, 2, 4, 1024, 64), KVBufferPool(torch.device("cpu"))
    rooms: list[Any] = []
    behind: list[torch.Tensor] = []

    def fill() -> None:
        for _ in range(2):
            room = pool.take(size, torch.float32)
            room.buffer.fill_(1.0)
            rooms.append(room)
            behind.append(torch.ones(MEGABYTE))

    in_a_thread(fill)
    full = resident()
    rooms.clear()
    assert full - resident() > 30 * MEGABYTE
    empty = resident()
    in_a_thread(lambda: rooms.append(pool.take(size, torch.float32)))
    rooms[0].buffer[:, :, :, :16] = 1.0
    assert resident() - empty < 4 * MEGABYTE and float(rooms[0].buffer[:, :, :, 16:].abs().sum()) == 0


def test_the_app_gives_memory_back_while_it_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = threading.Semaphore(0)
    monkeypatch.setattr(guard, "GIVE_BACK_SECONDS", 0.05)
    monkeypatch.setattr(gc_pauses, "give_back", given.release)
    with launched(tmp_path):
        assert all(given.acquire(timeout=20) for _ in range(2))
