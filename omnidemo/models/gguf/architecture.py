"""The model in a GGUF file: its configuration in `transformers`' terms, and the weight of each tensor.

Every key that changes the computation is either read or refused.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from omnidemo.core.config import ModelError
from omnidemo.core.config.refusals import explained
from omnidemo.models.gguf.block_types import READABLE
from omnidemo.models.gguf.header import OTHER, Header, clean

MOST = 2**24  # of any width, count or window that a configuration names

_BLOCK = {
    "attn_norm": "input_layernorm", "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj", "ffn_norm": "post_attention_layernorm", "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}  # fmt: skip
_NORMED_HEADS = _BLOCK | {"attn_q_norm": "self_attn.q_norm", "attn_k_norm": "self_attn.k_norm"}
_FOUR_NORMS = {
    "ffn_norm": "pre_feedforward_layernorm", "post_attention_norm": "post_attention_layernorm",
    "post_ffw_norm": "post_feedforward_layernorm",
}  # fmt: skip
_TOP = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}
ROPE_FREQS = "rope_freqs.weight"  # by what each rotary frequency is divided (Llama 3.1 and later)


@dataclass(frozen=True)
class Architecture:
    """The names of one architecture. `block`: a layer's tensors, without `blk.N.`, and their names in
    `transformers`; `interleaved`: rows of queries and keys stand in interleaved rotary pairs; `less`: a
    constant to subtract from the norms' weights."""

    model_type: str
    block: Mapping[str, str]
    interleaved: bool = False
    less: float = 0.0
    more: frozenset[str] = frozenset()  # keys of its own that `_config` reads


ARCHITECTURES: dict[str, Architecture] = {
    "llama": Architecture("llama", _BLOCK, interleaved=True),
    "qwen2": Architecture("qwen2", _BLOCK),
    "qwen3": Architecture("qwen3", _NORMED_HEADS),
    "gemma2": Architecture(
        "gemma2", _BLOCK | _FOUR_NORMS, less=1.0,
        more=frozenset({"attention.sliding_window", "attn_logit_softcapping", "final_logit_softcapping"}),
    ),
    "gemma3": Architecture(
        "gemma3_text", _NORMED_HEADS | _FOUR_NORMS, less=1.0,
        more=frozenset({"attention.sliding_window", "rope.freq_base_swa", "attention.sliding_window_pattern",
            "final_logit_softcapping"}),
    ),
    "phi3": Architecture(
        "phi3", {k: v for k, v in _BLOCK.items() if k not in ("attn_q", "attn_k", "attn_v", "ffn_gate")}
        | {"attn_qkv": "self_attn.qkv_proj", "ffn_up": "mlp.gate_up_proj"},
        more=frozenset({"attention.sliding_window"}),
    ),
}  # fmt: skip
# keys of an architecture that are read below, or have no effect on the computation
_READ = {
    "block_count", "context_length", "embedding_length", "feed_forward_length", "attention.head_count",
    "attention.head_count_kv",
    "attention.key_length", "attention.value_length", "attention.layer_norm_rms_epsilon", "rope.freq_base",
    "rope.dimension_count",
    "rope.scale_linear", "rope.scaling.type", "rope.scaling.factor", "rope.scaling.original_context_length",
    "rope.scaling.finetuned",
    "rope.scaling.attn_factor", "rope.scaling.yarn_beta_fast", "rope.scaling.yarn_beta_slow",
    "vocab_size", "tensor_data_layout", "attention.causal", "expert_count", "expert_used_count",
}  # fmt: skip
_FOREIGN = {
    "clip": "the eyes of a model (mmproj)", "mmproj": "the eyes of a model (mmproj)", "adapter": "an adapter",
    "imatrix": "an importance matrix", "vocab": "a vocabulary alone",
    "eagle3": "a drafter for one target alone", "medusa": "a drafter for one target alone",
}  # fmt: skip


@dataclass(frozen=True)
class ModelPlan:
    """How a file becomes a model: the options of `transformers`' configuration, and the tensor of each
    weight."""

    architecture: Architecture
    options: dict[str, Any]
    names: dict[str, str] = field(repr=False)  # weight → tensor


def plan_of(header: Header) -> ModelPlan:
    """The plan of a file. ModelError, one sentence, for a file without a language model, and for one that
    cannot be computed here exactly."""
    name = header.name
    foreign = _FOREIGN.get(header.text("general.type"), _FOREIGN.get(header.architecture))
    if foreign:
        raise ModelError(f"{name} holds {foreign}, no language model; choose the file of the model itself")
    architecture = ARCHITECTURES.get(header.architecture)
    if architecture is None:
        called = clean(header.architecture, 40) or "(none)"
        raise ModelError(
            f"{name} is of the architecture {called}, and {', '.join(ARCHITECTURES)} are read; choose another"
            " model"
        )
    if unread := sorted({tensor.kind.name for tensor in header.tensors.values() if tensor.kind.read is None}):
        raise ModelError(
            f"{name} has weights of type {unread[0]}, and {', '.join(READABLE)} are read; take a file of type"
            " Q4_K_M, Q8_0 or F16 of the same model"
        )
    for key, value in header.metadata.items():
        own = key.removeprefix(f"{header.architecture}.")
        read = own in _READ or own in architecture.more or own.startswith("pooling")
        if own != key and not read and not _says_nothing(value):
            raise _asks(header, key, value)
    names = _names(header, architecture)
    with explained(f"{name} describes a model that cannot be", OTHER):
        return ModelPlan(architecture, _config(header, architecture), names)


def _asks(header: Header, key: str, value: Any) -> ModelError:
    said = f"{header.name} asks for {clean(key)} = {clean(value, 40)}"
    return ModelError(f"{said}, which is not computed here; choose another file of this model")


def _says_nothing(value: Any) -> bool:
    """Whether a key has the value that changes nothing, such as a list of zeros."""
    if isinstance(value, list):
        return all(map(_says_nothing, value))
    return value in ("", "none") if isinstance(value, str) else not np.any(value)


def _names(header: Header, architecture: Architecture) -> dict[str, str]:
    """Weight → tensor, for every tensor of the file."""
    names: dict[str, str] = {}
    for tensor in header.tensors:
        if tensor == ROPE_FREQS:
            continue
        stem, _, last = tensor.rpartition(".")
        block = re.fullmatch(r"blk\.(\d{1,4})\.(\w+)", stem)
        inner = architecture.block.get(block[2]) if block else _TOP.get(stem)
        if inner is None or last not in ("weight", "bias"):
            raise ModelError(
                f"{header.name} has weights that no {header.architecture} model is known to have"
                f" ({tensor[:60]!r}); choose another file"
            )
        names[f"model.layers.{int(block[1])}.{inner}.{last}" if block else f"{inner}.{last}"] = tensor
    return names


@dataclass(frozen=True)
class _Numbers:
    """The numbers among a file's keys; a list of equal ones, such as one for each layer, is that number.
    ValueError for an impossible one."""

    header: Header

    def real(self, key: str, otherwise: float | None = None, most: float = 1e12) -> float:
        value = self.header.metadata.get(f"{self.header.architecture}.{key}", otherwise)
        if isinstance(value, np.ndarray) and len(set(value.tolist())) == 1:
            value = value.tolist()[0]
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value <= most:
            raise ValueError(f"it gives {self.header.architecture}.{key} as {clean(value, 40)}")
        return float(value)

    def unless_off(self, key: str, otherwise: float | None = None) -> float | None:
        """As `real`; None for 0, which switches it off."""
        value = self.header.metadata.get(f"{self.header.architecture}.{key}", otherwise)
        return None if _says_nothing(value) else self.real(key, otherwise)

    def whole(self, key: str, otherwise: int | None = None) -> int:
        if (value := self.real(key, otherwise, MOST)) != int(value):
            raise ValueError(f"it gives {self.header.architecture}.{key} as {value}")
        return int(value)


def _config(header: Header, architecture: Architecture) -> dict[str, Any]:
    """The options of `transformers`' configuration class."""
    prefix, numbers = header.architecture, _Numbers(header)
    whole, real = numbers.whole, numbers.real
    experts, causal = (header.metadata.get(f"{prefix}.{key}") for key in ("expert_count", "attention.causal"))
    if not _says_nothing(experts) or (causal is not None and _says_nothing(causal)):
        raise ModelError(
            f"{header.name} is a mixture of experts or an encoder, which are not read here; choose a plain"
            " language model"
        )
    layers, width, heads = whole("block_count"), whole("embedding_length"), whole("attention.head_count")
    if layers > len(header.tensors):
        raise ValueError(f"it names {layers} layers and has {len(header.tensors)} tensors")
    head = whole("attention.key_length", width // heads if width % heads == 0 else None)
    for key in ("attention.value_length", "rope.dimension_count"):
        if (other := whole(key, head)) != head:  # a part of each head is rotated, say
            raise _asks(header, f"{prefix}.{key}", other)
    window = whole("context_length")
    options = {
        "vocab_size": header.tensors["token_embd.weight"].shape[0],
        "hidden_size": width,
        "intermediate_size": whole("feed_forward_length"),
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": whole("attention.head_count_kv", heads),
        "head_dim": head,
        "max_position_embeddings": window,
        "rms_norm_eps": real("attention.layer_norm_rms_epsilon"),
        "tie_word_embeddings": "output.weight" not in header.tensors,
        "rope_parameters": _rope(header, numbers, window),
        # the tokenizer has the file's ids; a class's defaults belong to another vocabulary
        "bos_token_id": None,
        "eos_token_id": None,
        "pad_token_id": None,
    }
    return options | _own_options(header, architecture.model_type, options, numbers)


def _own_options(
    header: Header, model_type: str, options: Mapping[str, Any], numbers: _Numbers
) -> dict[str, Any]:
    """The options of this type of model that differ from the common `options`."""
    own: dict[str, Any] = {}
    prefix, layers = header.architecture, options["num_hidden_layers"]
    per_head = options["hidden_size"] // options["num_attention_heads"]
    if model_type in ("llama", "qwen3"):
        own["attention_bias"] = "blk.0.attn_q.bias" in header.tensors
    if model_type == "llama":
        own["mlp_bias"] = "blk.0.ffn_gate.bias" in header.tensors
    if model_type in ("gemma2", "gemma3_text"):
        own["sliding_window"] = numbers.whole("attention.sliding_window", 4096)
        # the 27B of both scales queries by another width
        largest = layers == (46 if model_type == "gemma2" else 62)
        own["query_pre_attn_scalar"] = per_head if largest else options["head_dim"]
        softcap = 30.0 if model_type == "gemma2" else None
        own["final_logit_softcapping"] = numbers.unless_off("final_logit_softcapping", softcap)
    if model_type == "gemma2":
        own["attn_logit_softcapping"] = numbers.unless_off("attn_logit_softcapping", 50.0)
    if model_type == "gemma3_text":
        local = {"rope_type": "default", "rope_theta": numbers.real("rope.freq_base_swa", 10_000.0)}
        own["rope_parameters"] = {"full_attention": options["rope_parameters"], "sliding_attention": local}
        # every how many layers one reads everything, or for each layer whether it slides
        pattern = header.metadata.get(key := f"{prefix}.attention.sliding_window_pattern", 6)
        if np.any(np.asarray(pattern) != (6 if np.ndim(pattern) == 0 else np.arange(1, layers + 1) % 6 > 0)):
            raise _asks(header, key, pattern)
    if model_type == "phi3":
        off = numbers.unless_off("attention.sliding_window") is None
        own["sliding_window"] = None if off else numbers.whole("attention.sliding_window")
    return own


def _rope(header: Header, numbers: _Numbers, window: int) -> dict[str, Any]:
    """The description of the rotary tables. Tables that depend on the length read are refused: keys computed
    at one length would not hold at another."""
    said, given, real = f"{header.architecture}.rope.scaling.", header.metadata, numbers.real
    kind = header.text(f"{said}type", "linear")  # as llama.cpp reads a factor without a type
    plain = {"rope_type": "default", "rope_theta": real("rope.freq_base", 10_000.0)}
    if kind not in ("none", "linear", "yarn"):
        raise _asks(header, f"{said}type", kind)
    # The second is its name in files that are older than types.
    key = "rope.scaling.factor" if f"{said}factor" in given else "rope.scale_linear"
    factor = real(key, 1.0) if given.get(f"{header.architecture}.{key}") != 0 else 1.0
    attention = real("rope.scaling.attn_factor", 1.0)
    if kind != "yarn":
        if attention != 1.0:
            raise _asks(header, f"{said}attn_factor", attention)
        return plain if kind == "none" or factor == 1.0 else plain | {"rope_type": kind, "factor": factor}
    scaled: dict[str, Any] = plain | {"rope_type": kind, "factor": factor}
    scaled["original_max_position_embeddings"] = int(real("rope.scaling.original_context_length", window))
    for key in ("beta_fast", "beta_slow"):
        if f"{said}yarn_{key}" in given:
            scaled[key] = real(f"rope.scaling.yarn_{key}")
    # llama.cpp multiplies YaRN's own factor; `transformers` replaces it
    scaled["attention_factor"] = attention * (1 + 0.1 * math.log(factor))
    return scaled
