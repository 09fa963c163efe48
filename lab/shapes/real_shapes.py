"""Pairs of real shapes with random weights, made where they run: what they cost is real, what they say is
scripted."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Literal

import torch
from transformers import AutoModelForCausalLM, LlamaConfig, Qwen2Config

from lab.races.floor import Shape
from lab.races.watch import watched
from lab.shapes.scripted import fill, language_model, one_word, vocabularies
from omnidemo.backends.fused_llama import FusedLlama
from omnidemo.backends.runner import Runner
from omnidemo.models import model_files
from omnidemo.models.transformers_runner import TransformersRunner
from omnidemo.pair.pair import Pair

Kind = Literal["fast", "general"]
# the runner that a loaded model of the shape gets, and `transformers`' own modules
KINDS: tuple[Kind, ...] = ("fast", "general")


Form = LlamaConfig | Qwen2Config


def _form(
    kind: type[Form],
    layers: int,
    hidden: int,
    inner: int,
    heads: int,
    groups: int,
    vocabulary: int,
    tied: bool,
    window: int,
) -> Form:
    return kind(
        num_hidden_layers=layers, hidden_size=hidden, intermediate_size=inner, num_attention_heads=heads,
        num_key_value_heads=groups,
        vocab_size=vocabulary, tie_word_embeddings=tied, max_position_embeddings=window, bos_token_id=None,
        eos_token_id=None,
    )  # fmt: skip


FORMS: dict[str, Form] = {
    "llama-68m": _form(LlamaConfig, 2, 768, 3072, 12, 12, 32_000, False, 2048),
    "qwen2.5-0.5b": _form(Qwen2Config, 24, 896, 4864, 14, 2, 151_936, True, 32_768),
    "qwen2.5-1.5b": _form(Qwen2Config, 28, 1536, 8960, 12, 2, 151_936, True, 32_768),
    "qwen2.5-7b": _form(Qwen2Config, 28, 3584, 18_944, 28, 4, 152_064, False, 32_768),
    "tiny-drafter": _form(LlamaConfig, 1, 32, 48, 4, 4, 400, False, 2048),
    "tiny-target": _form(Qwen2Config, 2, 32, 48, 4, 2, 700, True, 2048),
}
TARGETS = ("qwen2.5-0.5b", "qwen2.5-1.5b", "qwen2.5-7b")
DRAFTER = "llama-68m"
TINY = ("tiny-target", "tiny-drafter")


def form(name: str) -> Form:
    """ValueError for a name that is not in `FORMS`."""
    if name not in FORMS:
        raise ValueError(f"there is no shape {name!r}; choose from {', '.join(FORMS)}")
    return FORMS[name]


def random_weights(name: str, device: torch.device | str, dtype: torch.dtype, seed: int = 0) -> Any:
    """A model of the shape with the weights that `transformers` starts a training from, made on the device in
    its dtype."""
    torch.manual_seed(seed)
    auto: Any = AutoModelForCausalLM
    with torch.inference_mode(False), torch.device(device):
        return auto.from_config(deepcopy(form(name)), dtype=dtype).eval().requires_grad_(False)


def parameters(name: str) -> int:
    """How many a model of the shape has; nothing is allocated."""
    return sum(weight.numel() for weight in random_weights(name, "meta", torch.bfloat16).parameters())


def check_memory(names: list[str], device: torch.device, dtype: torch.dtype) -> None:
    """ModelError where models of these shapes do not fit the device together."""
    # copies are made only where memory allows
    need = sum(map(parameters, names)) * dtype.itemsize * model_files.MARGIN
    model_files.check_memory(" with ".join(names), need, model_files.free_memory(str(device)), str(device))


@dataclass(frozen=True, slots=True)
class Made:
    """A model of a shape: both runners over the same weights, and what their passes cost."""

    name: str
    runners: dict[Kind, Runner]
    costs: dict[Kind, Shape]


def make(name: str, device: torch.device, dtype: torch.dtype, seed: int = 0) -> Made:
    """Build the model of a shape, with weights that bfloat16 holds, as most published ones are. ValueError
    for an unknown one; memory is `check_memory`'s business."""
    module = random_weights(name, device, dtype, seed)
    # The general runner comes second: `FusedLlama` makes the module's weights views of its own, so that both
    # use the same memory.
    fast = FusedLlama(module)
    fast.compact(True, rounding=True)
    runners: dict[Kind, Runner] = {"fast": fast, "general": TransformersRunner(module)}
    return Made(
        name, runners, {kind: Shape.counted(runner, module.config) for kind, runner in runners.items()}
    )


def scripted_pairs(target: Made, drafter: Made, cache_size: int) -> tuple[dict[Kind, Pair], list[int]]:
    """A watched pair for each kind of runner, and ids to make prompts of. The target writes one word again
    and again, and the drafter is wrong at every ninth position (`scripted.one_word`); the n-gram cache is
    full of compounds."""
    words = vocabularies(target.runners["fast"].rows, drafter.runners["fast"].rows)
    compounds = max(0, len(words[0]) - len(words[1]))
    pairs: dict[Kind, Pair] = {}
    for kind in KINDS:
        models = zip((target, drafter), words, strict=True)
        large, small = (language_model(one.name, one.runners[kind], vocabulary) for one, vocabulary in models)
        made, ids = one_word(Pair(large, small, cache_size=0))
        pairs[kind] = Pair(watched(made.target), watched(made.drafter), cache_size=cache_size)
        fill(pairs[kind], min(cache_size, compounds))
    return pairs, ids
