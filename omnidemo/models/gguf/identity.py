"""The public name of a GGUF file: what it is and what is in it, never where it lies."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from omnidemo.core import catalogue_file

if TYPE_CHECKING:
    from omnidemo.models.gguf.header import Header

PREFIX = "gguf/"
DIGITS = 8  # of the hash of a file's contents that its name ends with
LONGEST = 60  # characters of what a header calls its model


def known_name(header: Header) -> str:
    """`gguf/<model>-<type>-<hash>`, such as gguf/SmolLM2-135M-Instruct-Q4_1-f469ec9e: the catalogue's name
    for a known file, else one from the header. Moving or renaming a file keeps it; another file, even of the
    same model, has another."""
    end = f"-{header.type_name}-{header.fingerprint[:DIGITS]}"
    return next(
        (one["known"] for one in files() if one["known"].endswith(end)),
        f"{PREFIX}{model_name(header)}{end}",
    )


def model_name(header: Header) -> str:
    """The model's name in the header, in letters, digits, dots and dashes."""
    named = header.text("general.name") or "-".join(
        filter(None, map(header.text, ("general.basename", "general.size_label")))
    )
    return re.sub(r"[^A-Za-z0-9.]+", "-", named)[:LONGEST].strip("-.") or header.architecture or "model"


def named(name: str) -> dict[str, Any] | None:
    """The catalogue's entry of a file by its short name, file name, Hub name or public name; None for other
    names."""
    return next(
        (one for one in files() if name in (one["short"], file_of(one), one["name"], one["known"])), None
    )


def file_of(entry: dict[str, Any]) -> str:
    """The file name of a catalogue's entry."""
    return str(entry["name"]).partition(":")[2].rpartition("/")[2]


def defaults() -> list[dict[str, Any]]:
    """The catalogue's entries that may be the default target, the best first."""
    return sorted((one for one in files() if "default" in one), key=lambda one: int(one["default"]))


def files() -> list[dict[str, Any]]:
    """The catalogue's entries of single files."""
    return [one for one in catalogue_file.entries().values() if "known" in one]
