"""Qwen2.5-Coder-1.5B-Instruct by its names, from its file. No weights are read."""

from __future__ import annotations

from pathlib import Path

import pytest

from omnidemo.core.config import Settings
from omnidemo.models.catalogue import list_models
from omnidemo.models.gguf import sources
from omnidemo.models.load import load_model
from omnidemo.models.names import resolve

pytestmark = pytest.mark.qwen
KNOWN = "gguf/Qwen2.5-Coder-1.5B-Instruct-Q4_K_M-6dbf11a0"


def test_its_names(qwen_file: Path) -> None:
    for name in ("qwen2.5-coder-1.5b", "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf", KNOWN, str(qwen_file)):
        assert resolve(name, Settings()).name == KNOWN
    found = sources.find("qwen2.5-coder-1.5b", Settings().folders)
    assert (found.title, found.licence, found.author) == ("Qwen2.5-Coder 1.5B Instruct", "Apache-2.0", "Qwen")
    assert found.bytes == 1_117_320_768 and not found.reason


def test_what_it_is(qwen_file: Path) -> None:
    model = load_model(str(qwen_file), absent=True)
    assert (model.name, model.context, model.chat, model.learns) == (KNOWN, 32_768, True, False)
    assert model.parameters == sources.find(str(qwen_file)).parameters == 1_777_088_000
    text = "naïve 東京 🎉\n\tx = 17 * 23"
    ids = model.vocabulary.encode_text(text)
    assert ids and b"".join(model.vocabulary.writes(one) for one in ids) == text.encode()  # type: ignore[misc]
    asked = model.tokenizer.apply_chat_template([{"role": "user", "content": "Hi"}], tokenize=False)
    assert asked.endswith("<|im_start|>user\nHi<|im_end|>\n")


def test_it_is_listed(qwen_file: Path) -> None:
    card = next(one for one in list_models(Settings(device="cpu")) if one.name == KNOWN)
    assert card.bytes == 1_117_320_768 and card.type == "Q4_K_M" and card.role == "target"
