"""What a model needs counts a conversation beside the weights, and says so."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import pytest
import transformers

from lab.equality.tiny import ARCHITECTURES
from omnidemo.backends.fused_llama import FusedLlama
from omnidemo.core.config import Settings
from omnidemo.models import catalogue, memory_need, model_files
from omnidemo.models.gguf_model import GgufModel
from omnidemo.models.load import ModelError, load_model
from omnidemo.models.memory_need import (
    MARGIN,
    Need,
    cache_bytes,
    least_need,
    smaller,
    whole_need,
)
from omnidemo.models.model_files import TooLarge
from omnidemo.models.transformers_runner import TransformersRunner
from tests.support.gguf_files import tiny_model, write_gguf
from tests.support.models import save
from tests.support.runners import make, some_ids

SMOL = transformers.LlamaConfig(
    hidden_size=576, num_hidden_layers=30, num_attention_heads=9, num_key_value_heads=3,
    intermediate_size=1536,
    max_position_embeddings=8192,
)  # fmt: skip


@pytest.mark.parametrize("shape", ARCHITECTURES)
def test_the_bytes_of_a_conversation_are_those_that_a_cache_takes(shape: str) -> None:
    model = make(shape)
    cache = TransformersRunner(model).new_cache()
    cache.forward(some_ids(40), 0)
    assert cache_bytes(model.config, 40, 4) == cache.nbytes > 0
    if FusedLlama.fits(model.config):
        runner = FusedLlama(model)
        buffer = runner.new_cache()
        assert cache_bytes(model.config, buffer._kv.capacity, 4) == buffer.nbytes


def test_one_key_head_for_all_and_sizes_that_are_not_said() -> None:
    falcon = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
    assert (
        cache_bytes(
            transformers.FalconConfig(**falcon, multi_query=True, new_decoder_architecture=False), 10, 2
        )
        == 2 * 2 * 8 * 10 * 2
    )
    several = transformers.FalconConfig(**falcon, new_decoder_architecture=True, num_kv_heads=2)
    assert cache_bytes(several, 10, 2) == 2 * 2 * 2 * 8 * 10 * 2
    assert cache_bytes(transformers.PretrainedConfig(), 10, 4) == 0


def test_the_least_is_a_conversation_of_2048_tokens_and_the_whole_one_of_the_window() -> None:
    weights = 134_515_008 * 4
    least, whole = least_need(weights, SMOL, 4), whole_need(weights, SMOL, 4)
    assert (
        whole.conversation == 377_487_360
        and whole.positions == 8192
        and least.conversation * 4 == whole.conversation
    )
    assert str(whole) == "about 1.0 GB, 0.4 of it for a conversation of 8,192 tokens,"
    assert str(Need(2e9, 1e6, 600)) == "about 2.0 GB"
    said = "about 2.7 GB, 0.1 of it for a conversation of 2,048 tokens and 0.6 for the process that learns,"
    assert str(Need(2e9, 1e8, 2048, 6e8)) == said
    small = transformers.LlamaConfig(max_position_embeddings=512)
    assert least_need(0, small, 2) == whole_need(0, small, 2) and least_need(0, small, 2).positions == 512


def test_a_model_is_refused_where_its_weights_and_a_short_conversation_do_not_fit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    folder = Path(save(tmp_path / "model", "byte-level", window=200_000))
    config, weights = (
        transformers.AutoConfig.from_pretrained(folder),
        4 * model_files.count_parameters(folder),
    )
    least, whole = least_need(weights, config, 4), whole_need(weights, config, 4)
    assert least.conversation > 1e6 and whole.conversation > 1e8

    def load_with(free: float) -> Callable[[], object]:
        monkeypatch.setattr(model_files, "free_memory", lambda device: int(free))
        return lambda: load_model(str(folder), device="cpu")

    with pytest.raises(ModelError, match="needs about"):
        load_with(least.total - 1)()
    with caplog.at_level(logging.WARNING, logger=memory_need.__name__):
        assert load_with(least.total + 1)().context == 200_000  # type: ignore[attr-defined]
        assert "0.1 of it for a conversation of 200,000 tokens and 0.0 GB are free" in caplog.text
        caplog.clear()
        load_with(whole.total + 1)()
        assert not caplog.text


def test_packed_weights_need_what_the_header_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before any weight is read: in the picker, and where it is refused."""
    file = write_gguf(tmp_path / "m.gguf", tiny_model(head_dim=32, hidden_size=128, vocab_size=9000), "Q4_1",
                      metadata={"llama.attention.key_length": 32, "llama.attention.value_length": 32,
                          "tokenizer.ggml.tokens": None})  # fmt: skip
    model = GgufModel(file)
    assert model.packed_bytes is not None and model.packed_bytes < 0.7 * model.parameters
    settings = Settings(target=str(file), drafter="bundled/drafter", device="cpu", backend="auto")
    weights = {"auto": model.packed_bytes, "neither": 4 * model.parameters}
    for compact, size in weights.items():
        chosen = settings.model_copy(update={"compact": compact})
        (card,) = [card for card in catalogue.list_models(chosen, scan=False) if card.name == model.name]
        kept = 2 if compact == "auto" else 4
        assert card.memory_bytes == int(MARGIN * size + cache_bytes(model.config, 128, kept))
    need = least_need(model.packed_bytes, model.config, 2, 5e8)
    monkeypatch.setattr(model_files, "free_memory", lambda device: int(need.total) - 1000)
    with pytest.raises(TooLarge, match=r"such as bundled/large, or free memory") as error:
        load_model(str(file), device="cpu", packed=True, learning=5e8)
    assert "0.5 for the process that learns, and cpu has 0.5 GB free" in str(error.value)
    assert error.value.short == pytest.approx(1000, abs=1)
    smol = "gguf/SmolLM2-135M-Instruct-Q4_1-f469ec9e"
    assert smaller(model.name, 3e8) == "a smaller model, such as SmolLM2 135M Instruct"
    assert smaller(smol, 3e8) == smaller(model.name, 1e8) == "a smaller model, such as bundled/large"


@pytest.mark.parametrize("kind", ["gemma2", "phi3"])
def test_other_models_are_not_packed(kind: str, tmp_path: Path) -> None:
    options = {"pad_token_id": None} if kind == "phi3" else {}
    keys = {f"{kind}.attention.sliding_window": 8} if kind == "gemma2" else {}
    file = write_gguf(tmp_path / "m.gguf", tiny_model(kind, **options), "Q8_0", kind, keys)
    model = GgufModel(file)
    assert model.packed_bytes is None
    assert load_model(str(file), device="cpu", packed=True).memory_bytes == 4 * model.parameters


def test_the_picker_counts_a_conversation_that_fills_the_window(tmp_path: Path) -> None:
    folder = Path(save(tmp_path / "model", "byte-level", window=50_000))
    settings = Settings(target=str(folder), device="cpu", dtype="float32")
    (card,) = [card for card in catalogue.list_models(settings, scan=False) if card.name == str(folder)]
    config = transformers.AutoConfig.from_pretrained(folder)
    assert card.parameters is not None and card.conversation_bytes == cache_bytes(config, 50_000, 4) > 0
    assert card.memory_bytes == int(4 * card.parameters * MARGIN + card.conversation_bytes)
