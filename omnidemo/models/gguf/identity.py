"""By what name a GGUF file is known: what it is and what is in it, never where it lies."""

from __future__ import annotations

import json
import re
from functools import cache
from typing import TYPE_CHECKING, Any

from omnidemo.core.asset_files import ASSETS

if TYPE_CHECKING:
    from omnidemo.models.gguf.header import Header

PREFIX = "gguf/"
DIGITS = 8  # of the hash of a file's contents that its name ends with
LONGEST = 60  # characters of what a header calls its model
CATALOG = ASSETS / "catalog.json"


def known_name(header: Header) -> str:
    """`gguf/<model>-<type>-<hash>`, such as gguf/SmolLM2-135M-Instruct-Q4_1-f469ec9e: the catalogue's where
    it knows the file, else by what the header says. A file that was moved or renamed keeps it; another one,
    even of the same model, has another."""
    end = f"-{header.type_name}-{header.fingerprint[:DIGITS]}"
    return next(
        (one["known"] for one in _described() if one["known"].endswith(end)),
        f"{PREFIX}{model_name(header)}{end}",
    )


def model_name(header: Header) -> str:
    """What a header calls its model, in letters, digits, dots and dashes."""
    named = header.text("general.name") or "-".join(
        filter(None, map(header.text, ("general.basename", "general.size_label")))
    )
    return re.sub(r"[^A-Za-z0-9.]+", "-", named)[:LONGEST].strip("-.") or header.architecture or "model"


def entry(known: str) -> dict[str, Any]:
    """What the catalogue says of a file that is known by this name; empty where it does not know it."""
    return named(known) or {}


def named(name: str) -> dict[str, Any] | None:
    """The catalogue's entry of the file that a name means: its short one, the file's own, that of the Hub, or
    the one that it is known by; None for other names."""
    return next(
        (one for one in _described() if name in (one["short"], file_of(one), one["name"], one["known"])), None
    )


def file_of(entry: dict[str, Any]) -> str:
    """What the file of a catalogue's entry is called."""
    return str(entry["name"]).partition(":")[2].rpartition("/")[2]


def defaults() -> list[dict[str, Any]]:
    """The catalogue's entries of the files of which one is the target where nothing else was chosen, the best
    first."""
    return sorted((one for one in _described() if "default" in one), key=lambda one: int(one["default"]))


def files() -> list[dict[str, Any]]:
    """The catalogue's entries of single files."""
    return list(_described())


@cache
def _described() -> list[dict[str, Any]]:
    return [one for one in json.loads(CATALOG.read_text(encoding="utf-8")) if "known" in one]
