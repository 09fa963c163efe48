"""The header of a GGUF file: its key-values and where its tensors lie. Nothing in it is believed before it
fits the file's size."""

from __future__ import annotations

import hashlib
import math
import mmap
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from omnidemo.backends.runner import ModelError
from omnidemo.models.gguf.header_walk import HeaderWalk, TensorInfo

LFS = b"version https://git-lfs.github.com/spec/"
POINTER = "is a pointer of Git LFS and not the file itself; run `git lfs pull` there, or download it again"
MAGIC = b"GGUF"
MOST_PARTS = 1024
SAMPLE = 4096  # bytes of each tensor that tell two files apart
_SPLIT = re.compile(r"(.*)-(\d{5})-of-(\d{5})\.gguf", re.DOTALL)


@dataclass(frozen=True)
class Header:
    """What a GGUF file says of itself. `parts` are the files that it lies in, one unless it was split;
    `fingerprint` is a hash of the header and of the beginning of every tensor, so that a file is known
    wherever it lies."""

    parts: tuple[Path, ...]
    metadata: dict[str, Any] = field(repr=False)
    tensors: dict[str, TensorInfo] = field(repr=False)
    bytes: int
    fingerprint: str

    @property
    def architecture(self) -> str:
        return self.text("general.architecture")

    @property
    def parameters(self) -> int:
        """Numbers in all weights."""
        return sum(math.prod(tensor.shape) for tensor in self.tensors.values())

    @property
    def type_name(self) -> str:
        """The type that most of the weights have, such as Q4_1, with M or S where the file says that it is
        such a mixture."""
        shares: dict[str, int] = {}
        for name, tensor in self.tensors.items():
            if len(tensor.shape) > 1 and name not in ("token_embd.weight", "output.weight"):
                shares[tensor.kind.name] = shares.get(tensor.kind.name, 0) + math.prod(tensor.shape)
        named = _FILE_TYPES.get(self.number("general.file_type", -1), "")
        most = max(shares, key=lambda kind: shares[kind], default="") or next(
            (t.kind.name for t in self.tensors.values()), "no weights"
        )
        return named or most

    @property
    def context(self) -> int | None:
        """Positions that the model was made for."""
        return self.number(f"{self.architecture}.context_length", 0) or None

    def text(self, key: str, otherwise: str = "") -> str:
        """A text of the key-values; what is no text counts as absent."""
        value = self.metadata.get(key, otherwise)
        return value if isinstance(value, str) else otherwise

    def number(self, key: str, otherwise: Any) -> Any:
        """A number of the key-values, likewise."""
        value = self.metadata.get(key, otherwise)
        return value if isinstance(value, (int, float)) and not isinstance(value, bool) else otherwise


# llama.cpp's numbers for mixtures of types; a type by itself has its own name.
_FILE_TYPES = {
    11: "Q3_K_S", 12: "Q3_K_M", 13: "Q3_K_L", 14: "Q4_K_S", 15: "Q4_K_M", 16: "Q5_K_S", 17: "Q5_K_M",
    21: "Q2_K_S",
}  # fmt: skip


def read_header(path: Path) -> Header:
    """The header of a GGUF file, of all its parts where it was split. ModelError, one sentence, for a file
    that is none, is damaged, or lacks a part."""
    metadata, tensors, count = _read_part(path, 0)
    digests, parts, size = [_fingerprint(path, tensors)], [path], path.stat().st_size
    others = list(_other_parts(path, count))
    for number, other in enumerate(others, 1):
        if not other.is_file():
            raise ModelError(
                f"{path.name} is one of {len(others) + 1} files, and {other.name} is not beside it; download"
                " it too"
            )
        _, more, _ = _read_part(other, number)
        names = {tensor.name for tensor in tensors}
        if twice := next((tensor.name for tensor in more if tensor.name in names), None):
            raise ModelError(f"{other.name} repeats {twice!r} of {path.name}; download the model again")
        digests.append(_fingerprint(other, more))
        tensors += more
        parts.append(other)
        size += other.stat().st_size
    wanted = metadata.get("split.tensors.count")
    if others and isinstance(wanted, int) and wanted != len(tensors):
        raise ModelError(
            f"{path.name} names {wanted} tensors and its parts hold {len(tensors)}; download the model again"
        )
    if not tensors:
        raise ModelError(f"{path.name} holds no weights; choose the file of a model")
    named = {tensor.name: tensor for tensor in tensors}
    return Header(tuple(parts), metadata, named, size, hashlib.sha256("".join(digests).encode()).hexdigest())


def _other_parts(path: Path, count: int) -> Iterator[Path]:
    """The further files of a split model; `count` is how many the header names."""
    if count <= 1:
        return
    part = _SPLIT.fullmatch(path.name)
    if part is None or int(part[3]) != count or count > MOST_PARTS:
        raise ModelError(
            f"{path.name} is a part of a model in {count} files and is not named like one; give them their"
            f" names back, such as model-00001-of-{min(count, 99_999):05d}.gguf"
        )
    if int(part[2]) != 1:
        raise ModelError(
            f"{path.name} is part {int(part[2])} of {count}; choose the first,"
            f" {part[1]}-00001-of-{part[3]}.gguf"
        )
    for number in range(2, count + 1):
        yield path.with_name(f"{part[1]}-{number:05d}-of-{part[3]}.gguf")


def is_pointer(path: Path) -> bool:
    """Whether it is what Git leaves in place of a large file that was not fetched."""
    with suppress(OSError), path.open("rb") as opened:
        return opened.read(len(LFS)) == LFS
    return False


def _read_part(path: Path, number: int) -> tuple[dict[str, Any], list[TensorInfo], int]:
    """One file: (its key-values, its tensors, in how many files it says the model lies)."""
    try:
        with path.open("rb") as opened:
            if opened.read(4) != MAGIC:
                if is_pointer(path):
                    raise ModelError(f"{path.name} {POINTER}")
                raise ModelError(f"{path.name} is no GGUF file; choose a file that was made as one")
            with mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as memory:
                return HeaderWalk(path.name, memory).part(number)
    except (OSError, ValueError) as error:
        if isinstance(error, ModelError):
            raise
        raise ModelError(
            f"{path.name} cannot be read ({error}); look at its permissions, or download it again"
        ) from error


def _fingerprint(path: Path, tensors: list[TensorInfo]) -> str:
    """A hash of what lies before the weights, and of each tensor's first bytes."""
    digest = hashlib.sha256()
    with path.open("rb") as opened:
        left = min((tensor.offset for tensor in tensors), default=path.stat().st_size)
        while left > 0 and (read := opened.read(min(left, 2**20))):
            digest.update(read)
            left -= len(read)
        for tensor in tensors:
            opened.seek(tensor.offset)
            digest.update(opened.read(min(SAMPLE, tensor.size)))
    return digest.hexdigest()
