"""Faults in the front matter of README.md, from which a Space reads its settings."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from huggingface_hub import SpaceHardware, metadata_load
from packaging.requirements import Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

ZERO_GPU = "zero-a10g"  # ZeroGPU's name in the front matter, whichever GPU is behind it
LEAST_PYTHON = "3.10"  # of a Space without python_version


def read_front_matter(root: Path) -> dict[str, Any]:
    """The front matter. ValueError, one sentence, where it is missing or cannot be read."""
    path = root / "README.md"
    if not path.is_file():
        raise ValueError(
            f"{root} has no README.md, where a Space reads its settings; run this in the project's folder or"
            " name it"
        )
    try:
        front = metadata_load(path)
    except Exception as error:  # of the YAML parser
        raise ValueError(
            f"the front matter of README.md is no YAML ({' '.join(str(error).split())[:120]}); mend it"
            " between its two lines of ---"
        ) from error
    if not front:
        raise ValueError(
            "README.md has no front matter; begin it with a block between two lines of --- that says at least"
            " `sdk: gradio`"
        )
    return dict(front)


def front_matter_troubles(
    front: Mapping[str, Any], root: Path, requirements: Mapping[str, Requirement], pair: Sequence[str]
) -> Iterator[str]:
    """The faults of a front matter, one sentence each. requirements: by name. pair: the Hub's models that
    ZeroGPU would load."""
    if front.get("sdk") != "gradio":
        yield f"sdk is {front.get('sdk')!r}, and the app is a Gradio page; write `sdk: gradio`"
    yield from _gradio(front.get("sdk_version"), requirements.get("gradio"))
    entry = front.get("app_file")
    if not isinstance(entry, str) or not (root / entry).is_file():
        yield f"app_file is {entry!r}, and there is no such file; write `app_file: app.py`"
    yield from _python(front.get("python_version"), root)
    tags = front.get("tags")
    if not isinstance(tags, list) or not tags or not all(isinstance(tag, str) for tag in tags):
        yield (
            "tags are missing, by which a Space is found; write a list such as `tags: [speculative-decoding]`"
        )
    hardware, flavors = front.get("suggested_hardware"), [str(flavor.value) for flavor in SpaceHardware]
    if hardware not in flavors:
        yield (
            f"suggested_hardware is {hardware!r}, which the Hub does not have; write `suggested_hardware:"
            f" {ZERO_GPU}` or another flavor"
        )
    if hardware == ZERO_GPU:
        yield from _models(front, pair)


def _gradio(version: Any, needed: Requirement | None) -> Iterator[str]:
    if needed is None:
        yield (
            "requirements.txt does not name gradio, so no sdk_version can be checked; add the range that was"
            " tested"
        )
        return
    try:
        fits = version is not None and needed.specifier.contains(Version(str(version)))
    except InvalidVersion:
        fits = False
    if not fits:
        yield (
            f"sdk_version is {version!r}, and requirements.txt asks for gradio{needed.specifier}; write a"
            " version of that range"
        )


def _python(version: Any, root: Path) -> Iterator[str]:
    project = root / "pyproject.toml"
    try:
        about = tomllib.loads(project.read_text(encoding="utf-8")) if project.is_file() else {}
        needed = SpecifierSet(about.get("project", {}).get("requires-python", f">={LEAST_PYTHON}"))
        if version is not None and not isinstance(version, str):
            yield f"python_version is the number {version}, which drops a zero at its end; write it in quotes"
        elif not needed.contains(Version(str(version or LEAST_PYTHON))):
            said = (
                f"python_version is {version!r}"
                if version
                else f"python_version is missing, and a Space takes {LEAST_PYTHON} then"
            )
            yield f"{said}; pyproject.toml asks for Python {needed}, so write a version of that range"
    except tomllib.TOMLDecodeError as error:
        yield f"pyproject.toml cannot be read ({error}); mend it"
    except (InvalidVersion, InvalidSpecifier):
        yield (
            f'python_version is {version!r}, which is no version; write one such as `python_version: "3.12"`'
        )


def _models(front: Mapping[str, Any], pair: Sequence[str]) -> Iterator[str]:
    for field, what in (
        ("models", "the Space's page links to them"),
        ("preload_from_hub", "they are downloaded when the Space is built"),
    ):
        named = front.get(field)
        listed = [str(name).split()[0] for name in named] if isinstance(named, list) and all(named) else []
        for name in pair:
            if name not in listed:
                yield f"{field} lacks {name}, which ZeroGPU loads; list it, so that {what}"
