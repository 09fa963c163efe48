"""Small GGUF files for tests: a tiny model of `transformers`, written as converters write it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from transformers import AutoConfig, AutoModelForCausalLM

from omnidemo.vocabulary.alphabets import byte_alphabet

gguf: Any = pytest.importorskip("gguf", reason="the package gguf is not installed")
SIGNS = sorted(byte_alphabet(), key=byte_alphabet().__getitem__)
MERGES = [("t", "h"), ("th", "e"), ("i", "n"), ("a", "n"), ("Ġ", "a"), ("Ġ", "the"), ("1", "2")]
TOKENS = [*SIGNS, *(a + b for a, b in MERGES), "<|im_start|>", "<|im_end|>"]
TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{%"
    " endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
TINY = {
    "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16, "vocab_size": len(TOKENS), "max_position_embeddings": 128, "rms_norm_eps": 1e-5,
    "tie_word_embeddings": True,
}  # fmt: skip
_OURS = {
    "input_layernorm": "attn_norm", "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output", "post_attention_layernorm": "ffn_norm", "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down", "self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm",
    "pre_feedforward_layernorm": "ffn_norm", "post_feedforward_layernorm": "post_ffw_norm",
    "self_attn.qkv_proj": "attn_qkv", "mlp.gate_up_proj": "ffn_up",
}  # fmt: skip


def tiny_model(kind: str = "llama", **options: Any) -> Any:
    """A `transformers` model with random weights, larger than they are initialised, so that its answers
    vary."""
    torch.manual_seed(0)
    with torch.device("cpu"):
        model: Any = AutoModelForCausalLM.from_config(
            AutoConfig.for_model(kind, **TINY | options), dtype=torch.float32
        )
    for parameter in model.parameters():
        parameter.data += torch.randn_like(parameter) * 0.2
    return model.eval()


def tensor_name(weight: str, four_norms: bool) -> str:
    """The name that converters give to a weight of `transformers`."""
    for whole, name in (
        ("model.embed_tokens", "token_embd"),
        ("model.norm", "output_norm"),
        ("lm_head", "output"),
    ):
        if weight.startswith(whole):
            return weight.replace(whole, name)
    _, _, layer, rest = weight.split(".", 3)
    stem, _, last = rest.rpartition(".")
    name = "post_attention_norm" if four_norms and stem == "post_attention_layernorm" else _OURS[stem]
    return f"blk.{layer}.{name}.{last}"


def interleaved(weight: NDArray[np.float32], heads: int) -> NDArray[np.float32]:
    """Rows of queries or keys in the order that Llama's converter gives them."""
    return weight.reshape(heads, 2, len(weight) // heads // 2, -1).swapaxes(1, 2).reshape(weight.shape)


def write_gguf(
    path: Path, model: Any, kind: str = "F32", architecture: str = "llama",
    metadata: dict[str, Any] | None = None,
    leave_out: tuple[str, ...] = (), more: dict[str, NDArray[Any]] | None = None,
) -> Path:  # fmt: skip
    """Write a model with its matrices in one type (norms and biases are float32). `metadata`: further keys or
    other values, None to leave one out; `more`: further tensors."""
    config = model.config
    less = architecture in ("gemma2", "gemma3")
    writer = gguf.GGUFWriter(path, architecture, use_temp_file=False)
    keys: dict[str, Any] = {
        "general.name": "Tiny Test", f"{architecture}.block_count": config.num_hidden_layers,
        f"{architecture}.context_length": config.max_position_embeddings,
        f"{architecture}.embedding_length": config.hidden_size,
        f"{architecture}.feed_forward_length": config.intermediate_size,
        f"{architecture}.attention.head_count": config.num_attention_heads,
        f"{architecture}.attention.head_count_kv": config.num_key_value_heads,
        f"{architecture}.attention.layer_norm_rms_epsilon": float(config.rms_norm_eps),
        f"{architecture}.rope.freq_base": 10000.0,
        f"{architecture}.attention.key_length": TINY["head_dim"],
        f"{architecture}.attention.value_length": TINY["head_dim"],
        "tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "gpt-2", "tokenizer.ggml.tokens": TOKENS,
        "tokenizer.ggml.token_type": [1] * (len(TOKENS) - 2) + [3, 3],
        "tokenizer.ggml.merges": [" ".join(pair) for pair in MERGES],
        "tokenizer.ggml.eos_token_id": len(TOKENS) - 1, "tokenizer.ggml.bos_token_id": len(TOKENS) - 2,
        "tokenizer.ggml.add_bos_token": False, "tokenizer.chat_template": TEMPLATE,
    }  # fmt: skip
    for key, value in (keys | (metadata or {})).items():
        if value is not None and key != "general.architecture":
            _add(writer, key, value)
    for weight, parameter in model.named_parameters():
        name = tensor_name(weight, less)
        if name in leave_out:
            continue
        values = parameter.detach().numpy().copy()
        if architecture == "llama" and name.split(".")[-2] in ("attn_q", "attn_k"):
            values = interleaved(
                values, config.num_attention_heads if "attn_q" in name else config.num_key_value_heads
            )
        if less and name.endswith("norm.weight"):
            values = values + 1
        quantized = gguf.GGMLQuantizationType[kind] if values.ndim > 1 else gguf.GGMLQuantizationType.F32
        data = values if quantized.name == "F32" else packed(values, kind)
        writer.add_tensor(name, data, raw_dtype=quantized)
    for name, extra in (more or {}).items():
        writer.add_tensor(name, extra)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def packed(values: NDArray[np.float32], kind: str) -> NDArray[Any]:
    """Values [rows, n] in blocks of a type. Types that the package cannot write get random codes with small
    scales: what they say is as good as any other weights, and is read back by the package."""
    found = gguf.GGMLQuantizationType[kind]
    try:
        return gguf.quants.quantize(values, found)
    except NotImplementedError:
        numbers, size = gguf.constants.GGML_QUANT_SIZES[found]
        random = np.random.default_rng(values.size)
        blocks = random.integers(0, 256, (values.size // numbers, size)).astype(np.uint8)
        small = np.frombuffer(np.float16(0.002).tobytes(), np.uint8)
        for at in {"Q2_K": (80, 82), "Q3_K": (108,), "Q4_K": (0, 2), "Q5_K": (0, 2), "Q6_K": (208,)}[kind]:
            blocks[:, at : at + 2] = small
        return blocks.reshape(len(values), -1)


def _add(writer: Any, key: str, value: Any) -> None:
    if isinstance(value, str):
        writer.add_string(key, value)
    elif isinstance(value, bool):
        writer.add_bool(key, value)
    elif isinstance(value, int):
        writer.add_uint32(key, value)
    elif isinstance(value, float):
        writer.add_float32(key, value)
    else:
        writer.add_array(key, value)
