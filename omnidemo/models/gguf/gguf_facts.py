"""Facts of a GGUF file before its weights are read: public name, sizes, and why it cannot be used."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from omnidemo.backends.runner import ModelError
from omnidemo.models.gguf import identity
from omnidemo.models.gguf.architecture import plan_of
from omnidemo.models.gguf.header import Header, clean, part_names, read_header
from omnidemo.models.gguf.packing import packed_bytes
from omnidemo.models.gguf.places import FilePlace, Source, is_file
from omnidemo.models.gguf.tokenizer import check_tokenizer
from omnidemo.models.gguf.weights import build_config

REMEMBERED = 4096  # headers that are kept
_headers: dict[tuple[object, ...], GgufFile] = {}  # by a path and what its files are


@dataclass(frozen=True, slots=True)
class GgufFile:
    """A GGUF file on this machine. `name`: its public name; `spec`: the name by which another process finds
    it; `packed_bytes`: of its packed weights, None where they are not packed; `reason`: why it cannot be
    used, one sentence, or empty; `note`: as in `FilePlace`."""

    path: Path
    spec: str
    source: Source
    name: str
    title: str = ""
    type_name: str = ""
    bytes: int = 0
    parameters: int = 0
    packed_bytes: int | None = None
    architecture: str = ""
    tokens: int = 0
    chat: bool = False
    licence: str | None = None
    author: str | None = None
    reason: str = ""
    note: str = ""
    # `transformers`' configuration, None for what cannot be used
    config: Any = field(default=None, repr=False, compare=False)


def about(place: FilePlace) -> GgufFile:
    """The facts in a file's header. An unreadable or unusable file has a `reason`."""
    shown = place.path.name if place.source in ("folder", "fetched") else place.spec
    unread = GgufFile(place.path, place.spec, place.source, "", shown, note=place.note)
    if place.wrong or not is_file(place.path):
        return replace(
            unread, reason=place.wrong or f"{shown} is no file that can be read as one; choose another one"
        )
    key = (place.path, place.spec, place.note, *_state(place.path))
    if key not in _headers:
        if len(_headers) >= REMEMBERED:
            _headers.clear()
        try:
            _headers[key] = _described(read_header(place.path), unread)
        except ModelError as error:
            _headers[key] = replace(
                unread, bytes=_size(place.path), reason=str(error).replace(place.path.name, shown)
            )
    return _headers[key]


def _described(header: Header, unread: GgufFile) -> GgufFile:
    reason, config, packed = "", None, None
    try:
        plan = plan_of(header)
        config = build_config(plan)
        packed = packed_bytes(header, plan, config)
        if not (header.parts[0].parent / "tokenizer.json").is_file():
            check_tokenizer(header.metadata)
    except ModelError as error:
        reason = str(error).replace(unread.path.name, unread.title).replace("this GGUF file", unread.title)
    known = identity.known_name(header)
    entry = identity.named(known)
    embedding, tokens = header.tensors.get("token_embd.weight"), header.metadata.get("tokenizer.ggml.tokens")
    rows = embedding.shape[0] if embedding is not None else 0
    found = {key: clean(header.text(f"general.{key}")) for key in ("name", "license", "author")}
    author = found["author"] or clean(header.text("general.organization"))
    return replace(
        unread,
        name=known,
        title=entry.title if entry else found["name"] or identity.model_name(header),
        type_name=header.type_name,
        bytes=header.bytes,
        parameters=header.parameters,
        packed_bytes=packed,
        architecture=header.architecture,
        tokens=len(tokens) if isinstance(tokens, list) else rows,
        chat=bool(header.text("tokenizer.chat_template")),
        licence=entry.licence if entry else found["license"] or None,
        author=entry.author if entry else author or None,
        reason=reason,
        config=config,
    )


def _state(path: Path) -> tuple[object, ...]:
    """Size and time of all existing files of a model."""
    found: list[object] = []
    for name in part_names(path.name):
        with suppress(OSError):
            told = path.with_name(name).stat()
            found += [name, told.st_size, told.st_mtime_ns]
    return tuple(found)


def _size(path: Path) -> int:
    with suppress(OSError):
        return path.stat().st_size
    return 0
