"""llama.cpp through its Python package, an optional arm of the benchmark: the target's own GGUF file; or the
same weights written as one, in float32 and in bfloat16.

Imports of `llama_cpp` and `gguf` stay inside functions: neither is among the requirements.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import torch
from torch import Tensor

from lab.races.arms import Answer, Arm, Request
from lab.races.floor import Pass
from omnidemo.backends.fused_llama import FusedLlama
from omnidemo.models.load import LanguageModel

LLAMA, LLAMA_LOOKUP, LLAMA_BF16 = "llama.cpp", "llama.cpp-prompt-lookup", "llama.cpp-bfloat16"
FLOAT32 = 0  # ggml's name of the type
TYPES = ("llama", "qwen2")  # that `write` converts


def refusal(model: LanguageModel) -> str:
    """Why llama.cpp does not answer beside a target; "" where it does."""
    if any(find_spec(name) is None for name in ("llama_cpp", "gguf")):
        return "not installed; `pip install llama-cpp-python gguf` adds it to the comparison"
    if model.device.type != "cpu" or model.dtype != torch.float32:
        return (
            f"compared in float32 on a CPU only, and {model.name} runs in {str(model.dtype)[6:]} on"
            f" {model.device}"
        )
    config = _config(model)
    if config.model_type not in TYPES or not FusedLlama.fits(config):
        return f"{model.name} is a {config.model_type}, which is not converted; Llama and Qwen2 are"
    return ""


def _config(model: LanguageModel) -> Any:
    return model.config.get_text_config(decoder=True)


# the file
# ------------------------------------------------------------------------------------------------------------


def write(model: LanguageModel, path: Path, two_bytes: bool = False) -> None:
    """Write a Llama or Qwen2 model as a GGUF file in float32, the matrices in bfloat16 if `two_bytes`.
    Without a tokenizer: ids go in and out. OSError."""
    import gguf

    config = _config(model)
    architecture = {"llama": gguf.MODEL_ARCH.LLAMA, "qwen2": gguf.MODEL_ARCH.QWEN2}[config.model_type]
    heads, groups = config.num_attention_heads, config.num_key_value_heads
    dim = getattr(config, "head_dim", None) or config.hidden_size // heads
    writer = gguf.GGUFWriter(path, gguf.MODEL_ARCH_NAMES[architecture])
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_BF16 if two_bytes else gguf.LlamaFileType.ALL_F32)
    writer.add_vocab_size(config.vocab_size)
    writer.add_tokenizer_model("no_vocab")
    writer.add_block_count(config.num_hidden_layers)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(heads)
    writer.add_head_count_kv(groups)
    writer.add_key_length(dim)
    writer.add_value_length(dim)
    writer.add_rope_dimension_count(dim)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    names = gguf.get_tensor_name_map(architecture, config.num_hidden_layers)
    for name, weight in model.runner.weights().items():
        if name == "lm_head.weight" and config.tie_word_embeddings:
            continue  # llama.cpp takes the embeddings where there is no output layer
        if config.model_type == "llama" and (".q_proj." in name or ".k_proj." in name):
            weight = interleaved(weight, heads if ".q_proj." in name else groups)
        there, values = names.get_name(name, try_suffixes=(".weight", ".bias")), weight.contiguous().numpy()
        assert there is not None, name
        if two_bytes and weight.dim() == 2:
            half = gguf.GGMLQuantizationType.BF16
            writer.add_tensor(there, gguf.quants.quantize(values, half), raw_dtype=half)
        else:
            writer.add_tensor(there, values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def interleaved(weight: Tensor, heads: int) -> Tensor:
    """Rows [heads · D, …] of a query or key projection in the order of llama.cpp's Llama: its rotary
    embedding turns neighbouring rows of a head, 2i and 2i + 1, where `transformers` turns i and D/2 + i.
    Qwen2's turns the same rows in both."""
    halves = weight.view(heads, 2, -1, *weight.shape[1:])
    return halves.transpose(1, 2).reshape(weight.shape)


# the arms
# ------------------------------------------------------------------------------------------------------------


@dataclass
class LlamaArm(Arm):
    """Plain generation by llama.cpp, or with its prompt lookup. Takes as many threads as torch has. It tells
    no stages."""

    side = LLAMA
    llama: Any
    end_ids: frozenset[int]
    read: list[tuple[int, int]] = field(default_factory=list)  # (positions before, tokens) of each pass

    def __post_init__(self) -> None:
        evaluate: Callable[[Sequence[int]], None] = self.llama.eval

        def noting(tokens: Sequence[int]) -> None:
            self.read.append((self.llama.n_tokens, len(tokens)))
            evaluate(tokens)

        self.llama.eval = noting

    def answer(self, request: Request) -> Answer:
        llama, ids = self.llama, list[int]()
        self.read.clear()
        # one number for decoding, one for reading prompts
        llama._ctx.set_n_threads(*[torch.get_num_threads()] * 2)
        llama.set_seed(request.seed)
        first = 0.0
        began = perf_counter()
        llama.reset()  # every prompt is read afresh
        for token in llama.generate(
            list(request.ids), top_k=0, top_p=1.0, min_p=0.0, temp=request.temperature
        ):
            first = first or perf_counter() - began
            ids.append(int(token))
            if ids[-1] in self.end_ids or len(ids) == request.max_new_tokens:
                break
        seconds = perf_counter() - began
        return Answer(
            ids=ids,
            seconds=seconds,
            first=first,
            rounds=[(0, 0)] * len(self.read),  # what it accepts of a proposal is not known
            drafted=sum(count - 1 for _, count in self.read[1:]),
            passes=[(0, Pass(start, count, count if start else 1)) for start, count in self.read],
        )


def arms(
    model: LanguageModel, folder: Path, positions: int, draft_length: int, two_bytes: bool
) -> list[LlamaArm]:
    """The arms of a target that is not refused; `folder` has its files while they are loaded. positions: the
    longest prompt with its answer. draft_length: of prompt lookup, as for the peer's. `two_bytes`: one in
    bfloat16 too."""
    import llama_cpp
    from llama_cpp.llama_speculative import LlamaPromptLookupDecoding

    end_ids = frozenset(model.vocabulary.roles.get("end", ()))
    options: dict[str, Any] = {
        "n_ctx": positions + draft_length + 1,
        "type_k": FLOAT32,
        "type_v": FLOAT32,
        "verbose": False,
    }
    lookup = LlamaPromptLookupDecoding(num_pred_tokens=draft_length)
    wanted: list[tuple[str, bool, Any]] = [(LLAMA, False, None), (LLAMA_LOOKUP, False, lookup)]
    wanted += [(LLAMA_BF16, True, None)] if two_bytes else []
    folder.mkdir(parents=True, exist_ok=True)
    # what is mapped stays when its file is gone
    with TemporaryDirectory(dir=folder, ignore_cleanup_errors=True) as made:
        own = model.folder if model.folder.is_file() else None
        paths = {half: own or Path(made) / f"{name}.gguf" for name, half, _ in wanted}
        for half, path in paths.items():
            if own is None:
                write(model, path, half)
        return [
            LlamaArm(name, llama_cpp.Llama(str(paths[half]), draft_model=draft, **options), end_ids)
            for name, half, draft in wanted
        ]


def about() -> str:
    """Which llama.cpp answers."""
    return f"llama-cpp-python {version('llama-cpp-python')}, weights as its arm says, float32 keys and values"
