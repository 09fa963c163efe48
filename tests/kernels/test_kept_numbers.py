"""Keys and values of a conversation: float16 where the arithmetic is int8, written anew where others
read them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from omnidemo.backends import compile_kernels, fused_llama
from omnidemo.backends.fused_llama import FusedCache, FusedLlama
from omnidemo.models.load import load_model
from tests.kernels.test_integer_passes import ROOT, integers_of
from tests.kernels.test_packed_passes import runner_of, written
from tests.support.runners import some_ids

POSITIONS = 2000


def kind(cache: FusedCache) -> tuple[torch.dtype, bool]:
    return cache._kv.buffer.dtype, cache._kv.turned


@pytest.mark.parametrize("arithmetic", ["float32", "int8"])
def test_a_conversation_goes_on_when_compiled_code_comes_and_when_it_goes(
    arithmetic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fused_llama, "START", 16)
    path = written(tmp_path, "Q8_0")
    runner = integers_of(path) if arithmetic == "int8" else runner_of(path)
    ids = some_ids(120)
    wanted = np.asarray(runner.new_cache().forward(ids, 120).logits)
    cache, found = runner.new_cache(), []
    compiled = torch.float16 if arithmetic == "int8" else torch.float32, True
    pieces = (0, 50, True), (50, 80, False), (80, 81, True), (81, 110, True), (110, 120, False)
    for begin, end, ready in pieces:
        with monkeypatch.context() as patched:
            if not ready:
                patched.setattr(compile_kernels, "_ready", None)
            found.append(np.asarray(cache.forward(ids[begin:end], end - begin).logits))
            assert kind(cache) == (compiled if ready else (torch.float32, False))
    moved = np.abs(np.concatenate(found) - wanted).max(-1)
    # those that torch read in float32 are near what int8 says, no nearer
    assert np.median(moved) < (0.05 if arithmetic == "int8" else 1e-4) * np.abs(wanted).max()
    if arithmetic == "int8":
        assert (moved[:50] == 0).all()


def test_a_buffer_of_other_numbers_is_not_taken_again(tmp_path: Path) -> None:
    path = written(tmp_path, "Q4_K")
    runner = integers_of(path)
    half, whole = runner.new_cache(), runner_of(path).new_cache()
    assert kind(half) == (torch.float16, True) and 2 * half.nbytes == whole.nbytes
    del half
    assert runner.kv_pool.idle
    name = "model.layers.0.mlp.up_proj.weight"
    runner.overwrite({name: runner.weights()[name] * 1})
    assert kind(runner.new_cache()) == (torch.float32, True)


def first_choices(runner: FusedLlama, ids: list[int]) -> np.ndarray:
    cache, found = runner.new_cache(), []
    for begin in range(0, len(ids), 250):
        part = ids[begin : begin + 250]
        logits = np.asarray(cache.forward(part, len(part)).logits)
        assert np.isfinite(logits).all()
        found.append(logits.argmax(-1))
    return np.concatenate(found)


@pytest.mark.long
@pytest.mark.qwen
@pytest.mark.timeout(1200)
def test_qwen_chooses_with_float16_keys_what_it_chooses_with_float32_keys(
    qwen_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its keys have large biases. In float32: in int8 any other rounding of an activation turns more
    (`lab/notebook/long-chats.md`)."""
    model = load_model(str(qwen_file), device="cpu", packed=True, arithmetic="float32")
    text = "\n".join((ROOT / name).read_text("utf-8") for name in ("README.md", "docs/kernels.md"))
    ids = model.tokenizer.encode(text)[:POSITIONS]
    assert isinstance(model.runner, FusedLlama) and len(ids) == POSITIONS
    wanted = first_choices(model.runner, ids)
    monkeypatch.setattr(FusedCache, "_kind", lambda self: (torch.float16, True))
    assert (first_choices(model.runner, ids) == wanted).mean() >= 0.99
