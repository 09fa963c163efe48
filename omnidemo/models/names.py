"""A model's two names: its public name, which everything shows and stores, and the name by which a process
finds its files."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from glob import escape
from pathlib import Path
from typing import Any

from omnidemo.core.catalogue_file import entry_of
from omnidemo.core.config import DEFAULT, EMBEDDED_TARGET, REAL_DRAFTER, Settings
from omnidemo.models import model_files
from omnidemo.models.fetching.fetch import FetchState, fetch
from omnidemo.models.fetching.hub_downloads import Progress, download
from omnidemo.models.gguf import identity, sources
from omnidemo.models.model_files import ModelError

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Resolved:
    """`name`: the public name. `where`: the name for `load_model`. `file`: its path, if no program keeps it
    there."""

    name: str
    where: str
    file: str = ""


def resolve(name: str, settings: Settings) -> Resolved:
    """The model that a person's name means. ModelError, one sentence, for a GGUF file that is missing or
    unusable. A file that has to be downloaded keeps its name until then."""
    if name == DEFAULT:
        return default_target(settings)
    if not sources.is_gguf(name):
        return Resolved(name, name)
    try:
        found = sources.find(name, settings.folders)
    except sources.NotHere:
        entry = identity.named(name)
        name = entry.hub_name if entry else name
        return Resolved(name, name)
    return Resolved(found.name, found.spec, found.spec if found.source == "folder" else "")


def default_target(settings: Settings, without: Collection[str] = ()) -> Resolved:
    """The best default of the catalogue that is on this machine and fits its memory, else the bundled target.
    `without`: public names of files that do not count."""
    for entry in identity.defaults():
        if entry.known in without or lacking(entry):
            continue
        if (found := sources.catalogued(entry, settings.folders)) is not None:
            return Resolved(found.name, found.spec)
    return Resolved(EMBEDDED_TARGET, EMBEDDED_TARGET)


def lacking(entry: identity.CatalogueFile) -> str:
    """Why a file of the catalogue does not fit the free memory, in a sentence; "" if it does. Its `needs`
    are weights, a conversation of 2,048 tokens, and the process that trains."""
    needs, free = entry.needs, model_files.free_memory("cpu")
    if needs <= free:
        return ""
    return (
        f"{entry.title} needs {needs / 1e9:.1f} GB of memory and {free / 1e9:.1f} GB are free; end other"
        " programs, or stay with a smaller model"
    )


def drafter_of(target: str, settings: Settings) -> str:
    """The drafter of the settings; with `auto` the catalogue's for this target."""
    if settings.drafter != DEFAULT:
        return settings.drafter
    with suppress(ModelError):  # said where the target is loaded
        target = resolve(target, settings).name
    return catalogued_drafter(target)


def catalogued_drafter(target: str) -> str:
    """The catalogue's drafter for a target, by the target's public name."""
    drafter: str = entry_of(target).get("drafter", REAL_DRAFTER)
    return drafter


def has_read(drafter: str, target: str) -> bool:
    """Whether a drafter was trained on this target's answers. Its catalogue entry's `read` has parts of
    target names, so that a target's file in any form counts."""
    known: list[str] = entry_of(drafter).get("read", [])
    return any(name.lower() in target.lower() for name in known)


def learning_of(drafter: str, target: str) -> dict[str, Any]:
    """The catalogue's learning settings of a drafter for a target that it has read. Such a drafter loses by
    steps that teach it another target (lab/notebook/loss-on-real-text.md), so it learns carefully. For other
    targets the defaults of `Settings` hold."""
    found: dict[str, Any] = entry_of(drafter).get("learning", {})
    return found if has_read(drafter, target) else {}


def at_its_pace(settings: Settings, drafter: str, target: str) -> Settings:
    """The settings, with this drafter's learning settings for this target where nobody has set others."""
    own = learning_of(drafter, target)
    return settings.model_copy(update={name: own[name] for name in own.keys() - settings.model_fields_set})


def with_files(settings: Settings, models: Iterable[Resolved]) -> Settings:
    """The settings with these models' files among the places where files are looked for, so that other
    processes find them by their public names."""
    known = settings.folders
    more = [one.file for one in models if one.file and one.file not in known]
    return (
        settings.model_copy(update={"model_folders": "".join(f"{one}\n" for one in [*known, *more])})
        if more
        else settings
    )


def known_settings(settings: Settings) -> Settings:
    """The settings with the names that their models are known by, as far as these are here."""
    settings = settings.model_copy(update={"drafter": drafter_of(settings.target, settings)})
    for role in ("target", "drafter"):
        given = getattr(settings, role)
        with suppress(ModelError):  # said where it is loaded
            found = resolve(given, settings)
            if found.name != given:
                settings = with_files(settings, [found]).model_copy(update={role: found.name})
    return settings


def known_targets(names: Sequence[str], settings: Settings) -> tuple[list[str], Settings]:
    """(public names of models, settings by which other processes find them)."""
    found = [resolve(name, settings) for name in names]
    return [one.name for one in found], with_files(settings, found)


def gguf_file(
    name: str, *, hub: bool = True, progress: Progress | None = None, free: int | None = None,
    models: str = "",
) -> Path | None:  # fmt: skip
    """The GGUF file that a name means, downloaded if need be; None for another kind of model. `free`: bytes
    of memory that must hold the file's weights; `models`: the folder for the
    catalogue's files, if not the usual one. ModelError, one sentence, where it cannot be had."""
    if not sources.is_gguf(name):
        return None
    try:
        found = sources.find(name)
        if found.note:
            log.warning("%s", found.note)
        return found.path
    except sources.NotHere:
        entry = identity.named(name)  # what is found only by reading whole files counts, too
        if not hub and entry is None:
            raise
    report = progress or (lambda stage, fraction: None)

    def fits(size: int) -> None:
        if free is not None:
            model_files.check_memory(name, size, free, "this machine")

    def told(state: FetchState) -> None:
        stage = "downloading" if state.stage in ("downloading", "waiting") else "files"
        report(stage, state.done / state.size)

    if entry is None:
        repository, file = sources.hub_file(name) or ("", "")
        download(name, repository, [*map(escape, sources.hub_parts(file))], (), report, fits)
        return sources.find(name).path
    fits(entry.bytes)
    return sources.find(str(fetch(entry, Settings(trust_hub=hub, models=models), told))).path
