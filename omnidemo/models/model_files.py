"""Finding a model's files: in this project, in a local folder, in the Hub's cache, or on the Hub. Reads no
weights."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import torch
from huggingface_hub import snapshot_download
from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError
from safetensors import safe_open

from omnidemo.backends.runner import ModelError
from omnidemo.core import resources
from omnidemo.core.asset_files import ASSETS
from omnidemo.core.config.refusals import explained
from omnidemo.models.fetching.hub_downloads import (
    Progress,
    download,
)
from omnidemo.models.gguf.header import POINTER, is_pointer
from omnidemo.models.gguf.places import Walk, hub_snapshots
from omnidemo.models.gguf.sources import is_gguf

BUNDLED = ASSETS / "models"
# weights at the top of a repository: no pickles, no second copy in another format
WANTED = ["*.json", "*.safetensors", "*.model", "*.txt", "*.jinja", "*.tiktoken"]
UNWANTED = ["*/*", "consolidated*", "training_args*"]
RESTORE = "`git checkout assets/models` brings them back in a checkout, installing OmniDemo again elsewhere"
PICKLES = (".bin", ".pt", ".pth", ".ckpt")
TOKENIZER_FILES = ("tokenizer.json", "tokenizer.model", "spiece.model", "vocab.json", "vocab.txt")
# factor for activations and the fused copy of a layer; `memory_need.py` counts conversations
MARGIN = 1.2
SMALLER = "a smaller model or dtype=bfloat16"  # what to choose where memory is short


def find(
    name: str, *, hub: bool = True, progress: Progress | None = None, free: int | None = None,
    share: float = 1.0,
) -> Path:  # fmt: skip
    """The folder of a model's files, downloaded if need be. `free`: bytes of memory that must hold a `share`
    of its weight files.

    ModelError where there is no such model, no way to it, or too little memory.
    """
    if is_gguf(name):
        raise ModelError(
            f"{name} is a GGUF file, which cannot be trained or recorded here; name a folder or a model of"
            " the Hub instead"
        )
    folder = local_folder(name)
    if folder is None:
        folder = cached_folder(name)
    if folder is None:
        if not hub:
            raise ModelError(
                f"there is no folder {name}, and no model of the Hub by that name on this machine, and"
                " downloads are switched off; check the spelling, or allow them with OMNIDEMO_TRUST_HUB=true"
            )
        report = progress or (lambda stage, fraction: None)

        def fits(weights: int) -> None:
            if free is not None:
                check_memory(name, weights * share, free, "this machine")

        folder = download(name, name, WANTED, UNWANTED, report, fits)
    check_files(name, folder)
    return folder


def local_folder(name: str) -> Path | None:
    """The folder of a bundled or local model; None for a possible Hub id. ModelError for a missing folder,
    and for an impossible name."""
    bundled = name.startswith("bundled/")
    path = BUNDLED / name.removeprefix("bundled/") if bundled else Path(name)
    with explained(f"{name[:120]} cannot be looked at", "check the path"):
        path = path.expanduser()
        if (path / "config.json").exists() or (name and not bundled and path.is_dir()):
            return path
    if bundled:
        there = ", ".join(sorted(f"bundled/{path.parent.name}" for path in BUNDLED.glob("*/config.json")))
        raise ModelError(
            f"{name} is not there (bundled models on this machine: {there or 'none'}); if its files were"
            f" lost, {RESTORE}"
        )
    if path.is_absolute() or name.startswith((".", "~")) or not re.fullmatch(r"[\w.-]+(/[\w.-]+)?", name):
        raise ModelError(
            f"there is no folder {name[:120]!r}, and it is no Hub id such as Qwen/Qwen2.5-0.5B-Instruct;"
            " check the spelling"
        )
    return None


def check_files(name: str, folder: Path) -> None:
    """ModelError unless the folder has a configuration, safetensors weights and a tokenizer."""
    weights = weight_files(folder)
    for path in (folder / "config.json", folder / "tokenizer.json", *weights):
        if is_pointer(path):
            raise ModelError(f"{path.name} of {name} {POINTER}")
    pickles = sorted(path.name for path in folder.glob("*") if path.suffix in PICKLES)
    missing = missing_shards(folder)
    why = ""
    if not (folder / "config.json").exists():
        why = "has no config.json; give the folder of a model saved with `save_pretrained`"
        if (folder / "adapter_config.json").exists():
            why = "is an adapter alone; merge it into the model that it was trained for, and save that"
    elif not weights and pickles:
        why = (
            f"has its weights only as a pickle ({pickles[0]}), which can run code when it is opened; convert"
            " them with `save_pretrained(folder, safe_serialization=True)` where you trust them"
        )
    elif not weights:
        why = "has no safetensors weights; choose a repository or folder that has, as most models do by now"
    elif missing:
        why = f"lacks {missing[0]}, one of its weight files; download or save the model again"
    elif not any((folder / file).exists() for file in TOKENIZER_FILES):
        why = "has no tokenizer; save one beside the weights with `tokenizer.save_pretrained(folder)`"
    if why:
        raise ModelError(f"{name} {why}")


def weight_files(folder: Path) -> list[Path]:
    return sorted(
        path
        for path in folder.glob("*.safetensors")
        if not path.name.startswith(("consolidated", "adapter_"))
    )


def size_of(folder: Path) -> int:
    """Bytes of a folder's weight files."""
    return sum(path.stat().st_size for path in weight_files(folder))


def missing_shards(folder: Path) -> list[str]:
    """Weight files that the index names and the folder lacks."""
    index = folder / "model.safetensors.index.json"
    if not index.exists():
        return []
    try:
        shards = sorted(set(json.loads(index.read_text())["weight_map"].values()))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return [index.name]
    return [shard for shard in shards if not (folder / shard).exists()]


def count_parameters(folder: Path) -> int:
    """Numbers in all weights, from the headers of the safetensors files. ModelError for a damaged file."""
    return sum(math.prod(shape) for _, shape in shapes(folder))


def shapes(folder: Path) -> list[tuple[str, list[int]]]:
    """(dtype in safetensors' terms, shape) of each weight. ModelError for a damaged file."""
    found: list[tuple[str, list[int]]] = []
    for path in weight_files(folder):
        what = f"the weights file {path.name} in {folder} is damaged"
        with explained(what, "download or save the model again"), safe_open(path, "pt") as opened:
            slices = [opened.get_slice(name) for name in opened.keys()]  # noqa: SIM118
            found += [(one.get_dtype(), one.get_shape()) for one in slices]
    return found


def free_memory(device: str) -> int:
    """Free bytes of a device: a GPU's own memory, else the machine's."""
    if device.startswith("cuda"):
        return torch.cuda.mem_get_info(int(device.partition(":")[2] or 0))[0]
    return resources.free_memory()


class TooLarge(ModelError):
    """A model that lacks `short` bytes of memory."""

    def __init__(self, said: str, short: float) -> None:
        super().__init__(said)
        self.short = short


def check_memory(
    name: str, need: float, free: float, device: str, what: str = "", instead: str = SMALLER
) -> None:
    """TooLarge for a model that needs more bytes than are free. `what`: the need in words, if there is more
    to say than its sum; `instead`: what to choose."""
    if need > free:
        raise TooLarge(
            f"{name} needs {what or f'about {need / 1e9:.1f} GB'} and {device} has {free / 1e9:.1f} GB free; "
            f"choose {instead}, or free memory",
            need - free,
        )


def cached_folder(name: str) -> Path | None:
    """The Hub cache's folder of a model with everything that loading needs, else None. No network."""
    try:
        folder = Path(
            snapshot_download(name, local_files_only=True, allow_patterns=WANTED, ignore_patterns=UNWANTED)
        )
    except (LocalEntryNotFoundError, HFValidationError):
        return None
    try:
        check_files(name, folder)
    except ModelError:
        return None
    return folder


def cached_names(walk: Walk | None = None) -> list[str]:
    """Names of the models in the Hub's cache that seem complete; `walk` says whether they are all."""
    there = hub_snapshots(walk or Walk())
    return [name for name, folder in there if (folder / "config.json").exists() and weight_files(folder)]
