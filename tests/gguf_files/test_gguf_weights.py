"""A model read from a GGUF file has the weights, the rotary tables and the logits of the model that was
written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM

from omnidemo.backends.runner import ModelError
from omnidemo.models.gguf.architecture import plan_of
from omnidemo.models.gguf.header import read_header
from omnidemo.models.gguf.weights import build_config, build_model, check_shapes
from tests.support.gguf_files import tiny_model, write_gguf

IDS = torch.tensor([[5, 80, 33, 7, 7, 120, 9, 64]])


def read(path: Path, dtype: torch.dtype = torch.float32) -> Any:
    header = read_header(path)
    plan = plan_of(header)
    config = build_config(plan)
    check_shapes(header, plan, config)
    return build_model(header, config, dtype)


GEMMA: dict[str, Any] = {
    "query_pre_attn_scalar": 16,
    "sliding_window": 8,
    "hidden_activation": "gelu_pytorch_tanh",
}
WINDOW = {"attention.sliding_window": 8}
FAMILIES: dict[str, tuple[str, str, dict[str, Any], dict[str, Any]]] = {
    "llama": ("llama", "llama", {}, {}),
    "llama, untied": ("llama", "llama", {"tie_word_embeddings": False}, {}),
    "llama with biases": ("llama", "llama", {"attention_bias": True, "mlp_bias": True}, {}),
    "qwen2": ("qwen2", "qwen2", {}, {}),
    "qwen3": ("qwen3", "qwen3", {}, {}),
    "gemma2": ("gemma2", "gemma2", GEMMA, WINDOW),
    "gemma3": ("gemma3_text", "gemma3", GEMMA | {"num_hidden_layers": 7}, WINDOW),
    "phi3": ("phi3", "phi3", {"pad_token_id": None, "tie_word_embeddings": False}, {}),
}


@pytest.mark.parametrize("family", FAMILIES)
def test_the_model_is_the_one_that_was_written(tmp_path: Path, family: str) -> None:
    kind, architecture, options, keys = FAMILIES[family]
    model = tiny_model(kind, **options)
    if architecture == "gemma3":
        keys = keys | {"rope.freq_base": 1_000_000.0}
    named = {f"{architecture}.{key}": value for key, value in keys.items()}
    path = write_gguf(tmp_path / "m.gguf", model, architecture=architecture, metadata=named)
    found = read(path)
    ours, theirs = dict(found.named_parameters()), dict(model.named_parameters())
    assert ours.keys() == theirs.keys()
    off = 1e-6 if architecture.startswith("gemma") else 0.0  # whose norms are written with 1 added
    for name in ours:
        torch.testing.assert_close(ours[name], theirs[name], atol=off, rtol=0)
    with torch.inference_mode():
        torch.testing.assert_close(found(IDS).logits, model(IDS).logits, atol=1e-4, rtol=0)


@pytest.mark.parametrize("family", ["llama", "qwen2", "qwen3", "gemma2", "gemma3", "phi3"])
def test_the_weights_are_those_that_transformers_reads(tmp_path: Path, family: str) -> None:
    kind, architecture, options, keys = FAMILIES[family]
    if family == "qwen3":  # whose heads `transformers` takes to be of the usual width
        options, keys = (
            options | {"head_dim": 128},
            keys | {"attention.key_length": 128, "attention.value_length": 128},
        )
    named = {f"{architecture}.{key}": value for key, value in keys.items()} | {
        "tokenizer.ggml.padding_token_id": 0
    }
    path = write_gguf(tmp_path / "m.gguf", tiny_model(kind, **options), "Q8_0", architecture, named)
    theirs: Any = AutoModelForCausalLM.from_pretrained(tmp_path, gguf_file=path.name, dtype=torch.float32)
    ours, wanted = read(path).state_dict(), theirs.state_dict()
    assert ours.keys() == wanted.keys()
    for name, values in wanted.items():
        assert torch.equal(ours[name], values), name


def test_only_the_output_bias_may_be_missing_and_is_zero(tmp_path: Path) -> None:
    model = tiny_model(attention_bias=True)
    names = tuple(f"blk.{layer}.attn_output.bias" for layer in range(2))
    found = read(write_gguf(tmp_path / "m.gguf", model, leave_out=names))
    assert not found.model.layers[0].self_attn.o_proj.bias.any()
    with pytest.raises(ModelError, match=r"lacks model\.layers\.0\.self_attn\.v_proj\.bias"):
        read(write_gguf(tmp_path / "n.gguf", model, leave_out=("blk.0.attn_v.bias",)))


def test_rotary_factors_and_scalings_are_read(tmp_path: Path) -> None:
    llama3 = {
        "rope_type": "llama3",
        "rope_theta": 10000.0,
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
    }
    model = tiny_model(rope_parameters=llama3 | {"original_max_position_embeddings": 32})
    plain = tiny_model().model.rotary_emb.inv_freq
    factors = (plain / model.model.rotary_emb.inv_freq).numpy()
    found = read(write_gguf(tmp_path / "a.gguf", model, more={"rope_freqs.weight": factors}))
    torch.testing.assert_close(
        found.model.rotary_emb.inv_freq, model.model.rotary_emb.inv_freq, atol=0, rtol=1e-6
    )
    with torch.inference_mode():
        torch.testing.assert_close(found(IDS).logits, model(IDS).logits, atol=1e-4, rtol=0)

    for kind, keys, wanted in (
        ("linear", {"factor": 4.0}, {}),
        ("yarn", {"factor": 4.0, "original_context_length": 32}, {"original_max_position_embeddings": 32}),
    ):
        scaled = tiny_model(
            rope_parameters={"rope_type": kind, "rope_theta": 10000.0, "factor": 4.0} | wanted
        )
        named = {"llama.rope.scaling.type": kind} | {
            f"llama.rope.scaling.{key}": value for key, value in keys.items()
        }
        again = read(write_gguf(tmp_path / f"{kind}.gguf", scaled, metadata=named))
        with torch.inference_mode():
            torch.testing.assert_close(again(IDS).logits, scaled(IDS).logits, atol=1e-4, rtol=0)

    # As llama.cpp reads them: a factor without a type is linear, also by its name of before there were types;
    # YaRN begins at the window that it was trained with.
    window = tiny_model().config.max_position_embeddings
    for number, (keys, wanted) in enumerate((
        ({"scaling.factor": 4.0}, {"rope_type": "linear", "factor": 4.0}),
        ({"scale_linear": 4.0}, {"rope_type": "linear", "factor": 4.0}),
        ({"scaling.factor": 0.0}, {}),
        ({"scaling.type": "linear"}, {}),
        ({"scaling.type": "none", "scaling.factor": 4.0}, {}),
        ({"scaling.attn_factor": 1.0, "scaling.factor": 2.0}, {"rope_type": "linear", "factor": 2.0}),
        ({"scaling.type": "yarn", "scaling.factor": 4.0},
            {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": window}),
        ({"scaling.type": "yarn", "scaling.attn_factor": 1.5},
            {"rope_type": "yarn", "factor": 1.0, "original_max_position_embeddings": window,
            "attention_factor": 1.5}),
    )):  # fmt: skip
        scaled = tiny_model(rope_parameters={"rope_type": "default", "rope_theta": 10000.0} | wanted)
        named = {f"llama.rope.{key}": value for key, value in keys.items()}
        again = read(write_gguf(tmp_path / f"keys{number}.gguf", scaled, metadata=named))
        with torch.inference_mode():
            torch.testing.assert_close(again(IDS).logits, scaled(IDS).logits, atol=1e-4, rtol=0)
    for number, kind in enumerate((None, "linear", "none", "longrope", "")):
        named = {"llama.rope.scaling.factor": 4.0, "llama.rope.scaling.attn_factor": 1.2}
        named |= {} if kind is None else {"llama.rope.scaling.type": kind}
        with pytest.raises(ModelError, match=r"attn_factor = 1\.2|scaling\.type = "):
            plan_of(read_header(write_gguf(tmp_path / f"no{number}.gguf", tiny_model(), metadata=named)))

    short = read_header(
        write_gguf(tmp_path / "b.gguf", model, more={"rope_freqs.weight": np.ones(3, np.float32)})
    )
    with pytest.raises(ModelError, match="3 rotary factors for heads of 16"):
        check_shapes(short, plan_of(short), build_config(plan_of(short)))


def test_other_dtypes_round(tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "m.gguf", tiny_model(), "Q4_1")
    exact, rounded = read(path).state_dict(), read(path, torch.bfloat16).state_dict()
    assert all(
        values.dtype == torch.bfloat16 and torch.equal(values, exact[name].bfloat16())
        for name, values in rounded.items()
    )
