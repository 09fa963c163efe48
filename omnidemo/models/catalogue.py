"""The models that the app offers, and whether each is available on this machine now. Reads no weights and
uses no network."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from huggingface_hub import get_token, try_to_load_from_cache
from transformers import AutoConfig

from omnidemo.core import resources
from omnidemo.core.catalogue_file import entries, entry_of
from omnidemo.core.config import Settings
from omnidemo.models import model_files, names
from omnidemo.models.gguf import sources
from omnidemo.models.gguf.gguf_facts import GgufFile, about
from omnidemo.models.gguf.places import Walk
from omnidemo.models.load import DTYPES, ModelError, pick_device
from omnidemo.models.memory_need import OF_FILE, least_need, whole_need

Availability = Literal["bundled", "cached", "downloadable", "gated", "too big", "missing", "unusable"]
Role = Literal["target", "drafter", "both"]
Source = Literal["bundled", "fetched", "hub", "ollama", "lmstudio", "folder"]
HERE = ("bundled", "cached")  # what can be loaded without a download

LARGEST_DRAFTER = 2e9  # parameters of a GGUF file that is offered as a drafter


@dataclass(frozen=True, slots=True)
class ReadingLimits:
    """The conversation that a model was made for: most turns (a question and its answer), and most tokens of
    prompt. None: what its window holds. `system`: the system prompt of a conversation that has none."""

    turns: int | None = None
    tokens: int | None = None
    system: str = ""


@dataclass(frozen=True, slots=True)
class ModelCard:
    """One entry of the model menu. `memory_bytes`: its need on this machine's device, `conversation_bytes` of
    it for a conversation that fills the window, if its configuration is here; `note`: one sentence. `source`:
    who keeps or has the files; `type`: the format of the weights; `bytes`: their size on disk."""

    name: str
    title: str
    role: Role
    parameters: int | None
    memory_bytes: int | None
    availability: Availability
    note: str
    source: Source = "hub"
    type: str = "safetensors"
    bytes: int | None = None
    licence: str | None = None
    author: str | None = None
    conversation_bytes: int = 0


def reading(name: str) -> ReadingLimits:
    """The catalogue's entry for a model; models without one keep the whole conversation."""
    entry = entry_of(name)
    return ReadingLimits(entry.get("turns"), entry.get("tokens"), entry.get("system", ""))


def credits_of(name: str) -> dict[str, str]:
    """Title, author and licence of a target, as far as catalogue or file name them."""
    entry, file = entry_of(name), sources.seen(name)
    if "licence" not in entry and file is None:
        return {}
    found = {key: entry.get(key) or getattr(file, key, "") for key in ("title", "author", "licence")}
    return {f"target_{key}": value for key, value in found.items() if value}


def title_of(name: str) -> str:
    """A model's title in catalogue or file, else its name."""
    return str(entry_of(name).get("title") or getattr(sources.seen(name), "title", "") or name)


def list_models(settings: Settings, scan: bool = True) -> list[ModelCard]:
    """Models on this machine, bundled ones first, then models that can be had. `scan`: look for GGUF files
    where programs and the settings keep them; otherwise only those of the settings are listed."""
    settings = names.known_settings(settings)
    place, width = place_and_width(settings)
    free, walk = model_files.free_memory(place), Walk()
    pair = (settings.target, settings.drafter)
    files, cached = list[GgufFile](), list[str]()
    if scan:
        files, cached = sources.installed(settings.folders), model_files.cached_names(walk)
        files += [about(walk.cut)] if walk.cut else []
    seen = {file.name for file in files}
    files += [one for one in map(sources.seen, pair) if one is not None and one.name not in seen]
    here = {file.name for file in files}
    cards = [
        _bundled(entry, width) if name.startswith("bundled/") else _listed(entry, width, free, settings)
        for name, entry in entries().items()
        if entry.get("known") not in here
    ]
    packed = settings.packed and place == "cpu"
    cards += [_file(one, width, place, packed) for one in files]
    known = {card.name for card in cards}
    others = dict.fromkeys([*pair, *cached])
    cards += [_other(name, width, free, settings.trust_hub) for name in others if name not in known]
    return sorted(cards, key=_order)


def _order(card: ModelCard) -> tuple[int, ...]:
    """Bundled models, GGUF files, other models on this machine; then models elsewhere, and unusable ones."""
    if card.source == "bundled":
        return (0,)
    here = card.availability == "cached"
    return (1, card.type == "safetensors") if here else (3,) if card.availability == "unusable" else (2,)


def place_and_width(settings: Settings) -> tuple[str, int]:
    """(the device, bytes of a weight)."""
    try:
        place = pick_device(settings.device)
    except ModelError:  # a wrong device is reported where a model is loaded, with its own sentence
        place = "cpu"
    return place, DTYPES[settings.dtype].itemsize if settings.dtype in DTYPES else 4 if place == "cpu" else 2


def _folder(name: str, folder: Path, width: float) -> dict[str, Any]:
    """What a model's folder says for its card. ModelError where a file is missing or damaged."""
    model_files.check_files(name, folder)
    parameters, config = model_files.count_parameters(folder), None
    with suppress(Exception):  # anything can be in it; said where it is loaded
        config = AutoConfig.from_pretrained(folder, trust_remote_code=False)
    memory, talk = _memory(parameters * width, config, width)
    size = model_files.size_of(folder)
    return {"parameters": parameters, "memory_bytes": memory, "bytes": size, "conversation_bytes": talk}


def _bundled(entry: dict[str, Any], width: float) -> ModelCard:
    name, role = entry["name"], entry["role"]
    folder = model_files.BUNDLED / name.removeprefix("bundled/")
    title = f"{entry['title']} · {entry['tokenizer']}"
    try:
        found = _folder(name, folder, width)
        config = json.loads((folder / "config.json").read_text())
    except ValueError:  # a ModelError, or JSON that is none
        note = f"Its weights are absent or damaged; {model_files.RESTORE}."
        return ModelCard(name, title, role, None, None, "missing", note, "bundled")
    size, words = found["parameters"] / 1e6, config["vocab_size"]
    note = f"{size:.1f} million parameters, {words:,} tokens; trained on text that this project generates."
    title = f"{title}, {config['num_hidden_layers']} layers"
    about: dict[str, Any] = {"availability": "bundled", "note": note, "source": "bundled"}
    return ModelCard(name, title, role, licence="Apache-2.0", **about, **found)


def _memory(weights: float, config: Any, width: float) -> tuple[int, int]:
    """(bytes that a model needs, those of a conversation that fills its window among them). `width`: bytes of
    a number in its cache. `config` None: unknown."""
    if config is None:
        return int(weights * model_files.MARGIN), 0
    need = whole_need(weights, config, int(width))
    return int(need.total), int(need.conversation)


def _file(one: GgufFile, width: float, place: str, packed: bool) -> ModelCard:
    """The card of a GGUF file on this machine. `packed`: whether a target's weights stay packed."""
    role: Role = entry_of(one.name).get("role") or ("both" if one.parameters <= LARGEST_DRAFTER else "target")
    weights = (one.packed_bytes if packed else None) or one.parameters * width
    kept = 2 if packed and one.packed_bytes else int(width)  # bytes of a number of keys and values
    all_of_it = resources.all_memory()
    memory, talk = _memory(weights, one.config, kept)
    need = memory if one.config is None else least_need(weights, one.config, kept).total
    availability: Availability = "unusable" if one.reason else "cached"
    note = _sentence(one.reason)
    if not one.reason and place == "cpu" and need > all_of_it:
        availability = "too big"
        note = (
            f"Needs about {need / 1e9:.1f} GB, and this machine has {all_of_it / 1e9:.1f} GB; take a smaller"
        )
        note += " model."
    elif not one.reason:
        facts = [f"{_size(one.parameters)} parameters", one.architecture, f"{one.tokens:,} tokens"]
        facts += [] if one.chat else ["no chat template"]
        note = f"{_sentence(', '.join(facts))} {_sentence(one.note)}".strip()
    return ModelCard(
        one.name or one.spec, one.title, role, one.parameters or None, memory or None, availability, note,
        one.source, one.type_name or "GGUF", one.bytes or None, one.licence, one.author, talk,
    )  # fmt: skip


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}." if text else ""


def _listed(entry: dict[str, Any], width: float, free: int, settings: Settings) -> ModelCard:
    name, parameters = entry["name"], int(entry["parameters"])
    packed = "known" in entry and settings.packed and place_and_width(settings)[0] == "cpu"
    weights = entry["bytes"] * OF_FILE if packed else parameters * width
    availability, why = _availability(name, weights, free, bool(entry.get("gated")), settings.trust_hub)
    facts = [f"{_size(parameters)} parameters", f"licence {entry['licence']}", entry.get("note")]
    kind = entry["known"].split("-")[-2] if "known" in entry else "safetensors"
    return ModelCard(
        name, entry["title"], entry["role"], parameters, _memory(weights, None, width)[0], availability,
        f"{', '.join(filter(None, facts))}; {why}.", "hub", kind, entry.get("bytes"), entry["licence"],
        entry.get("author"),
    )  # fmt: skip


def _other(name: str, width: float, free: int, hub: bool) -> ModelCard:
    """The card of a local folder, or of a Hub model outside the catalogue."""
    is_file = sources.is_gguf(name)
    try:
        with suppress(sources.NotHere):
            if is_file:
                sources.find(name)
            elif (folder := model_files.local_folder(name)) is not None:
                found = _folder(name, folder, width)
                note = "A folder on this machine."
                return ModelCard(
                    name, folder.name, "both", availability="cached", note=note, source="folder", **found
                )
    except ModelError as error:
        return ModelCard(name, name, "both", None, None, "missing", _sentence(str(error)), "folder")
    availability, why = _availability(name, 0, free, False, hub)
    kind = "GGUF" if is_file else "safetensors"
    return ModelCard(name, name, "both", None, None, availability, _sentence(why), "hub", kind)


def _availability(name: str, memory: float, free: int, gated: bool, hub: bool) -> tuple[Availability, str]:
    there = None if ":" in name else try_to_load_from_cache(name, "config.json")  # a file would be found
    if isinstance(there, str) and model_files.cached_folder(name):
        return "cached", "already on this machine"  # and it may be loaded already, in memory that is not free
    need = memory * model_files.MARGIN
    if need > free:
        return "too big", f"needs about {need / 1e9:.1f} GB, {free / 1e9:.1f} GB are free"
    if not hub:
        return "missing", "not on this machine, and downloads are switched off"
    if gated and get_token() is None:
        page = f"https://huggingface.co/{name.partition(':')[0]}"
        return "gated", f"accept its licence at {page} and set HF_TOKEN"
    return "downloadable", "will be downloaded at first use"


def _size(parameters: int) -> str:
    return f"{parameters / 1e9:.1f} billion" if parameters >= 0.95e9 else f"{parameters / 1e6:.0f} million"
