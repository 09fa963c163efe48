"""Load a language model by name: bundled, a local folder, or a Hub id. Safetensors only, never remote code."""

from __future__ import annotations

import contextlib
import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from safetensors import SafetensorError
from transformers import AutoConfig, AutoTokenizer, BitsAndBytesConfig
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING, MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
from transformers.utils import is_bitsandbytes_available
from transformers.utils import logging as transformers_logging

from omnidemo.backends.fused_llama import FusedLlama
from omnidemo.backends.runner import ModelError, Runner
from omnidemo.config import GREEDY, Manner
from omnidemo.decoding.sampling import as_tensor
from omnidemo.models import model_files
from omnidemo.models.manner import generation_settings, read_manner
from omnidemo.models.model_files import Progress
from omnidemo.models.parked import ParkedModel, absent_model
from omnidemo.models.read_weights import read_model
from omnidemo.models.transformers_runner import check_cache, make_runner
from omnidemo.vocab.vocabulary import Vocabulary, read_vocabulary

__all__ = ["LanguageModel", "ModelError", "load_model", "pick_device", "pick_dtype"]

log = logging.getLogger(__name__)
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
MOST_LAYERS = 1000  # of a model whose cache is made to see whether it can be
PROBED = 4  # tokens that are read once to see that a model computes
Quantization = Literal["4bit", "8bit"]
BYTES: dict[str, float] = {"4bit": 0.75, "8bit": 1.25}  # of a weight on average, as embeddings and norms keep their dtype


@dataclass(frozen=True, slots=True)
class LanguageModel:
    """A loaded model. `runner` reads ids; `folder` holds its files; `memory_bytes` is what the weights take."""

    name: str
    tokenizer: Any
    vocabulary: Vocabulary
    runner: Runner
    context: int
    parameters: int
    memory_bytes: int
    device: torch.device
    dtype: torch.dtype
    folder: Path
    chat: bool  # whether the tokenizer has a chat template
    manner: Manner = GREEDY  # how it writes where a request says nothing


def load_model(
    name: str,
    *,
    device: str = "auto",
    dtype: str = "auto",
    quantization: Quantization | None = None,
    cache_dir: Path | None = None,
    progress: Progress | None = None,
    hub: bool = True,
    fast: bool = True,
    park: bool = False,
    absent: bool = False,
) -> LanguageModel:
    """Load `name`: "bundled/a", a local folder or a Hub id.

    device: auto, cpu, cuda, cuda:N, mps, or a device map of accelerate ("balanced"). dtype: auto, float32, bfloat16, float16.
    quantization: "4bit" or "8bit" weights through bitsandbytes, for targets on CUDA (a drafter's weights have to stay trainable).
    cache_dir: the Hub cache to use instead of the usual one. hub: whether downloads are allowed. fast: whether passes may be
    compiled or recorded; otherwise torch makes all of them. park: compute nothing here (`ParkedModel`). absent: as `park`, and without
    weights. `progress(stage, fraction)` is called in the stages "files", "downloading" where that is needed, "tokenizers" and "weights".
    ModelError, one sentence, when it cannot be loaded.
    """
    report = progress or (lambda stage, fraction: None)
    place, device_map = pick_device(device)
    _check_quantization(quantization, place)
    report("files", 0.0)
    # The least share of its files that it may take: packed weights come from two bytes as a rule, those of two bytes perhaps from four.
    share = BYTES[quantization] / 2 if quantization else 0.5 if dtype in ("bfloat16", "float16") else 1.0
    room = None if absent else model_files.free_memory(place)
    folder = model_files.find(name, cache_dir=cache_dir, hub=hub, progress=report, free=room, share=share)
    config = _read_config(name, folder)
    number = pick_dtype(dtype, place, config)
    free = model_files.free_memory(place)
    wide = _computes_in_float32(name, number, place, config, model_files.count_parameters(folder), free)
    width = BYTES[quantization] if quantization else 4 if wide else number.itemsize
    need = model_files.count_parameters(folder) * width * model_files.MARGIN
    if not absent:
        model_files.check_memory(name, need, free, place)

    report("tokenizers", 0.0)
    tokenizer, vocabulary = _read_tokenizer(name, folder, config)

    report("weights", 0.0)
    try:
        if absent:
            runner: Runner = absent_model(folder, number)
        else:
            runner = _read_weights(name, folder, place, device_map, number, quantization, wide, fast, park)
    except (MemoryError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and "allocate" not in str(error) and "out of memory" not in str(error):
            raise ModelError(f"the weights of {name} cannot be used ({_first(error)}); download or save the model again") from error
        sizes = f"it needs about {need / 1e9:.1f} GB and {place} had {free / 1e9:.1f} GB"
        raise ModelError(f"{name} ran out of memory: {sizes}; choose a smaller model") from error
    if not (park or absent):
        _probe(name, runner, vocabulary)
    report("weights", 1.0)
    return LanguageModel(
        name=name,
        tokenizer=tokenizer,
        vocabulary=vocabulary.within(runner.rows),
        runner=runner,
        context=runner.max_positions,
        parameters=runner.parameters,
        memory_bytes=sum({weight.data_ptr(): weight.nbytes for weight in runner.weights().values()}.values()),  # tied ones once
        device=runner.device,
        dtype=runner.dtype,
        folder=folder,
        chat=bool(tokenizer.chat_template),
        manner=read_manner(name, folder),
    )


def pick_device(device: str) -> tuple[str, str | None]:
    """(the device, or the device map again; the device map or None). `auto` takes cuda, mps or the cpu, and spreads over several GPUs."""
    if device == "auto":
        if torch.cuda.device_count() > 1:
            return "auto", "auto"
        return ("cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"), None
    if device in ("balanced", "balanced_low_0", "sequential"):
        return device, device
    if not re.fullmatch(r"cpu|(cuda|mps)(:\d+)?", device):
        raise ModelError(f"device {device!r} is unknown; use auto, cpu, cuda, cuda:N, mps or balanced")
    kind, _, index = device.partition(":")
    there = {"cpu": 1, "cuda": torch.cuda.device_count(), "mps": int(torch.backends.mps.is_available())}
    if int(index or 0) >= there[kind]:
        raise ModelError(f"this machine has no device {device!r} that torch can use; set OMNIDEMO_DEVICE=auto")
    return device, None


def pick_dtype(dtype: str, place: str, config: Any) -> torch.dtype:
    """`auto` is float32 on a CPU, which most of them compute fastest, and the model's own elsewhere."""
    if dtype != "auto":
        if dtype not in DTYPES:
            raise ModelError(f"dtype {dtype!r} is unknown; use auto, float32, bfloat16 or float16")
        return DTYPES[dtype]
    own = getattr(config, "dtype", None)
    return torch.float32 if place == "cpu" or not isinstance(own, torch.dtype) else own


def _computes_in_float32(name: str, dtype: torch.dtype, place: str, config: Any, parameters: int, free: float) -> bool:
    """Whether weights of two bytes are computed with in float32: on a CPU the compiled passes do, and have such copies of them, while torch
    takes several times as long for sums in two bytes. Where memory is too small for that they stay as they are, and the log says so."""
    if place != "cpu" or dtype == torch.float32 or not FusedLlama.fits(config):
        return False
    if parameters * 4 * model_files.MARGIN <= free:
        return True
    log.warning("%s stays in %s, for which memory suffices; on a CPU that is several times as slow as float32", name, dtype)
    return False


def _check_quantization(quantization: str | None, place: str) -> None:
    """ModelError unless weights can be quantized that way on that device."""
    if quantization is None:
        return
    if quantization not in BYTES:
        raise ModelError(f"quantization {quantization!r} is unknown; use 4bit, 8bit or none")
    if place == "cpu" or place.startswith("mps") or not torch.cuda.is_available():
        raise ModelError(f"{quantization} weights need a CUDA GPU, and this model would run on {place}; leave quantization off")
    if not is_bitsandbytes_available():
        raise ModelError(f"{quantization} weights need bitsandbytes; run `pip install bitsandbytes` or leave quantization off")


def _read_config(name: str, folder: Path) -> Any:
    try:
        config = AutoConfig.from_pretrained(folder, trust_remote_code=False)
    except Exception as error:  # damaged JSON, unknown type, own code: whatever transformers cannot read
        raise ModelError(f"{name} has a configuration that transformers cannot read ({_first(error)}); choose another model") from error
    made_for = list(config.architectures or [])
    text = ("CausalLM", "LMHeadModel", "ForConditionalGeneration")
    if config.is_encoder_decoder or config.model_type not in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES or (
        made_for and not any(architecture.endswith(text) for architecture in made_for)
    ):  # fmt: skip
        kind = made_for[0] if made_for else config.model_type
        raise ModelError(f"{name} is a {kind}, not a causal language model; choose one that writes text from left to right")
    if _layers(config) > MOST_LAYERS:  # even its empty cache takes long
        _check_sizes(name, folder, config)
    model_class = MODEL_FOR_CAUSAL_LM_MAPPING.get(type(config), None)
    try:
        if model_class is not None:
            check_cache(model_class, config)
    except ValueError as error:
        raise ModelError(f"{name}: {error}") from error
    _check_sizes(name, folder, config)
    return config


def _layers(config: Any) -> int:
    found = getattr(config.get_text_config(decoder=True), "num_hidden_layers", None)
    return found if isinstance(found, int) else 0


def _check_sizes(name: str, folder: Path, config: Any) -> None:
    """ModelError where the configuration asks for more layers than there are tensors, or for far more numbers than these hold: building
    them would take minutes, or all memory."""
    layers = _layers(config)
    tensors = model_files.count_tensors(folder)
    if layers > tensors:
        raise ModelError(f"{name} names {str(layers)[:20]} layers and its weights are {tensors} tensors; download or save the model again")
    text = config.get_text_config(decoder=True)
    width, words = getattr(text, "hidden_size", None), getattr(text, "vocab_size", None)
    # Packed weights have fewer numbers in their files, and some models narrower embeddings: far more than that is a damaged file.
    if isinstance(width, int) and isinstance(words, int) and width * words > 16 * model_files.count_parameters(folder):
        raise ModelError(f"{name} names a width of {str(width)[:20]}, far beyond what its weights hold; download or save the model again")


def _read_tokenizer(name: str, folder: Path, config: Any) -> tuple[Any, Vocabulary]:
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=False)
        ends = _end_ids(folder, config)
        if not all(isinstance(end, int) for end in ends):
            raise ValueError(f"eos_token_id is {str(ends)[:40]}, which are no token ids")
        size = max(tokenizer.get_vocab().values(), default=-1) + 1
        if left_out := [end for end in ends if end >= size]:  # a configuration's default, for one
            log.warning("%s names %s as its end, and its tokenizer has %s tokens; the tokenizer's own end is used", name, left_out[0], size)
        return tokenizer, read_vocabulary(tokenizer, [end for end in ends if end < size])
    except Exception as error:  # a missing package, a damaged file, an unknown family
        raise ModelError(
            f"the tokenizer of {name} cannot be read ({_first(error)}); choose another model or save a fast tokenizer"
        ) from error


def _end_ids(folder: Path, config: Any) -> list[int]:
    """Ids that end an answer, from the generation settings first and then the configuration."""
    found: list[int | Sequence[int] | None] = [getattr(config, "eos_token_id", None)]
    with contextlib.suppress(ValueError):  # `read_manner` says what is wrong with the file
        found.insert(0, generation_settings(folder).get("eos_token_id"))
    ids = [i for entry in found if entry is not None for i in ([entry] if isinstance(entry, int) else entry)]
    return list(dict.fromkeys(ids))


def _read_weights(
    name: str, folder: Path, place: str, device_map: str | None, dtype: torch.dtype, quantization: Quantization | None,
    wide: bool = False, fast: bool = True, park: bool = False,
) -> Runner:  # fmt: skip
    options: dict[str, Any] = {"dtype": dtype, "device_map": device_map}
    if quantization:
        four, eight = quantization == "4bit", quantization == "8bit"
        options["quantization_config"] = BitsAndBytesConfig(load_in_4bit=four, load_in_8bit=eight, bnb_4bit_compute_dtype=dtype)
        options["device_map"] = device_map = device_map or place  # quantized weights are made where they stay
    bars = transformers_logging.is_progress_bar_enabled()
    transformers_logging.disable_progress_bar()
    try:
        model, report = read_model(folder, output_loading_info=True, **options)
    except (OSError, ValueError, ImportError, LookupError, TypeError, AttributeError, RecursionError, SafetensorError) as error:
        raise ModelError(f"the weights of {name} cannot be read ({_first(error)}); download or save the model again") from error
    finally:
        if bars:
            transformers_logging.enable_progress_bar()
    if missing := sorted(report["missing_keys"]):
        raise ModelError(f"{name} lacks {len(missing)} of its weights, {missing[0]} among them; download or save the model again")
    if device_map is None:
        model = model.to(place, torch.float32) if wide else model.to(place)
    model.eval().requires_grad_(False)
    try:
        return ParkedModel(model, fast) if park else make_runner(model, fast, spread=device_map is not None)
    except ValueError as error:
        raise ModelError(f"{name}: {error}") from error


def _probe(name: str, runner: Runner, vocabulary: Vocabulary) -> None:
    """ModelError unless one forward pass over a few tokens has a finite highest logit in each row: weights may be damaged, or overflow
    in this dtype."""
    ids = [token_id for token_id, token in enumerate(vocabulary.tokens[: runner.rows]) if token][: min(PROBED, runner.max_positions)] or [0]
    logits = as_tensor(runner.new_cache().forward(ids, len(ids)).logits)
    if not bool(torch.isfinite(logits.amax(-1)).all()):
        where = "" if runner.dtype == torch.float32 else f" in {str(runner.dtype).removeprefix('torch.')}; try dtype=float32"
        raise ModelError(f"{name} computes numbers that are not finite{where}; download or save the model again, or choose another one")


def _first(error: Exception) -> str:
    """The first line of an error, short enough for a sentence."""
    first = next(iter(str(error).strip().splitlines()), "") or type(error).__name__
    return first if len(first) <= 160 else first[:157] + "..."
