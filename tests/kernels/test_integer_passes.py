"""Passes in the arithmetic int8: a row has the bits that it has alone, and they are near float32."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from omnidemo import load_pair
from omnidemo.backends import compiled_passes
from omnidemo.backends.call_layout import SPAN
from omnidemo.backends.fused_llama import FusedLlama
from omnidemo.core.config import Settings
from omnidemo.decoding.methods import METHODS, fitting
from omnidemo.models.load import LanguageModel, load_model
from tests.kernels.test_packed_passes import TYPES, logits, runner_of, written
from tests.support.models import save

QUIET: dict[str, Any] = {"learn": False, "reuse": False, "max_new_tokens": 24}
ROOT = Path(__file__).parents[2]
WINDOW = 512  # positions that are read at once
MOST_KL = 5e-3


def integers_of(path: Path) -> FusedLlama:
    runner = load_model(str(path), device="cpu", packed=True).runner
    assert isinstance(runner, FusedLlama)
    return runner


@pytest.mark.parametrize("kind", TYPES)
def test_a_row_has_the_bits_that_it_has_alone(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a pass of any number of rows, wherever a prompt is cut, by one thread and by two."""
    runner = integers_of(written(tmp_path, kind))
    assert runner.form == "packed"
    ids = np.random.default_rng(1).integers(0, runner.rows, 120).tolist()
    alone = np.concatenate(logits(runner, [[token] for token in ids]))
    for threads in (1, 2):
        monkeypatch.setattr(compiled_passes, "WORTH_SHARING", 0 if threads == 2 else 10**12)
        monkeypatch.setattr(compiled_passes.thread_pool, "pick_size", lambda given=0, n=threads: n - 1)
        for sizes in ((120,), (87, 33), (*range(1, 15), 15), (16, 12, 17, 75)):
            ends = np.cumsum(sizes)
            pieces = [ids[end - size : end] for size, end in zip(sizes, ends, strict=True)]
            found = np.concatenate(logits(runner, pieces))
            assert np.array_equal(found, alone), (threads, sizes)


@pytest.mark.parametrize("kind", TYPES)
def test_it_is_near_float32(kind: str, tmp_path: Path) -> None:
    """`lab layers` holds each product to numpy's, see `lab/test_layers.py`."""
    path = written(tmp_path, kind)
    plain, runner = runner_of(path, packed=False), integers_of(path)
    ids = np.random.default_rng(2).integers(0, runner.rows, 40).tolist()
    wanted, found = (np.concatenate(logits(one, [ids])) for one in (plain, runner))
    moved = np.median(np.abs(wanted - found).max(-1))
    assert 1e-4 < moved / np.abs(wanted).max() < 0.05, "another arithmetic"


def test_activations_that_are_no_numbers_make_no_logits(tmp_path: Path) -> None:
    """What the probe at load refuses, as in float32."""
    runner = integers_of(written(tmp_path, "Q4_1"))
    assert runner.passes is not None
    buffer = torch.zeros(runner.buffer_size(SPAN))
    buffer[0, 1, :, 0] = float("nan")
    runner.extend_rope(8)
    found = runner.passes.forward([5], 1, buffer.numpy(), 1)
    assert found is not None and np.isnan(found[0]).all()


@pytest.fixture(scope="module")
def drafter(tmp_path_factory: pytest.TempPathFactory) -> str:
    return save(tmp_path_factory.mktemp("drafter") / "drafter", "sentence-piece", seed=1)


def test_guessing_writes_what_plain_decoding_writes(tmp_path: Path, drafter: str) -> None:
    """As in float32: greedily, and with a seed at any temperature."""
    path, quiet = written(tmp_path, "Q4_K"), Settings(training="off")
    pair = load_pair(str(path), drafter, arithmetic="int8", device="cpu", settings=quiet)
    assert pair.summary()["target_arithmetic"] == "int8"
    exact = [name for name in fitting(pair.map) if METHODS[name].lossless]
    assert len(exact) > 1 and "autoregressive" in exact
    for prompt in ("the other ducks", "12 + 34 ="):
        for temperature in (0.0, 1.0, 3.0):
            answers = {
                name: pair.generate(prompt, method=name, temperature=temperature, seed=5, **QUIET).token_ids
                for name in exact
                if METHODS[name].coupled or not temperature
            }
            assert all(ids == answers["autoregressive"] for ids in answers.values()), (temperature, answers)


def test_settings_name_the_arithmetic(tmp_path: Path, drafter: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = str(written(tmp_path, "Q8_0"))
    asked = {"training": "off", "device": "cpu"}
    for one in ("int8", "float32"):
        monkeypatch.setenv("OMNIDEMO_ARITHMETIC", one)
        assert load_pair(path, drafter, settings=Settings(**asked)).summary()["target_arithmetic"] == one  # type: ignore[arg-type]
    plain = Settings(**asked, backend="reference")  # type: ignore[arg-type]
    assert "target_arithmetic" not in load_pair(path, drafter, settings=plain).summary()
    monkeypatch.setenv("OMNIDEMO_ARITHMETIC", "int4")
    with pytest.raises(ValueError, match="arithmetic"):
        Settings()


def log_probs(model: LanguageModel, ids: list[int]) -> np.ndarray[Any, Any]:
    """[positions, V] in float64, of windows that follow each other."""
    found = []
    for begin in range(0, len(ids), WINDOW):
        part = ids[begin : begin + WINDOW]
        row = np.asarray(model.runner.new_cache().forward(part, len(part)).logits).astype(np.float64)
        row -= row.max(-1, keepdims=True)
        found.append(row - np.log(np.exp(row).sum(-1, keepdims=True)))
    return np.concatenate(found)


def near_float32(path: Path, positions: int) -> None:
    """On real text: what int8 expects is what float32 expects, within the bound of the project."""
    plain, other = (load_model(str(path), device="cpu", packed=one) for one in (False, True))
    text = "\n".join((ROOT / name).read_text("utf-8") for name in ("README.md", "docs/kernels.md"))
    ids = plain.tokenizer.encode(text)[: positions + 1]
    wanted, found = (log_probs(model, ids[:positions]) for model in (plain, other))
    divergence = (np.exp(wanted) * (wanted - found)).sum(-1).mean()
    assert 0 < divergence <= MOST_KL
    inside = [at for at in range(positions) if (at + 1) % WINDOW]
    losses = [-one[inside, [ids[at + 1] for at in inside]].mean() for one in (wanted, found)]
    assert abs(losses[0] - losses[1]) <= 0.03, "of so few positions"


@pytest.mark.smollm2
def test_smollm2_says_what_it_says_in_float32(smollm2_file: Path) -> None:
    near_float32(smollm2_file, WINDOW // 2)


@pytest.mark.long
@pytest.mark.qwen
def test_qwen_says_what_it_says_in_float32(qwen_file: Path) -> None:
    near_float32(qwen_file, 128)
