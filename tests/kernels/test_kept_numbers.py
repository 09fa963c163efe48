"""Keys and values of a conversation: float16 for packed weights."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from omnidemo.backends import compile_kernels, fused_llama
from omnidemo.backends.fused_llama import FusedLlama
from omnidemo.models.load import load_model
from tests.kernels.test_integer_passes import ROOT
from tests.kernels.test_packed_passes import runner_of, written
from tests.support.runners import some_ids

POSITIONS = 2000


@pytest.mark.parametrize("packed", [True, False])
def test_a_conversation_keeps_the_numbers_and_passes_with_which_it_began(
    packed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its buffer grows several times, and compiled code comes meanwhile."""
    monkeypatch.setattr(fused_llama, "START", 16)
    runner, ids = runner_of(written(tmp_path, "Q8_0"), packed), some_ids(120)
    whole = runner.new_cache()
    wanted = np.asarray(whole.forward(ids, 120).logits)
    assert whole._kv.buffer.dtype == (torch.float16 if packed else torch.float32)
    with monkeypatch.context() as patched:
        if not packed:  # else there is no cache without compiled code
            patched.setattr(compile_kernels, "_ready", None)
        cache = runner.new_cache()
    pieces = (0, 50), (50, 80), (80, 81), (81, 110), (110, 120)
    found = np.concatenate(
        [np.asarray(cache.forward(ids[begin:end], end - begin).logits) for begin, end in pieces]
    )
    assert cache.compiled == packed and cache._kv.buffer.dtype == whole._kv.buffer.dtype
    assert np.abs(found - wanted).max() <= (0 if packed else 1e-4 * np.abs(wanted).max())


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
    model = load_model(str(qwen_file), device="cpu")
    text = "\n".join((ROOT / name).read_text("utf-8") for name in ("README.md", "docs/kernels.md"))
    ids = model.tokenizer.encode(text)[:POSITIONS]
    assert isinstance(model.runner, FusedLlama) and len(ids) == POSITIONS
    wanted = first_choices(model.runner, ids)
    monkeypatch.setattr(model.runner, "form", "packed")  # of which a cache is in float16
    assert (first_choices(model.runner, ids) == wanted).mean() >= 0.99
