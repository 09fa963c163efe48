"""Passes of fixed shape read as the general ones do, whatever lies in the buffer; recordings are kept, found
again and given up."""

from __future__ import annotations

import gc
import logging
import random
from copy import deepcopy
from typing import Any

import numpy as np
import pytest
import torch

from omnidemo.backends import fused_llama
from omnidemo.backends.fused_llama import FusedCache, FusedLlama
from omnidemo.backends.weight_arena import ROWS
from tests.support.fake_graphs import CUDA, recorded
from tests.support.runners import LEAN, close, make, reference, some_ids
from tests.support.worlds import copy_nothing


def general(model: Any) -> FusedLlama:
    runner = FusedLlama(model)
    runner.passes = runner.fixed = None
    return runner


@pytest.fixture(autouse=True)
def nothing_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    copy_nothing(monkeypatch)


@pytest.fixture(params=LEAN)
def shape(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.parametrize(("dtype", "bound"), [(torch.float32, 1e-5), (torch.bfloat16, 0.05)])
def test_any_sequence_of_passes_and_rollbacks(
    shape: str, dtype: torch.dtype, bound: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fused_llama, "START", 32)  # so that the buffers grow: 32, 64, 128, 256
    model = make(shape).to(dtype)
    runner, notes = recorded(model)
    cache, plain = runner.new_cache(), general(make(shape).to(dtype)).new_cache()
    chance = random.Random(0)
    ids: list[int] = []
    compared: list[tuple[np.ndarray, np.ndarray]] = []
    for step in range(150):
        count = chance.randint(1, ROWS)
        rows = chance.choice((0, 1, count))
        new = some_ids(count, seed=step)
        ids += new
        left, right = cache.forward(new, rows).logits, plain.forward(new, rows).logits
        assert (
            left.dtype == np.float32
            and left.shape == right.shape
            and cache.length == plain.length == len(ids)
        )
        if rows:
            assert close(left, right, bound)
            assert step % 10 or close(left, reference(model, ids)[-rows:], bound)  # which has no cache at all
            compared.append((left, left.copy()))
        del ids[max(0, len(ids) - chance.randint(0, 12)) :]
        if len(ids) > 240:
            ids = ids[: chance.randint(0, 200)]
        cache.trim(len(ids))
        plain.trim(len(ids))
    assert notes.repeated > 50 and runner.fixed is not None and set(runner.kv_pool.idle) == {32, 64, 128}
    assert all(np.array_equal(kept, copy) for kept, copy in compared)  # no later pass writes into an answer


def test_the_next_conversation_finds_the_recordings(shape: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fused_llama, "START", 32)
    model = make(shape)
    runner, notes = recorded(model)
    fixed = runner.fixed
    assert fixed is not None

    def converse(seed: int, length: int) -> None:
        ids = some_ids(length, seed)
        cache = runner.new_cache()
        rows = [
            cache.forward(ids[:20], 1).logits[0],
            *(cache.forward([one], 1).logits[0] for one in ids[20:]),
        ]
        assert close(np.stack(rows), reference(model, ids)[19:])

    converse(1, 70)
    gc.collect()
    assert sorted(runner.kv_pool.idle) == [32, 64, 128] and notes.made == 3
    with torch.inference_mode():
        for room in runner.kv_pool.idle.values():
            room.buffer.fill_(torch.nan)  # a model that overflowed
    converse(2, 100)
    gc.collect()
    assert sorted(runner.kv_pool.idle) == [32, 64, 128] and notes.made == 3 and notes.repeated > 100

    one, two = runner.new_cache(), runner.new_cache()  # at once: each has its own
    assert one._kv is not two._kv and one._kv.passes and not two._kv.passes and 32 not in runner.kv_pool.idle
    kept = one._kv
    del one, two
    gc.collect()
    assert runner.kv_pool.idle[32] is kept  # and one of them stays


def test_the_next_conversation_takes_the_memory_of_the_last_one() -> None:
    model = make("llama")
    runner = fused_llama.FusedLlama(model)
    first = runner.new_cache()
    kept, ids = first._kv, some_ids(40, 3)
    first.forward(ids, 1)
    del first
    gc.collect()
    with torch.inference_mode():
        kept.buffer.fill_(torch.nan)  # what lies there is never looked at
    second, third = runner.new_cache(), runner.new_cache()
    assert second._kv is kept and third._kv is not kept
    assert close(
        np.concatenate([second.forward(ids[:30], 30).logits, second.forward(ids[30:], 10).logits]),
        reference(model, ids),
    )


def test_new_weights_are_seen(shape: str) -> None:
    model, other = make(shape), make(shape)
    runner, notes = recorded(model)
    with torch.no_grad():
        changed = {name: weight + torch.randn_like(weight) * 0.1 for name, weight in other.named_parameters()}
    other.load_state_dict(changed, strict=False)
    ids = some_ids(12)
    cache = runner.new_cache()
    for _ in range(3):
        cache.trim(0)
        before = cache.forward(ids, 5).logits
    assert close(before, reference(model, ids)[-5:])
    runner.overwrite(changed)
    cache.trim(0)
    made = notes.made
    after = cache.forward(ids, 5).logits
    assert (
        close(after, reference(other, ids)[-5:])
        and not close(after, before, 1e-2)
        and notes.made == made == 1
    )


def test_a_first_answer_does_not_wait_for_a_recording() -> None:
    runner, notes = recorded(make("llama"))
    cache = runner.new_cache()
    for count in (1, 2, 3):
        cache.forward(some_ids(count), 1)
    assert notes.made == notes.repeated == 0
    cache.forward(some_ids(2), 1)
    assert notes.made == notes.repeated == 1
    cache.forward(some_ids(ROWS + 1), 1)
    cache.forward(some_ids(ROWS + 1), 1)
    assert notes.made == 1  # prompts are never recorded


def test_a_recording_that_fails_is_given_up_with_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    model = make("qwen2")
    runner, notes = recorded(model)
    ids = some_ids(40)
    wanted = reference(model, ids)
    cache = runner.new_cache()
    cache.forward(ids[:10], 0)
    rows = [cache.forward([one], 1).logits[0] for one in ids[10:20]]
    assert notes.repeated == 9
    notes.fail = RuntimeError("operation not permitted when stream is capturing")
    with caplog.at_level(logging.WARNING):
        for start in range(20, 40, 2):
            rows += [*cache.forward(ids[start : start + 2], 2).logits]
    assert close(np.stack(rows), wanted[10:])
    assert [record.getMessage() for record in caplog.records] == [
        "Passes of this model cannot be recorded (operation not permitted when stream is capturing); it goes"
        " on without, at a higher cost per token."
    ]
    cache.forward([1], 1)
    assert notes.repeated == 9


def test_copies_have_their_own(shape: str) -> None:
    runner, _ = recorded(make(shape))
    cache, ids = runner.new_cache(), some_ids(9)
    wanted = [cache.forward([one], 1).logits for one in ids][-1]
    for copied in (runner.copy(), deepcopy(runner)):
        assert copied.fixed is None  # on a CPU nothing is recorded
        assert close(copied.new_cache().forward(ids, 1).logits, wanted)
        copied.overwrite({"model.norm.weight": torch.zeros(32)})
    cache.trim(0)
    assert close([cache.forward([one], 1).logits for one in ids][-1], wanted)


# Where there is a CUDA device
# ---------------------------------------------------------------------------------------------------


@CUDA
@pytest.mark.parametrize(("dtype", "bound"), [(torch.float32, 1e-4), (torch.bfloat16, 0.05)])
def test_graphs_on_a_device(
    shape: str, dtype: torch.dtype, bound: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fused_llama, "START", 32)
    runner = FusedLlama(make(shape).to("cuda", dtype))
    plain = general(make(shape).to("cuda", dtype)).new_cache()
    assert runner.fixed is not None
    for conversation in range(2):  # the second one finds the graphs of the first
        cache = runner.new_cache()
        plain.trim(0)
        ids = some_ids(120, seed=conversation)
        start = 0
        kept: list[tuple[np.ndarray, np.ndarray]] = []
        for count in [20, *(1, 1, 5, 1, 2, 5, 16) * 3]:
            left, right = (
                one.forward(ids[start : start + count], min(count, 5)).logits for one in (cache, plain)
            )
            assert close(left, right, bound)
            kept.append((left, left.copy()))
            back = min(count - 1, 2)
            start += count - back
            for one in (cache, plain):
                one.trim(start)
        assert all(np.array_equal(one, copy) for one, copy in kept)
        assert runner.fixed.record is not None and len(_passes(cache)) >= 2  # nothing was given up
        del cache
    assert runner.kv_pool.idle


@CUDA
def test_new_weights_and_copies_on_a_device() -> None:
    model = make("qwen2").to("cuda")
    runner = FusedLlama(model)
    cache, ids = runner.new_cache(), some_ids(8)
    for _ in range(3):
        cache.trim(0)
        before = cache.forward(ids, 3).logits
    assert _passes(cache)
    copied = deepcopy(runner)
    runner.overwrite({"model.norm.weight": torch.zeros(32, device="cuda")})
    cache.trim(0)
    assert float(np.abs(cache.forward(ids, 3).logits).max()) == 0.0
    assert close(copied.new_cache().forward(ids, 3).logits, before, 1e-4)


def _passes(cache: FusedCache) -> dict[tuple[int, int], Any]:
    return cache._kv.passes
