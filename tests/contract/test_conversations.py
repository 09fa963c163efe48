"""Idle conversations are kept as far as their memory goes, and the memory of those that leave goes back."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from omnidemo.backends import fused_llama
from omnidemo.backends.fused_llama import FusedLlama
from omnidemo.decoding.sources.text_index import TextIndex
from omnidemo.decoding.state import DecodingState
from omnidemo.pair.conversation_pool import IDLE_CONVERSATIONS, Conversations
from tests.support.runners import make, some_ids

EACH = 100 + 20 + TextIndex().nbytes  # bytes of a conversation: both caches, and what finds copies


class Runner:
    """Caches of a given size, and spare buffers."""

    device, parameters = torch.device("cpu"), 1

    def __init__(self, size: int, spare: int = 0) -> None:
        self.size, self.spared = size, spare

    def new_cache(self) -> Any:
        return SimpleNamespace(nbytes=self.size, length=0, trim=lambda length: 0)

    def spare(self, most: int) -> int:
        self.spared = min(self.spared, most)
        return self.spared


def kept(conversations: Conversations, runner: Runner, count: int) -> list[int]:
    """Which of so many conversations, given back one after another, are idle in the end."""
    states = [conversations.take([], False, "default", runner) for _ in range(count)]  # type: ignore[arg-type]
    for number, state in enumerate(states):
        state.target.ids = [number]
        conversations.give_back(state)
    return [state.target.ids[0] for state in conversations._idle]


@pytest.mark.parametrize(
    ("most", "newest"),
    [
        (99 * EACH, list(range(12 - IDLE_CONVERSATIONS, 12))),
        (3 * EACH, [9, 10, 11]),
        (3 * EACH - 1, [10, 11]),
        (EACH - 1, [11]),
        (0, [11]),
    ],
)
def test_the_newest_that_fit_are_kept_and_always_one(most: int, newest: list[int]) -> None:
    target, drafter = Runner(100), Runner(20)
    assert kept(Conversations(target, None, most), drafter, 12) == newest  # type: ignore[arg-type]


def test_spare_buffers_are_freed_before_a_conversation_is() -> None:
    target, drafter = Runner(100, spare=70), Runner(20, spare=70)
    conversations = Conversations(target, None, 3 * EACH + 40)  # type: ignore[arg-type]
    assert kept(conversations, drafter, 3) == [0, 1, 2]
    assert target.spared + drafter.spared == 40 and not conversations.running


def test_the_buffers_of_a_grown_conversation_go_back_to_the_system(monkeypatch: pytest.MonkeyPatch) -> None:
    """But for the smallest, which the next one begins with."""
    monkeypatch.setattr(fused_llama, "START", 16)
    runner = FusedLlama(make("llama"))
    cache = runner.new_cache()
    first = cache._kv
    for _ in range(5):
        cache.forward(some_ids(40), 0)  # 64, 128, 256
    assert cache._kv.capacity == 256 and list(runner.kv_pool.idle) == [64]
    del cache
    gc.collect()
    assert runner.kv_pool.idle == {64: first} and runner.spare(10**9) == first.buffer.nbytes
    assert runner.spare(first.buffer.nbytes - 1) == 0 and not runner.kv_pool.idle


def test_a_pair_bounds_its_conversations(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    from omnidemo import load_pair
    from omnidemo.core.config import Settings
    from tests.support.models import save

    folders = save(tmp_path / "target", "byte-level"), save(tmp_path / "drafter", "sentence-piece", seed=1)
    pair = load_pair(*folders, settings=Settings(conversations_mb=1))
    idle: Sequence[DecodingState] = ()
    for number in range(IDLE_CONVERSATIONS + 2):
        pair.generate(f"{number} the small duck", max_new_tokens=2, reuse=False)
        idle = pair._conversations._idle
        assert sum(state.nbytes for state in idle) <= 1 << 20
    assert 0 < len(idle) < IDLE_CONVERSATIONS


def test_a_chat_finds_its_own_conversation_beside_a_longer_one_that_begins_alike() -> None:
    conversations = Conversations(Runner(1), None, 100)  # type: ignore[arg-type]
    for ids in ([1, 2, 3, 4, 5, 6, 7, 8, 9, 9], [1, 2, 3, 4]):
        state = conversations.take([], False, "default", Runner(1))  # type: ignore[arg-type]
        state.target.ids, state.target.cache.length = ids, len(ids) - 1
        conversations.give_back(state)
    assert conversations.take([1, 2, 3, 4, 0], True, "default", Runner(1)) is state  # type: ignore[arg-type]
