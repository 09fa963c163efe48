"""Import of adapters in PEFT's own format, from a folder or a zip, which is checked as an untrusted file."""

from __future__ import annotations

import json
import zipfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load
from torch import Tensor
from transformers import AutoConfig, AutoModelForCausalLM
from transformers.pytorch_utils import Conv1D

from omnidemo.models.adapters.adapter_state import (
    CONFIG,
    PREFIX,
    WEIGHTS,
    AdapterState,
    BaseWeights,
    merged_weights,
)
from omnidemo.models.adapters.peft_export import PARTS, modules_of

MOST_HEADER = 1 << 20  # bytes of the safetensors header
MOST_RANK = 1024
MOST_CONFIG_BYTES = 1 << 20
Opened = Callable[[], Any]
Files = Mapping[str, tuple[int, Opened]]  # name → number of bytes, and how to open it
# Settings of PEFT without effect on finished weights. With any other setting an adapter may be more than
# W + (alpha/r)·B·A on linear layers.
HARMLESS = {
    "peft_type", "task_type", "auto_mapping", "peft_version", "base_model_name_or_path", "revision",
    "inference_mode", "r", "lora_alpha",
    "lora_dropout", "target_modules", "exclude_modules", "layers_to_transform", "layers_pattern",
    "fan_in_fan_out", "bias",
    "init_lora_weights", "loftq_config", "eva_config", "corda_config", "lora_ga_config", "megatron_core",
    "qalora_group_size",
    "runtime_config", "ensure_weight_tying",
}  # fmt: skip
# Initialisations that keep the base weights. All others (PiSSA, OLoRA, CorDA, LoftQ, LoRA-GA, …) change them.
PLAIN_INITS = (True, False, None, "gaussian", "eva", "orthogonal", "mica")


def import_peft(source: Path, drafter: Path) -> AdapterState:
    """Read a LoRA adapter in PEFT's format from a folder or zip, for the drafter in a folder.

    Nothing is unpacked to disk, and only safetensors and JSON are read. B is scaled so that alpha = 2r, as in
    our adapters, and training can continue. ValueError, one sentence, for anything but plain LoRA on linear
    layers that fits the base.
    """
    base = BaseWeights(drafter)
    files = _files(source, base)
    config = _json_object(files[CONFIG])
    rank, alpha = _check_config(config)
    try:
        weights = {name: tensor.float() for name, tensor in load(files[WEIGHTS]).items()}
    except (SafetensorError, ValueError, KeyError, RuntimeError) as error:
        raise ValueError(
            f"{WEIGHTS} is not a safetensors file ({error}): export the adapter again."
        ) from None
    modules = _check_weights(weights, rank)
    if "lm_head" in modules and "lm_head.weight" not in base:
        said = (
            "The adapter changes lm_head, and this drafter's output layer is its embedding, which would"
            " change with it"
        )
        raise ValueError(f"{said}: train it as plain LoRA on other layers.")
    weights = {
        name: tensor * (alpha / (2 * rank)) if name.endswith(PARTS[1]) else tensor
        for name, tensor in weights.items()
    }
    # settings of training and of layer numbers have no effect on finished weights
    kept = {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "bias": "none",
        "fan_in_fan_out": _turned(drafter, modules),
        "r": rank,
        "lora_alpha": 2 * rank,
        "target_modules": modules,
        "inference_mode": True,
    }
    adapter = AdapterState(weights, kept)
    merged_weights(base, adapter)
    return adapter


def _turned(drafter: Path, modules: Sequence[str]) -> bool:
    """Whether the layers keep their weights as [in, out]. As in PEFT their kind decides, not the setting
    `fan_in_fan_out`: of a square layer no shape tells. ValueError for layers of both kinds."""
    with torch.device("meta"):
        model: Any = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(drafter))
    there = dict(model.named_modules())
    kinds = {isinstance(there[name], Conv1D) for name in modules if name in there}
    if len(kinds) > 1:
        raise ValueError(
            "The adapter changes layers that keep their weights in two orders (Conv1D and Linear): train one"
            " for layers of one kind."
        )
    return kinds == {True}


def _files(source: Path, base: Mapping[str, Tensor]) -> dict[str, bytes]:
    """The two files of an adapter. ValueError where they are missing, larger than an adapter of this base can
    be, or a path of the zip leads out of it."""
    if source.is_dir():
        entries = [entry for entry in source.iterdir() if entry.is_file()]
        files = {entry.name: (entry.stat().st_size, partial(open, entry, "rb")) for entry in entries}
        return _pick(files, source, base)
    try:
        with zipfile.ZipFile(source) as packed:
            members: dict[str, tuple[int, Opened]] = {}
            for info in packed.infolist():
                path = PurePosixPath(info.filename.replace("\\", "/"))
                if path.is_absolute() or ".." in path.parts or ":" in info.filename:
                    raise ValueError(
                        f"{source.name} holds a path that leaves its folder ({info.filename!r}): it is"
                        " refused."
                    )
                if path.name in members and path.name in (WEIGHTS, CONFIG):
                    raise ValueError(
                        f"{source.name} holds more than one {path.name}: pack one adapter alone."
                    )
                if not info.is_dir():
                    members[path.name] = (info.file_size, partial(packed.open, info))
            return _pick(members, source, base)
    except FileNotFoundError:
        raise ValueError(
            f"There is no adapter at {source}: choose a zip or a folder in PEFT's format."
        ) from None
    except (zipfile.BadZipFile, zlib.error, OSError, EOFError, NotImplementedError, RuntimeError) as error:
        raise ValueError(
            f"{source.name} cannot be read as a zip ({error}): choose a zip or a folder in PEFT's format."
        ) from None


def _pick(files: Files, source: Path, base: Mapping[str, Tensor]) -> dict[str, bytes]:
    pickled = next((name for name in files if name.endswith((".bin", ".pt", ".pth", ".pkl", ".ckpt"))), None)
    if WEIGHTS not in files and pickled:
        raise ValueError(
            f"{source.name} keeps its weights as a pickle ({pickled}), which can run code: save it as"
            f" {WEIGHTS}."
        )
    for name in (WEIGHTS, CONFIG):
        if name not in files:
            raise ValueError(f"{source.name} has no {name}: choose a zip or a folder in PEFT's format.")
    described = _read(files, CONFIG, MOST_CONFIG_BYTES, source)
    rank, _ = _check_config(_json_object(described))
    # The configuration gives the size of the tensors, and is checked before anything larger is unpacked.
    most = 4 * rank * sum(sum(tensor.shape) for tensor in base.values() if tensor.dim() == 2) + MOST_HEADER
    if files[WEIGHTS][0] > most:
        bound = f"more than the {most:,} of an adapter of rank {rank} for this drafter"
        raise ValueError(f"{WEIGHTS} in {source.name} has {files[WEIGHTS][0]:,} bytes, {bound}.")
    return {WEIGHTS: _read(files, WEIGHTS, most, source), CONFIG: described}


def _read(files: Files, name: str, most: int, source: Path) -> bytes:
    size, opened = files[name]
    if size > most:
        raise ValueError(f"{name} in {source.name} has {size:,} bytes, more than the {most:,} that are read.")
    with opened() as file:
        return bytes(file.read(size))


def _json_object(data: bytes) -> dict[str, Any]:
    try:
        value = json.loads(data)
        assert isinstance(value, dict)
        return value
    except (ValueError, AssertionError, RecursionError):
        raise ValueError(f"{CONFIG} is not a JSON object: export the adapter again.") from None


def _check_config(config: Mapping[str, Any]) -> tuple[int, float]:
    """(rank, alpha). ValueError where the adapter is anything but W + (alpha/r)·B·A."""
    kind = config.get("peft_type")
    if kind != "LORA":
        raise ValueError(f"The adapter is of the kind {kind!r}, and only LoRA can be imported.")
    extra = next((name for name, value in config.items() if value and name not in HARMLESS), None)
    if extra:
        extra = extra[:40]
        raise ValueError(
            f"The adapter uses {extra}, which cannot be merged into the drafter here: train it as plain LoRA."
        )
    init = config.get("init_lora_weights")
    if (init.lower() if isinstance(init, str) else init) not in PLAIN_INITS:
        raise ValueError(
            f"The adapter was begun as {str(init)[:40]!r}, which changes the drafter's own weights too: save"
            " it with PEFT's path_initial_model_for_weight_conversion, or train it as plain LoRA."
        )
    if config.get("bias", "none") != "none":
        raise ValueError(
            f"The adapter trains biases (bias {config['bias']!r}), which is not supported: train it as plain"
            " LoRA."
        )
    rank, alpha = config.get("r"), config.get("lora_alpha")
    if (
        type(rank) is not int
        or not 1 <= rank <= MOST_RANK
        or not isinstance(alpha, (int, float))
        or not 0 < alpha < 1e6
    ):
        raise ValueError(
            f"{CONFIG} has no usable rank and alpha (r {rank!r}, lora_alpha {alpha!r}): export the adapter"
            " again."
        )
    return rank, float(alpha)


def _check_weights(weights: Mapping[str, Tensor], rank: int) -> list[str]:
    """The adapted layers. ValueError for anything but complete, finite pairs of A [r, in] and B [out, r]."""
    other = next((name for name in weights if not name.startswith(PREFIX) or not name.endswith(PARTS)), None)
    if other:
        raise ValueError(f"The adapter holds {other!r}, and only LoRA on linear layers can be imported.")
    modules = modules_of(weights)
    if not modules or {f"{PREFIX}{module}{part}" for module in modules for part in PARTS} != set(weights):
        raise ValueError("The adapter lacks one half of a layer (lora_A or lora_B): export it again.")
    for module in modules:
        first, second = (weights[f"{PREFIX}{module}{part}"] for part in PARTS)
        if first.dim() != 2 or second.dim() != 2 or first.shape[0] != rank or second.shape[1] != rank:
            shapes = f"{tuple(first.shape)} and {tuple(second.shape)}"
            raise ValueError(f"The adapter's {module} is {shapes}, which is no linear layer of rank {rank}.")
        if not (torch.isfinite(first).all() and torch.isfinite(second).all()):
            raise ValueError(f"The adapter's {module} holds numbers that are not finite: it is damaged.")
    return modules
