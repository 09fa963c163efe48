"""The header of a GGUF file: its key-values and the places of its tensors. Every value is checked against the
file's size."""

from __future__ import annotations

import hashlib
import math
import mmap
import re
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
PART = re.compile(r"(.*)-(\d{5})-of-(\d{5})\.gguf", re.DOTALL | re.IGNORECASE)  # of a split model


@dataclass(frozen=True)
class Header:
    """The contents of a GGUF file's header. `parts`: the model's files, one unless it was split;
    `fingerprint`: a hash of the header and of the beginning of every tensor, which identifies the file
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
        """The type of most weights, such as Q4_1, or the mixture that the file names, such as Q4_K_M."""
        shares: dict[str, int] = {}
        for name, tensor in self.tensors.items():
            if len(tensor.shape) > 1 and name not in ("token_embd.weight", "output.weight"):
                shares[tensor.kind.name] = shares.get(tensor.kind.name, 0) + math.prod(tensor.shape)
        named = _FILE_TYPES.get(self.number("general.file_type", -1), "")
        most = max(shares, key=lambda kind: shares[kind], default="") or next(
            (t.kind.name for t in self.tensors.values()), "no weights"
        )
        return named or most

    def text(self, key: str, otherwise: str = "") -> str:
        """A text of the key-values; other values count as absent."""
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
    """The header of a GGUF file with all its parts. ModelError, one sentence, for an invalid or damaged file,
    or a missing part."""
    metadata, tensors, count = _read_part(path, 0)
    digests, parts, size = [_fingerprint(path, tensors)], [path], path.stat().st_size
    others = _other_parts(path, count)
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


def part_names(name: str) -> list[str]:
    """The names of all files of a split model, from the name of one of them; any other name alone."""
    part = PART.fullmatch(name)
    count = int(part[3]) if part else 0
    if part is None or not 1 <= count <= MOST_PARTS:
        return [name]
    end = name[-len(".gguf") :]  # as this file has it, in small letters or not
    return [f"{part[1]}-{number:05d}-of-{part[3]}{end}" for number in range(1, count + 1)]


def _other_parts(path: Path, count: int) -> list[Path]:
    """The other files of a split model, of which the header names `count` in all."""
    if count <= 1:
        return []
    part, names = PART.fullmatch(path.name), part_names(path.name)
    if part is None or len(names) != count:
        raise ModelError(
            f"{path.name} is a part of a model in {count} files and is not named like one; give them their"
            f" names back, such as model-00001-of-{min(count, 99_999):05d}.gguf"
        )
    if int(part[2]) != 1:
        raise ModelError(f"{path.name} is part {int(part[2])} of {count}; choose the first, {names[0]}")
    return [path.with_name(name) for name in names[1:]]


def is_pointer(path: Path) -> bool:
    """Whether the file is a Git LFS pointer in place of a large file."""
    with suppress(OSError), path.open("rb") as opened:
        return opened.read(len(LFS)) == LFS
    return False


def _read_part(path: Path, number: int) -> tuple[dict[str, Any], list[TensorInfo], int]:
    """One file: (its key-values, its tensors, the number of the model's files by its header)."""
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
    """A hash of everything before the weights, and of each tensor's first bytes."""
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
