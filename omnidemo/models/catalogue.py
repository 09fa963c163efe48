"""The models that the app offers, and whether each can be had on this machine now. Reads no weights and uses no network."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Literal

from huggingface_hub import get_token, try_to_load_from_cache

from omnidemo.config import Settings
from omnidemo.models import model_files
from omnidemo.models.catalogue_file import entries
from omnidemo.models.load import BYTES, DTYPES, ModelError, pick_device

Availability = Literal["bundled", "cached", "downloadable", "gated", "too big", "missing"]
Role = Literal["target", "drafter", "both"]


@dataclass(frozen=True, slots=True)
class Reading:
    """How much conversation a model was made for: at most so many turns (a question and its answer), and so many tokens of prompt.
    None: as much as its window holds."""

    turns: int | None = None
    tokens: int | None = None


@dataclass(frozen=True, slots=True)
class ModelCard:
    """One entry of the model menu. `memory_bytes` is what the weights take on this machine's device; `note` is one sentence."""

    name: str
    title: str
    role: Role
    parameters: int | None
    memory_bytes: int | None
    availability: Availability
    note: str


def reading(name: str) -> Reading:
    """The catalogue's entry for a model; models without one keep the whole conversation."""
    entry = entries().get(name, {})
    return Reading(entry.get("turns"), entry.get("tokens"))


def list_models(settings: Settings) -> list[ModelCard]:
    """The catalogue, bundled models first, then what the settings name beyond it."""
    place, *widths = place_and_widths(settings)
    free = model_files.free_memory(place)
    cards = []
    for name, entry in entries().items():
        width = widths[entry["role"] == "drafter"]
        cards.append(_bundled(entry, width) if name.startswith("bundled/") else _listed(entry, width, free, settings.trust_hub))
    known = {card.name for card in cards}
    others = dict(zip((settings.target, settings.drafter), widths, strict=True))
    return cards + [_other(name, width, free, settings.trust_hub) for name, width in others.items() if name not in known]


def place_and_widths(settings: Settings) -> tuple[str, float, float]:
    """Where models would run, and the bytes of a weight there: a target's, a drafter's."""
    try:
        place, _ = pick_device(settings.device)
    except ModelError:  # a wrong device is reported where a model is loaded, with its own sentence
        place = "cpu"
    width = DTYPES[settings.dtype].itemsize if settings.dtype in DTYPES else 4 if place == "cpu" else 2
    return place, BYTES.get(settings.quantization, width), width


def _bundled(entry: dict[str, Any], width: float) -> ModelCard:
    name, role = entry["name"], entry["role"]
    folder = model_files.BUNDLED / name.removeprefix("bundled/")
    title = f"{entry['title']} · {entry['tokenizer']}"
    try:
        model_files.check_files(name, folder)
        config = json.loads((folder / "config.json").read_text())
        parameters = model_files.count_parameters(folder)
    except ValueError:  # a ModelError, or JSON that is none
        note = "Its weights are absent or damaged; make them with `python -m omnidemo train-bundled`."
        return ModelCard(name, title, role, None, None, "missing", note)
    title = f"{title}, {config['num_hidden_layers']} layers"
    note = f"{parameters / 1e6:.1f} million parameters, {config['vocab_size']:,} tokens; trained on text that this project generates."
    return ModelCard(name, title, role, parameters, int(parameters * width), "bundled", note)


def _listed(entry: dict[str, Any], width: float, free: int, hub: bool) -> ModelCard:
    name, parameters = entry["name"], int(entry["parameters"])
    availability, why = _availability(name, parameters * width, free, bool(entry.get("gated")), hub)
    facts = ", ".join([f"{_size(parameters)} parameters", f"licence {entry['licence']}", *filter(None, [entry.get("note")])])
    return ModelCard(name, entry["title"], entry["role"], parameters, int(parameters * width), availability, f"{facts}; {why}.")


def _other(name: str, width: float, free: int, hub: bool) -> ModelCard:
    """A card for a local folder, or for a Hub id that the catalogue does not know."""
    try:
        folder = model_files.local_folder(name)
        if folder is not None:
            model_files.check_files(name, folder)
            parameters = model_files.count_parameters(folder)
    except ModelError as error:
        return ModelCard(name, name, "both", None, None, "missing", f"{str(error)[:1].upper()}{str(error)[1:]}.")
    if folder is None:
        availability, why = _availability(name, 0, free, False, hub)
        return ModelCard(name, name, "both", None, None, availability, f"{why[:1].upper()}{why[1:]}.")
    return ModelCard(name, folder.name, "both", parameters, int(parameters * width), "cached", "A folder on this machine.")


def _availability(name: str, memory: float, free: int, gated: bool, hub: bool) -> tuple[Availability, str]:
    if isinstance(try_to_load_from_cache(name, "config.json"), str) and model_files.cached_folder(name):
        return "cached", "already on this machine"  # and it may be loaded already, in memory that is not free
    need = memory * model_files.MARGIN
    if need > free:
        return "too big", f"needs about {need / 1e9:.1f} GB, {free / 1e9:.1f} GB are free"
    if not hub:
        return "missing", "not on this machine, and downloads are switched off"
    if gated and get_token() is None:
        return "gated", f"accept its licence at https://huggingface.co/{name} and set HF_TOKEN"
    return "downloadable", "will be downloaded at first use"


def _size(parameters: int) -> str:
    return f"{parameters / 1e9:.1f} billion" if parameters >= 0.95e9 else f"{parameters / 1e6:.0f} million"
