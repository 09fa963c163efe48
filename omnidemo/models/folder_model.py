"""A model in a folder in the format of `transformers`: bundled, local, or from the Hub's cache. Safetensors
only, never remote code."""

from __future__ import annotations

import contextlib
import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import torch
from safetensors import SafetensorError
from transformers import AutoConfig, AutoTokenizer, BitsAndBytesConfig
from transformers.models.auto.modeling_auto import (
    MODEL_FOR_CAUSAL_LM_MAPPING,
    MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
)
from transformers.utils import is_bitsandbytes_available
from transformers.utils import logging as transformers_logging

from omnidemo.backends.runner import ModelError
from omnidemo.core.config.refusals import first_line
from omnidemo.models import model_files
from omnidemo.models.manner import SETTINGS_FILE, generation_settings, read_manner
from omnidemo.models.read_weights import read_model
from omnidemo.models.transformers_runner import check_cache
from omnidemo.vocabulary.vocabulary import Vocabulary, read_vocabulary

log = logging.getLogger(__name__)
MOST_LAYERS = 1000  # more layers are compared with the tensors before a cache is made
UNNAMED = "a method without a name"
WHOLE = ("I8", "U8", "I16", "U16", "I32", "U32", "I64", "U64")  # weights that mean nothing without scales
Quantization = Literal["4bit", "8bit"]
# mean bytes of a weight; embeddings and norms keep their dtype
BYTES: dict[str, float] = {"4bit": 0.75, "8bit": 1.25}


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
        return _read_tokenizer(self.name, self.files, self.config)

    def weights(
        self, place: str, device_map: str | None, dtype: torch.dtype, quantization: Quantization | None
    ) -> Any:
        return _read_weights(self.name, self.files, place, device_map, dtype, quantization)


def _read_config(name: str, folder: Path) -> Any:
    try:
        config = AutoConfig.from_pretrained(folder, trust_remote_code=False)
    except Exception as error:  # damaged JSON, unknown type, own code: whatever transformers cannot read
        raise ModelError(
            f"{name} has a configuration that transformers cannot read ({first_line(error)}); choose another"
            " model"
        ) from error
    made_for = list(config.architectures or [])
    text = ("CausalLM", "LMHeadModel", "ForConditionalGeneration")
    if config.is_encoder_decoder or config.model_type not in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES or (
        made_for and not any(architecture.endswith(text) for architecture in made_for)
    ):  # fmt: skip
        kind = made_for[0] if made_for else config.model_type
        raise ModelError(
            f"{name} is a {kind}, not a causal language model; choose one that writes text from left to right"
        )
    if _layers(config) > MOST_LAYERS:  # even its empty cache takes long
        _check_sizes(name, folder, config)
    model_class = MODEL_FOR_CAUSAL_LM_MAPPING.get(type(config), None)
    try:
        if model_class is not None:
            check_cache(model_class, config)
    except ValueError as error:
        raise ModelError(f"{name}: {error}") from error
    _check_sizes(name, folder, config)
    method = _quantized_by(folder)
    whole = {kind for kind, shape in model_files.shapes(folder) if kind in WHOLE and len(shape) > 1}
    if method == UNNAMED or (whole and not method):
        how = "the way of MLX, or in another that names no method" if method else "without saying how"
        raise ModelError(f"{name} has weights that are quantized {how}; choose the model itself, or its GGUF")
    return config


def _layers(config: Any) -> int:
    found = getattr(config.get_text_config(decoder=True), "num_hidden_layers", None)
    return found if isinstance(found, int) else 0


def _check_sizes(name: str, folder: Path, config: Any) -> None:
    """ModelError where the configuration names more layers than there are tensors, or far more numbers than
    these hold: building such a model would take minutes, or all memory."""
    layers = _layers(config)
    tensors = len(model_files.shapes(folder))
    if layers > tensors:
        raise ModelError(
            f"{name} names {str(layers)[:20]} layers and its weights are {tensors} tensors; download or save"
            " the model again"
        )
    text = config.get_text_config(decoder=True)
    width, words = getattr(text, "hidden_size", None), getattr(text, "vocab_size", None)
    # Packed weights have fewer numbers in their files, and some models narrower embeddings, hence 16.
    if (
        isinstance(width, int)
        and isinstance(words, int)
        and width * words > 16 * model_files.count_parameters(folder)
    ):
        raise ModelError(
            f"{name} names a width of {str(width)[:20]}, far beyond what its weights hold; download or save"
            " the model again"
        )


def _read_tokenizer(name: str, folder: Path, config: Any) -> tuple[Any, Vocabulary]:
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=False)
        if tokenizer.chat_template is None:
            tokenizer.chat_template = _template_beside(folder)
        ends = _end_ids(name, folder, config, tokenizer.get_vocab())
        size = max(tokenizer.get_vocab().values(), default=-1) + 1
        if left_out := [end for end in ends if end >= size]:  # a configuration's default, for one
            log.warning(
                "%s names %s as its end, and its tokenizer has %s tokens; the tokenizer's own end is used",
                name,
                left_out[0],
                size,
            )
        return tokenizer, read_vocabulary(tokenizer, [end for end in ends if end < size])
    except Exception as error:  # a missing package, a damaged file, an unknown family
        raise ModelError(
            f"the tokenizer of {name} cannot be read ({first_line(error)}); choose another model or save a"
            " fast tokenizer"
        ) from error


def _template_beside(folder: Path) -> str | None:
    """The chat template of a folder that has it in a file of its own, as processors do."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        said = json.loads((folder / "chat_template.json").read_text(encoding="utf-8")).get("chat_template")
        return said if isinstance(said, str) else None
    return None


def _end_ids(name: str, folder: Path, config: Any, known: Mapping[str, int]) -> list[int]:
    """The end ids of the generation settings, then of the configuration; a text is the id of the `known`
    token of that name. Values that are no ids get a warning and are left out."""
    said = [("config.json", getattr(config, "eos_token_id", None))]
    try:
        said.insert(0, (SETTINGS_FILE, generation_settings(folder).get("eos_token_id")))
    except ValueError as error:
        log.warning("ends that %s of %s may name are left out (%s)", SETTINGS_FILE, name, error)
    found: list[int] = []
    for where, value in said:
        given = value if isinstance(value, list | tuple) else [] if value is None else [value]
        ids: list[Any] = [known.get(end, end) if isinstance(end, str) else end for end in given]
        if all(isinstance(end, int) and not isinstance(end, bool) and end >= 0 for end in ids):
            found += ids
        else:
            log.warning(
                "eos_token_id in %s of %s is %s, which are no token ids; it is left out",
                where,
                name,
                repr(value)[:40],
            )
    return list(dict.fromkeys(found))


def _read_weights(
    name: str,
    folder: Path,
    place: str,
    device_map: str | None,
    dtype: torch.dtype,
    quantization: Quantization | None,
) -> Any:
    options: dict[str, Any] = {"dtype": dtype, "device_map": device_map}
    if quantization:
        four, eight = quantization == "4bit", quantization == "8bit"
        options["quantization_config"] = BitsAndBytesConfig(
            load_in_4bit=four, load_in_8bit=eight, bnb_4bit_compute_dtype=dtype
        )
        options["device_map"] = device_map or place  # weights are quantized on their device
    bars = transformers_logging.is_progress_bar_enabled()
    transformers_logging.disable_progress_bar()
    try:
        model, report = read_model(folder, output_loading_info=True, **options)
    except (
        OSError,
        ValueError,
        ImportError,
        LookupError,
        TypeError,
        AttributeError,
        RecursionError,
        SafetensorError,
    ) as error:
        if isinstance(error, ImportError) and (method := _quantized_by(folder)):
            need = (
                f"{name} has weights that are quantized by {method}, whose package is missing here"
                f" ({first_line(error)})"
            )
            raise ModelError(
                f"{need}; install it, or choose the model without quantization or as GGUF"
            ) from error
        if isinstance(error, (LookupError, TypeError, AttributeError)):
            said = f"{name} has a configuration from which no model can be made ({first_line(error)})"
            raise ModelError(f"{said}; choose another model") from error
        raise ModelError(
            f"the weights of {name} cannot be read ({first_line(error)}); download or save the model again"
        ) from error
    finally:
        if bars:
            transformers_logging.enable_progress_bar()
    if missing := sorted(report["missing_keys"]):
        raise ModelError(
            f"{name} lacks {len(missing)} of its weights, {missing[0]} among them; download or save the model"
            " again"
        )
    if left := sorted(report["unexpected_keys"]):
        log.warning(
            "%s has weights that its configuration has no place for (%d, first %s); they are left out",
            name,
            len(left),
            left[0],
        )
    return model


def _quantized_by(folder: Path) -> str:
    """The quantization method that a folder's configuration names; empty for none."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        said = json.loads((folder / "config.json").read_text(encoding="utf-8")).get("quantization_config")
        return str(said.get("quant_method", UNNAMED))[:40] if isinstance(said, dict) else ""
    return ""


def check_quantization(quantization: str | None, place: str) -> None:
    """ModelError unless the device supports this quantization."""
    if quantization is None:
        return
    if quantization not in BYTES:
        raise ModelError(f"quantization {quantization!r} is unknown; use 4bit, 8bit or none")
    if place == "cpu" or place.startswith("mps") or not torch.cuda.is_available():
        raise ModelError(
            f"{quantization} weights need a CUDA GPU, and this model would run on {place}; leave"
            " quantization off"
        )
    if not is_bitsandbytes_available():
        raise ModelError(
            f"{quantization} weights need bitsandbytes; run `pip install bitsandbytes` or leave"
            " quantization off"
        )
