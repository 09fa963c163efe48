"""A model in a folder in the format of `transformers`: bundled, local, or from the Hub's cache. Safetensors
only, never remote code."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer
from transformers.models.auto.modeling_auto import (
    MODEL_FOR_CAUSAL_LM_MAPPING,
    MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
)
from transformers.utils import logging as transformers_logging

from omnidemo.backends.runner import ModelError
from omnidemo.core.config.refusals import explained
from omnidemo.models import model_files
from omnidemo.models.manner import SETTINGS_FILE, generation_settings, read_manner
from omnidemo.models.read_weights import LOADING, read_model
from omnidemo.models.transformers_runner import check_cache
from omnidemo.vocabulary.vocabulary import Vocabulary, read_vocabulary

log = logging.getLogger(__name__)
MOST_LAYERS = 1000  # more layers are compared with the tensors before a cache is made
AGAIN = "download or save the model again"
WHOLE = ("I8", "U8", "I16", "U16", "I32", "U32", "I64", "U64")  # weights that mean nothing without scales


class FolderModel:
    """See `ModelSource`. ModelError, one sentence, for a folder with an unreadable model."""

    learns = True
    packed_bytes: int | None = None

    def __init__(self, name: str, folder: Path) -> None:
        self.name, self.files = name, folder
        self.config = _read_config(name, folder)
        self.parameters = model_files.count_parameters(folder)
        self.manner = read_manner(name, folder)

    def tokenizer(self) -> tuple[Any, Vocabulary]:
        """The tokenizer, and what its tokens write."""
        step = "choose another model or save a fast tokenizer"
        with explained(f"the tokenizer of {self.name} cannot be read", step):
            tokenizer = AutoTokenizer.from_pretrained(self.files, trust_remote_code=False)
            if tokenizer.chat_template is None:
                tokenizer.chat_template = _template_beside(self.files)
            known = tokenizer.get_vocab()
            size = max(known.values(), default=-1) + 1
            ends = _end_ids(self.name, self.files, self.config, known)
            if left_out := [end for end in ends if end >= size]:  # a configuration's default, for one
                log.warning(
                    "%s names %s as its end, and its tokenizer has %s tokens; the tokenizer's own end is"
                    " used", self.name, left_out[0], size,
                )  # fmt: skip
            return tokenizer, read_vocabulary(tokenizer, [end for end in ends if end < size])

    def weights(self, dtype: torch.dtype) -> Any:
        bars = transformers_logging.is_progress_bar_enabled()
        transformers_logging.disable_progress_bar()
        try:
            with explained(f"the weights of {self.name} cannot be read", AGAIN):
                model, report = read_model(
                    self.files, config=self.config, output_loading_info=True, dtype=dtype
                )
        finally:
            if bars:
                transformers_logging.enable_progress_bar()
        if missing := sorted(report["missing_keys"]):
            raise ModelError(
                f"{self.name} lacks {len(missing)} of its weights, {missing[0]} among them; {AGAIN}"
            )
        if left := sorted(report["unexpected_keys"]):
            log.warning(
                "%s has weights that its configuration has no place for (%d, first %s); they are left out",
                self.name, len(left), left[0],
            )  # fmt: skip
        return model


def _read_config(name: str, folder: Path) -> Any:
    with explained(f"{name} has a configuration that transformers cannot read", "choose another model"):
        config = AutoConfig.from_pretrained(folder, trust_remote_code=False)
        # settings of a training that may have been saved with it
        config.return_dict, config._attn_implementation = True, None
    made_for = list(config.architectures or [])
    text = ("CausalLM", "LMHeadModel", "ForConditionalGeneration")
    if config.is_encoder_decoder or config.model_type not in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES or (
        made_for and not any(architecture.endswith(text) for architecture in made_for)
    ):  # fmt: skip
        kind = made_for[0] if made_for else config.model_type
        raise ModelError(
            f"{name} is a {kind}, not a causal language model; choose one that writes text from left to right"
        )
    if _size(config, "num_hidden_layers") > MOST_LAYERS:  # even its empty cache takes long
        _check_sizes(name, folder, config)
    model_class = MODEL_FOR_CAUSAL_LM_MAPPING.get(type(config), None)
    try:
        if model_class is not None:
            check_cache(model_class, config)
    except ValueError as error:
        raise ModelError(f"{name}: {error}") from error
    _check_sizes(name, folder, config)
    said = getattr(config, "quantization_config", None)
    if said or any(kind in WHOLE and len(shape) > 1 for kind, shape in model_files.shapes(folder)):
        method = said.get("quant_method") if isinstance(said, dict) else None
        how = f" by {str(method)[:40]}" if method else ""
        raise ModelError(
            f"{name} has weights that are quantized{how}, which are not read from a folder; choose the model"
            " itself, or its GGUF file"
        )
    with (
        explained(f"{name} has a configuration from which no model can be made", "choose another model"),
        LOADING,
        torch.device("meta"),
    ):
        AutoModelForCausalLM.from_config(config)
    return config


def _size(config: Any, key: str) -> int:
    found = getattr(config.get_text_config(decoder=True), key, None)
    return found if isinstance(found, int) else 0


def _check_sizes(name: str, folder: Path, config: Any) -> None:
    """ModelError where the configuration names more layers than there are tensors, or far more numbers than
    these hold: building such a model would take minutes, or all memory."""
    layers, width, words = (_size(config, key) for key in ("num_hidden_layers", "hidden_size", "vocab_size"))
    tensors = len(model_files.shapes(folder))
    # some models have narrower embeddings, hence 16
    for size, what, most in (
        (layers, f"{str(layers)[:20]} layers", tensors),
        (width * words, f"a width of {str(width)[:20]}", 16 * model_files.count_parameters(folder)),
    ):
        if size > most:
            raise ModelError(f"{name} names {what}, far beyond what its {tensors} tensors hold; {AGAIN}")


def _template_beside(folder: Path) -> str | None:
    """The chat template of a folder that has it in a file of its own, as processors do."""
    with suppress(OSError, ValueError, AttributeError):
        said = json.loads((folder / "chat_template.json").read_text(encoding="utf-8")).get("chat_template")
        return said if isinstance(said, str) else None
    return None


def _end_ids(name: str, folder: Path, config: Any, known: Mapping[str, int]) -> list[int]:
    """The end ids of the generation settings, then of the configuration; a text is the id of the `known`
    token of that name. Values that are no ids get a warning and are left out."""
    said = [(SETTINGS_FILE, generation_settings(folder).get("eos_token_id"))]
    said.append(("config.json", getattr(config, "eos_token_id", None)))
    found: list[int] = []
    for where, value in said:
        given = value if isinstance(value, list | tuple) else [] if value is None else [value]
        ids: list[Any] = [known.get(end, end) if isinstance(end, str) else end for end in given]
        if all(isinstance(end, int) and not isinstance(end, bool) and end >= 0 for end in ids):
            found += ids
        else:
            log.warning(
                "eos_token_id in %s of %s is %s, which are no token ids; it is left out",
                where, name, repr(value)[:40],
            )  # fmt: skip
    return list(dict.fromkeys(found))
