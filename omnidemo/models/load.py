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

import numpy as np
import torch

from omnidemo.backends import compile_kernels
from omnidemo.backends.fused_llama import FusedLlama
from omnidemo.backends.runner import ModelError, Runner
from omnidemo.core.config import GREEDY, Manner
from omnidemo.core.config.refusals import explained
from omnidemo.models import model_files
from omnidemo.models.folder_model import FolderModel
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
SPELLED = "a b, it's:\n\tc  (d).\n\ne é"  # a text by which decoders are compared
# parameters of a packed model that waits for compiled code: torch would need a second or more a token
WAITS = 1_000_000_000
KEPT_SECONDS = 30.0  # longest wait of a smaller model for kept machine code


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

    def weights(self, dtype: torch.dtype) -> Any:
        """A `transformers` model with its weights, on the CPU."""
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
    # the file whose packed weights take the place of those in float32 as soon as passes are compiled
    packs: GgufModel | None = None


def load_model(
    name: str, *, device: str = "auto", dtype: str = "auto", models: str = "", hub: bool = True,
    progress: Progress | None = None, fast: bool = True, park: bool = False, absent: bool = False,
    writes: bool = True, packed: bool = False, compact: bool = False, learning: float = 0.0,
) -> LanguageModel:  # fmt: skip
    """Load `name`: "bundled/large", a folder, a Hub id, or a GGUF file by any name of `names.py`.

    device: auto, cpu, cuda, cuda:N or mps. dtype: auto, float32, bfloat16, float16. models: as in
    `gguf_file`. hub: whether downloads are allowed. fast: whether passes may be compiled or recorded. park:
    compute nothing here (`ParkedModel`). absent: as `park`, without weights. writes: as a target, whose
    settings for generating count. packed: compiled passes read a GGUF file's weights as they are packed, and
    multiply them in int8. compact: those of other weights read copies of two bytes where they are exact, for
    a drafter rounded ones. learning: bytes of a trainer beside it.
    `progress(stage, fraction)`: "files", "downloading" where needed, "tokenizers", "weights", "compiling"
    where it waits for that. ModelError, one sentence, also where memory is too small (`memory_need.py`).
    """
    report = progress or (lambda stage, fraction: None)
    place = pick_device(device)
    report("files", 0.0)
    # the least share of its files' bytes in memory
    share = 0.5 if dtype in ("bfloat16", "float16") else 1.0
    free = None if absent else model_files.free_memory(place)
    source = open_source(name, models=models, hub=hub, progress=report, free=free, share=share)
    check_settings(name := source.name, source.files if writes else None)
    number = pick_dtype(dtype, place, source.config)
    room = model_files.free_memory(place)
    wide = _computes_in_float32(name, number, place, source.config, source.parameters, room)
    width = 4 if wide else number.itemsize
    able = packed and fast and not park and (place, number) == ("cpu", torch.float32)
    own = source.packed_bytes if able else None
    packs = source if own and isinstance(source, GgufModel) else None
    kept = 2 if own else width  # of keys and values
    needs = own or source.parameters * width, source.config, kept
    need = least_need(*needs, learning)
    if not absent:
        check_room(name, need, whole_need(*needs), room, place, bool(own))
    report("tokenizers", 0.0)
    tokenizer, vocabulary = source.tokenizer()
    if isinstance(tokenizer.chat_template, dict) and "default" not in tokenizer.chat_template:
        log.warning("%s has chat templates for other uses alone, and is used without one", name)
        tokenizer.chat_template = None
    _compare_decoder(name, tokenizer, vocabulary)
    report("weights", 0.0)
    with _weights_explained(name, f"it needs {need} and {place} had {room / 1e9:.1f} GB"):
        if absent:
            runner: Runner = absent_model(source.config, number)
        elif packs is not None and _compiled(packs, room, report):
            runner, packs = packs.packed(report), None
        else:
            runner = _read(source, place, number, wide, fast, park, compact, not writes)
    if not (park or absent):
        _probe(name, runner, vocabulary)
    report("weights", 1.0)
    return LanguageModel(
        name=name, tokenizer=tokenizer, vocabulary=vocabulary.within(runner.rows), runner=runner,
        context=runner.max_positions, parameters=runner.parameters, memory_bytes=weight_bytes(runner),
        device=runner.device, dtype=runner.dtype, folder=source.files, chat=bool(tokenizer.chat_template),
        learns=source.learns, config=source.config, manner=source.manner, packs=packs,
    )  # fmt: skip


def _compare_decoder(name: str, tokenizer: Any, vocabulary: Vocabulary) -> None:
    """A warning where the tokenizer's decoder writes another text than its tokens spell, which are what an
    answer shows: it takes out what its normalizer added, for one."""
    with explained(f"the tokenizer of {name} cannot be used", "choose another model"):
        ids = tokenizer(SPELLED, add_special_tokens=False)["input_ids"]
        ids = [one for one in ids if vocabulary.writes(one)]
        own, said = (
            vocabulary.text_bytes(ids).decode(errors="replace"),
            tokenizer.backend_tokenizer.decode(ids),
        )
    if own.removeprefix(" ") != said.removeprefix(" "):
        log.warning(
            "the tokenizer of %s writes %r as %r; answers show what its tokens spell, %r",
            name, SPELLED, said, own,
        )  # fmt: skip


@contextmanager
def _weights_explained(name: str, sizes: str) -> Iterator[None]:
    """Turn errors of reading weights into a ModelError of one sentence. `sizes`: the memory that they need
    and that there was."""
    try:
        with explained(f"the weights of {name} cannot be used", "download or save the model again"):
            yield
    except ModelError as error:
        cause = error.__cause__
        if isinstance(cause, MemoryError) or re.search("allocate|out of memory", str(cause)):
            raise ModelError(f"{name} ran out of memory: {sizes}; choose a smaller model") from cause
        raise


def _compiled(packs: GgufModel, free: float, report: Progress) -> bool:
    """Whether there is compiled code for packed weights. Kept machine code is waited for. A model that is
    large, or does not fit memory in float32, waits for compiling; TooLarge where that fails and memory is too
    small for float32."""
    need = least_need(4.0 * packs.parameters, packs.config, 4)
    must = packs.parameters >= WAITS or need.total > free
    if compile_kernels.kernels() is None and must:
        report("compiling", 1.0)
        if not compile_kernels.wait():
            why = compile_kernels.failure() or "it takes too long"
            said = f"{need} because its passes cannot be compiled ({why})"
            model_files.check_memory(packs.name, need.total, free, "cpu", said)
    elif compile_kernels.kept():
        compile_kernels.wait(KEPT_SECONDS)
    return compile_kernels.kernels() is not None


def weight_bytes(runner: Runner) -> int:
    """Bytes of a runner's weights; tied ones count once."""
    if isinstance(runner, FusedLlama) and runner.packed is not None:
        return sum(one.nbytes for one in runner.packed.values())
    return sum({one.data_ptr(): one.nbytes for one in runner.weights().values()}.values())


def open_source(
    name: str, *, hub: bool = True, progress: Progress | None = None,
    free: int | None = None, share: float = 1.0, models: str = "",
) -> ModelSource:  # fmt: skip
    """A model's files, downloaded if need be, without reading weights. `free`: bytes of memory that must hold
    a `share` of a folder's weight files, or a GGUF file. ModelError, one sentence, where the files cannot be
    had or read."""
    file = gguf_file(name, hub=hub, progress=progress, free=free, models=models)
    if file is not None:
        return GgufModel(file)
    return FolderModel(name, model_files.find(name, hub=hub, progress=progress, free=free, share=share))


def _read(
    source: ModelSource, place: str, dtype: torch.dtype, wide: bool, fast: bool, park: bool, compact: bool,
    rounding: bool,
) -> Runner:  # fmt: skip
    """A runner of weights that are not packed. `wide`: compute in float32; `compact`, `rounding`: as in
    `make_runner`."""
    model = source.weights(dtype)
    model = model.to(place, torch.float32) if wide else model.to(place)
    model = model.eval().requires_grad_(False)
    try:
        return ParkedModel(model, fast) if park else make_runner(model, fast, compact, rounding)
    except ValueError as error:
        raise ModelError(f"{source.name}: {error}") from error


def pick_device(device: str) -> str:
    """The device; `auto` is cuda, mps or cpu. ModelError for one that is unknown or not there."""
    if device == "auto":
        other = "mps" if torch.backends.mps.is_available() else "cpu"
        return "cuda" if torch.cuda.is_available() else other
    if not re.fullmatch(r"cpu|(cuda|mps)(:\d+)?", device):
        raise ModelError(f"device {device!r} is unknown; use auto, cpu, cuda, cuda:N or mps")
    kind, _, index = device.partition(":")
    there = {"cpu": 1, "cuda": torch.cuda.device_count(), "mps": int(torch.backends.mps.is_available())}
    if int(index or 0) >= there[kind]:
        raise ModelError(
            f"this machine has no device {device!r} that torch can use; set OMNIDEMO_DEVICE=auto"
        )
    return device


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
    logits = runner.new_cache().forward(ids, len(ids)).logits
    if not np.isfinite(logits.max(-1)).all():
        where = (
            ""
            if runner.dtype == torch.float32
            else f" in {str(runner.dtype).removeprefix('torch.')}; try dtype=float32"
        )
        raise ModelError(
            f"{name} computes numbers that are not finite{where}; download or save the model again, or choose"
            " another one"
        )
