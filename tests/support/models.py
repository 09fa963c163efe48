"""Small random models saved to disk."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import torch
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

from tests.support.tokenizer_families import FAMILIES

PROMPT = "the other ducks swim — naïve ✓"


def save(
    folder: Path, family: str, kind: str = "llama", seed: int = 0, window: int = 256, ends: bool = True
) -> str:
    """A random model with a tokenizer of the family; its logits rows exceed the tokenizer, as padded
    vocabularies do.

    Without `ends` the end token is so unlikely that greedy answers are as long as they may be.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in _files(family, kind, seed, window, ends).items():
        (folder / name).write_bytes(data)
    torch.manual_seed(seed)
    return str(folder)


@cache
def _files(family: str, kind: str, seed: int, window: int, ends: bool) -> dict[str, bytes]:
    """What `save` writes, made once: many tests want the same model."""
    tokenizer = FAMILIES[family]()
    torch.manual_seed(seed)
    ids = {
        "bos_token_id": tokenizer.bos_token_id,
        "eos_token_id": tokenizer.eos_token_id,
        "pad_token_id": tokenizer.pad_token_id,
    }
    if kind == "llama":
        size = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 2}
        config = LlamaConfig(
            vocab_size=len(tokenizer) + 3,
            max_position_embeddings=window,
            initializer_range=0.3,
            **size,
            **ids,
        )
        model = LlamaForCausalLM(config)
        if not ends:
            model.lm_head.weight.data[tokenizer.eos_token_id] = 0.0
    else:
        gpt = GPT2Config(
            vocab_size=len(tokenizer) + 3,
            n_positions=window,
            n_embd=32,
            n_layer=2,
            n_head=2,
            initializer_range=0.3,
            **ids,
        )
        model = GPT2LMHeadModel(gpt)
    with TemporaryDirectory() as room:
        model.save_pretrained(room)
        tokenizer.save_pretrained(room)
        return {path.name: path.read_bytes() for path in Path(room).iterdir()}


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """Folders of a random target, whose greedy answers are as long as they may be, and of a drafter with
    another vocabulary."""
    root = tmp_path_factory.mktemp("models")
    return save(root / "target", "byte-level", ends=False), save(root / "drafter", "sentence-piece", seed=1)
