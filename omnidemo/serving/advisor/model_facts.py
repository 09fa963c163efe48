"""Size, licence and tokenizer of a model before its weights are read. Nothing is downloaded."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from huggingface_hub import try_to_load_from_cache
from huggingface_hub.errors import HFValidationError
from huggingface_hub.repocard import metadata_load
from transformers import AutoConfig, AutoModelForCausalLM

from omnidemo.core.catalogue_file import entry_of
from omnidemo.models import model_files
from omnidemo.models.folder_model import MOST_LAYERS
from omnidemo.models.gguf import sources
from omnidemo.models.load import ModelError


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """`parameters`: all numbers of the weights. `read`: those that a pass over one token reads, without an
    input embedding that is a matrix of its own. `family`: of the tokenizer. `folder`: of the configuration
    and perhaps a tokenizer; None for a GGUF file (`gguf`) and for a model that only the catalogue knows. None
    elsewhere: unknown. `source`: where the sizes are from. `packed_bytes`: as in `GgufFile`."""

    name: str
    title: str
    parameters: int
    read: int
    family: str | None
    licence: str | None
    gated: bool
    chat: bool | None
    folder: Path | None
    source: str
    gguf: bool = False
    packed_bytes: int | None = None


def read_facts(name: str) -> ModelFacts:
    """The facts of a bundled model, a folder (with or without weights), a GGUF file, or a Hub model that is
    in the catalogue or has its configuration on this machine. ModelError, one sentence, for any other."""
    if sources.is_gguf(name) and (facts := _of_file(name)) is not None:
        return facts
    entry, folder = entry_of(name), None if sources.is_gguf(name) else _folder(name)
    if folder is None and "parameters" not in entry:
        raise ModelError(
            f"{name} is not in the catalogue and its configuration is not on this machine; fetch its small"
            " files with "
            f'`hf download {name} --include "*.json" "*.model"`, or name a model that `python -m omnidemo'
            " models` lists"
        )
    if folder is None:
        parameters = int(entry["parameters"])
        looked_up = int(entry.get("embedding", 0))
        source = "the catalogue"
    else:
        parameters, looked_up, source = _sizes(name, folder)
    return ModelFacts(
        name=name,
        gguf="known" in entry,
        title=entry.get("title")
        or (folder.name if folder is not None and folder == Path(name).expanduser() else name),
        parameters=parameters,
        read=parameters - looked_up,
        family=entry.get("family"),
        licence=entry.get("licence") or (_licence(folder) if folder else None),
        gated=bool(entry.get("gated")),
        chat=_has_template(folder) if folder else "no chat template" not in entry.get("note", ""),
        folder=folder,
        source=source,
    )


def _of_file(name: str) -> ModelFacts | None:
    """The facts in the header of a GGUF file; None for a file of the catalogue that is not on this
    machine."""
    try:
        found = sources.find(name)
    except sources.NotHere as error:
        if entry_of(name):
            return None
        repository, _, file = name.partition(":")
        fetch = f"`hf download {repository} {file}`"
        raise ModelError(
            f"{name} is not on this machine, so its header cannot be read; fetch it with {fetch}"
        ) from error
    size = f"{found.bytes / 1e6:,.0f} MB"
    return ModelFacts(
        name=found.name,
        title=f"{found.title} {found.type_name}",
        parameters=found.parameters,
        read=found.parameters - found.embedding,
        family=entry_of(found.name).get("family"), licence=found.licence, gated=False, chat=found.chat,
        folder=None,
        source=(
            f"the header of its file: {found.architecture}, {found.type_name}, {size}, {found.tokens:,}"
            " tokens"
        ),
        gguf=True, packed_bytes=found.packed_bytes,
    )  # fmt: skip


def _folder(name: str) -> Path | None:
    folder = model_files.local_folder(name)
    if folder is None:
        with suppress(HFValidationError):
            found = try_to_load_from_cache(name, "config.json")
            folder = Path(found).parent if isinstance(found, str) else None
    return folder


def _sizes(name: str, folder: Path) -> tuple[int, int, str]:
    """All numbers of the weights, those of an input embedding that is only looked up, and the source."""
    if not (folder / "config.json").exists():
        raise ModelError(
            f"{name} has no config.json; give the folder of a model saved with `save_pretrained`"
        )
    try:
        config = AutoConfig.from_pretrained(folder, trust_remote_code=False)
    except Exception as error:  # damaged JSON, unknown type, own code: whatever transformers cannot read
        raise ModelError(
            f"{name} has a configuration that transformers cannot read; choose another model"
        ) from error
    text = config.get_text_config(decoder=True)
    tied = getattr(config, "tie_word_embeddings", True)
    rows = getattr(text, "vocab_size", None)
    width = getattr(text, "hidden_size", None)
    looked_up = 0 if tied or not isinstance(rows, int) or not isinstance(width, int) else rows * width
    if model_files.weight_files(folder) and not model_files.missing_shards(folder):
        parameters, source = model_files.count_parameters(folder), "the headers of its weight files"
    else:
        parameters, source = _built_empty(name, config), "its configuration"
    if not 0 <= looked_up < parameters:
        raise ModelError(
            f"{name} has a configuration that does not fit its weights; download or save the model again"
        )
    return parameters, looked_up, source


def _built_empty(name: str, config: Any) -> int:
    """The parameters of a model without weight files: it is built on the device `meta`, without memory."""
    layers = getattr(config.get_text_config(decoder=True), "num_hidden_layers", 0)
    try:
        if not isinstance(layers, int) or layers > MOST_LAYERS:
            raise ValueError(f"{str(layers)[:20]} layers")
        # With another dtype building changes torch's default dtype in all threads meanwhile.
        with torch.device("meta"):
            model = AutoModelForCausalLM.from_config(config, dtype=torch.float32, trust_remote_code=False)
    except Exception as error:  # as in `_sizes`, and a model of another kind
        raise ModelError(
            f"{name} has a configuration that makes no causal language model; choose another model"
        ) from error
    return sum(weight.numel() for weight in model.parameters())


def _licence(folder: Path) -> str | None:
    with suppress(Exception):  # a model card may hold any text
        found = (metadata_load(folder / "README.md") or {}).get("license")
        return found if isinstance(found, str) else None
    return None


def _has_template(folder: Path) -> bool:
    if (folder / "chat_template.jinja").exists():
        return True
    with suppress(OSError, UnicodeDecodeError):
        return '"chat_template"' in (folder / "tokenizer_config.json").read_text(encoding="utf-8")
    return False
