"""Load a language model by name: bundled, a local folder, a Hub id, or a GGUF file. Safetensors and GGUF
only, never remote code."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import torch

from omnidemo.backends.fused_llama import FusedLlama
from omnidemo.backends.runner import ModelError, Runner
from omnidemo.core.config import ARITHMETIC, GREEDY, Arithmetic, Manner
from omnidemo.core.config.refusals import first_line
from omnidemo.decoding.sampling import as_tensor
from omnidemo.models import model_files
from omnidemo.models.folder_model import BYTES, FolderModel, Quantization, check_quantization
from omnidemo.models.gguf_model import GgufModel
from omnidemo.models.memory_need import check_room, least_need, whole_need
from omnidemo.models.model_files import Progress
from omnidemo.models.names import gguf_file
from omnidemo.models.parked import ParkedModel, absent_model
from omnidemo.models.transformers_runner import make_runner
from omnidemo.models.unserved_settings import check_settings
from omnidemo.vocabulary.vocabulary import Vocabulary

__all__ = ["LanguageModel", "ModelError", "load_model", "pick_device", "pick_dtype"]

log = logging.getLogger(__name__)
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
PROBED = 4  # tokens of the probe at load


class ModelSource(Protocol):
    """A model's files. `name`: its public name; `files`: the folder or file; `parameters`: the numbers in its
    weights; `learns`: whether a drafter from it may be trained; `packed_bytes`: the bytes of its weights as
    its file packs them, None where it does not."""

    name: str
    files: Path
    config: Any
    parameters: int
    packed_bytes: int | None
    learns: bool
    manner: Manner

    def tokenizer(self) -> tuple[Any, Vocabulary]: ...

    def weights(
        self, place: str, device_map: str | None, dtype: torch.dtype, quantization: Quantization | None
    ) -> Any:
        """A `transformers` model with its weights, on `place` or still on the CPU."""
        ...


@dataclass(frozen=True, slots=True)
class LanguageModel:
    """A loaded model. `runner` reads ids; `folder` holds its files (for GGUF the file itself);
    `memory_bytes`: bytes of the weights; `learns`: whether it can be trained as a drafter; a GGUF file
    cannot."""

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
    learns: bool = True
    config: Any = None  # `transformers`' description of it
    manner: Manner = GREEDY  # how it writes where a request says nothing


def load_model(
    name: str, *, device: str = "auto", dtype: str = "auto", quantization: Quantization | None = None,
    models: str = "", hub: bool = True, progress: Progress | None = None, fast: bool = True,
    park: bool = False, absent: bool = False, writes: bool = True, packed: bool = False,
    learning: float = 0.0, arithmetic: Arithmetic = ARITHMETIC,
) -> LanguageModel:  # fmt: skip
    """Load `name`: "bundled/large", a folder, a Hub id, or a GGUF file by any name of `gguf/sources.py`.

    device: auto, cpu, cuda, cuda:N, mps, or a device map of accelerate ("balanced"). dtype: auto, float32,
    bfloat16, float16. quantization: "4bit" or "8bit" weights through bitsandbytes, for targets on CUDA (a
    drafter's have to stay trainable). models: as in
    `gguf_file`. hub: whether downloads are allowed. fast: whether passes may be compiled or recorded. park:
    compute nothing here (`ParkedModel`). absent: as `park`, without weights. writes: as a target, whose
    settings for generating count. packed: compiled passes read a GGUF file's weights as they are packed.
    arithmetic: in which they multiply these. learning: bytes of a trainer beside it.
    `progress(stage, fraction)`: "files", "downloading" where needed, "tokenizers", "weights", "compiling"
    where it waits for that. ModelError, one sentence, also where memory is too small (`memory_need.py`).
    """
    report = progress or (lambda stage, fraction: None)
    place, device_map = pick_device(device)
    check_quantization(quantization, place)
    report("files", 0.0)
    # the least share of its files' bytes in memory; quantized weights usually come from two bytes a number
    share = BYTES[quantization] / 2 if quantization else 0.5 if dtype in ("bfloat16", "float16") else 1.0
    given: Any = {
        "models": models, "hub": hub, "progress": report, "share": share, "packed": packed,
    }  # fmt: skip
    source = open_source(name, free=None if absent else model_files.free_memory(place), **given)
    check_settings(name := source.name, source.files if writes else None)
    number = pick_dtype(dtype, place, source.config)
    free = model_files.free_memory(place)
    wide = _computes_in_float32(name, number, place, source.config, source.parameters, free)
    width = BYTES[quantization] if quantization else 4 if wide else number.itemsize
    able = packed and fast and not park and (place, number) == ("cpu", torch.float32)
    own = source.packed_bytes if able else None
    kept = 2 if own and arithmetic == "int8" else 4 if wide else number.itemsize  # of keys and values
    needs = own or source.parameters * width, source.config, kept
    need = least_need(*needs, learning)
    if not absent:
        check_room(name, need, whole_need(*needs), free, place, bool(own))
    report("tokenizers", 0.0)
    tokenizer, vocabulary = _checked_tokenizer(source)
    report("weights", 0.0)
    with _weights_explained(name, f"it needs {need} and {place} had {free / 1e9:.1f} GB"):
        if absent:
            runner: Runner = absent_model(source.config, number)
        elif own and isinstance(source, GgufModel):
            runner = source.packed(report, arithmetic)
        else:
            runner = _read(source, (place, device_map), number, wide, quantization, fast, park)
    if not (park or absent):
        _probe(name, runner, vocabulary)
    report("weights", 1.0)
    return _described(source, tokenizer, vocabulary, runner)


def _checked_tokenizer(source: ModelSource) -> tuple[Any, Vocabulary]:
    tokenizer, vocabulary = source.tokenizer()
    if isinstance(tokenizer.chat_template, dict) and "default" not in tokenizer.chat_template:
        log.warning("%s has chat templates for other uses alone, and is used without one", source.name)
        tokenizer.chat_template = None
    return tokenizer, vocabulary


@contextmanager
def _weights_explained(name: str, sizes: str) -> Iterator[None]:
    """Turn errors of reading weights into a ModelError of one sentence. `sizes`: the memory that they need
    and that there was."""
    try:
        yield
    except ModelError:
        raise
    except (MemoryError, RuntimeError, OSError, ValueError) as error:
        if isinstance(error, MemoryError) or "allocate" in str(error) or "out of memory" in str(error):
            raise ModelError(f"{name} ran out of memory: {sizes}; choose a smaller model") from error
        raise ModelError(
            f"the weights of {name} cannot be used ({first_line(error)}); download or save the model again"
        ) from error


def _described(source: ModelSource, tokenizer: Any, vocabulary: Vocabulary, runner: Runner) -> LanguageModel:
    return LanguageModel(
        name=source.name,
        tokenizer=tokenizer,
        vocabulary=vocabulary.within(runner.rows),
        runner=runner,
        context=runner.max_positions,
        parameters=runner.parameters,
        memory_bytes=_bytes(runner),
        device=runner.device,
        dtype=runner.dtype,
        folder=source.files,
        chat=bool(tokenizer.chat_template),
        learns=source.learns,
        config=source.config,
        manner=source.manner,
    )


def _bytes(runner: Runner) -> int:
    """Bytes of a runner's weights; tied ones count once."""
    if isinstance(runner, FusedLlama) and runner.packed is not None:
        return runner.packed.nbytes
    return sum({one.data_ptr(): one.nbytes for one in runner.weights().values()}.values())


def open_source(
    name: str, *, hub: bool = True, progress: Progress | None = None,
    free: int | None = None, share: float = 1.0, packed: bool = False, models: str = "",
) -> ModelSource:  # fmt: skip
    """A model's files, downloaded if need be, without reading weights. `free`: bytes of memory that must hold
    a `share` of a folder's weight files, or a GGUF file `packed` or in float32. ModelError, one sentence,
    where the files cannot be had or read."""
    file = gguf_file(name, hub=hub, progress=progress, free=free, packed=packed, models=models)
    if file is not None:
        return GgufModel(file)
    return FolderModel(name, model_files.find(name, hub=hub, progress=progress, free=free, share=share))


def _read(
    source: ModelSource, places: tuple[str, str | None], dtype: torch.dtype, wide: bool,
    quantization: Quantization | None, fast: bool, park: bool,
) -> Runner:  # fmt: skip
    """A runner of weights that are not packed. `wide`: compute in float32."""
    place, device_map = places
    spread = device_map is not None or bool(quantization)
    model = source.weights(place, device_map, dtype, quantization)
    if not spread:
        model = model.to(place, torch.float32) if wide else model.to(place)
    model = model.eval().requires_grad_(False)
    try:
        return ParkedModel(model, fast) if park else make_runner(model, fast, spread=spread)
    except ValueError as error:
        raise ModelError(f"{source.name}: {error}") from error


def pick_device(device: str) -> tuple[str, str | None]:
    """(device or device map, device map or None). `auto` is cuda, mps or cpu, and several GPUs share a
    model."""
    if device == "auto":
        if torch.cuda.device_count() > 1:
            return "auto", "auto"
        other = "mps" if torch.backends.mps.is_available() else "cpu"
        return "cuda" if torch.cuda.is_available() else other, None
    if device in ("balanced", "balanced_low_0", "sequential"):
        return device, device
    if not re.fullmatch(r"cpu|(cuda|mps)(:\d+)?", device):
        raise ModelError(f"device {device!r} is unknown; use auto, cpu, cuda, cuda:N, mps or balanced")
    kind, _, index = device.partition(":")
    there = {"cpu": 1, "cuda": torch.cuda.device_count(), "mps": int(torch.backends.mps.is_available())}
    if int(index or 0) >= there[kind]:
        raise ModelError(
            f"this machine has no device {device!r} that torch can use; set OMNIDEMO_DEVICE=auto"
        )
    return device, None


def pick_dtype(dtype: str, place: str, config: Any) -> torch.dtype:
    """`auto` is float32 on a CPU, where most compute fastest in it, and the model's own dtype elsewhere."""
    if dtype != "auto":
        if dtype not in DTYPES:
            raise ModelError(f"dtype {dtype!r} is unknown; use auto, float32, bfloat16 or float16")
        return DTYPES[dtype]
    own = getattr(config, "dtype", None)
    return torch.float32 if place == "cpu" or not isinstance(own, torch.dtype) else own


def _computes_in_float32(
    name: str, dtype: torch.dtype, place: str, config: Any, parameters: int, free: float
) -> bool:
    """Whether two-byte weights are computed in float32: compiled passes on a CPU do that, from two-byte
    copies, while torch is several times slower in two bytes. Without enough memory the weights stay as they
    are, and the log says so."""
    if place != "cpu" or dtype == torch.float32 or not FusedLlama.fits(config):
        return False
    if least_need(parameters * 4, config, 4).total <= free:
        return True
    log.warning(
        "%s stays in %s, for which memory suffices; on a CPU that is several times as slow as float32",
        name,
        dtype,
    )
    return False


def _probe(name: str, runner: Runner, vocabulary: Vocabulary) -> None:
    """ModelError unless one forward pass over a few tokens has a finite maximum in each row of logits:
    weights may be damaged, or overflow in this dtype."""
    ids = [token_id for token_id, token in enumerate(vocabulary.tokens[: runner.rows]) if token][
        : min(PROBED, runner.max_positions)
    ] or [0]
    logits = as_tensor(runner.new_cache().forward(ids, len(ids)).logits)
    if not bool(torch.isfinite(logits.amax(-1)).all()):
        where = (
            ""
            if runner.dtype == torch.float32
            else f" in {str(runner.dtype).removeprefix('torch.')}; try dtype=float32"
        )
        raise ModelError(
            f"{name} computes numbers that are not finite{where}; download or save the model again, or choose"
            " another one"
        )
