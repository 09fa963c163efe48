"""The header of a GGUF file: its key-values and the places of its tensors. No number in it takes more memory
than the file has bytes."""

from __future__ import annotations

import hashlib
import math
import mmap
import re
import struct
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from omnidemo.core.config import ModelError
from omnidemo.core.config.refusals import explained
from omnidemo.models.gguf.block_types import BLOCK_TYPES, BlockType

LFS = b"version https://git-lfs.github.com/spec/"
POINTER = "is a pointer of Git LFS and not the file itself; run `git lfs pull` there, or download it again"
OTHER = "choose another file of this model"
AGAIN = f"download it again, or {OTHER}"
MOST_PARTS = 1024
MOST_TEXTS = 2**21  # of one list; the largest known vocabulary has 262,144 tokens
SAMPLE = 4096  # bytes of each tensor that tell two files apart
PART = re.compile(r"(.*)-(\d{5})-of-(\d{5})\.gguf", re.DOTALL | re.IGNORECASE)  # of a split model
_NUMBERS = {
    0: "<u1", 1: "<i1", 2: "<u2", 3: "<i2", 4: "<u4", 5: "<i4", 6: "<f4", 7: "?", 10: "<u8", 11: "<i8",
    12: "<f8",
}  # fmt: skip
_U4, _TEXT, _LIST, _U8 = 4, 8, 9, 10
# llama.cpp's numbers for mixtures of types; a type by itself has its own name.
_FILE_TYPES = {
    11: "Q3_K_S", 12: "Q3_K_M", 13: "Q3_K_L", 14: "Q4_K_S", 15: "Q4_K_M", 16: "Q5_K_S", 17: "Q5_K_M",
    21: "Q2_K_S",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """One tensor: its shape in torch's order ([out, in] for a matrix), and its bytes in one of the file's
    parts."""

    name: str
    shape: tuple[int, ...]
    kind: BlockType
    part: int
    offset: int
    size: int


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
    def name(self) -> str:
        return self.parts[0].name

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
        kind = self.metadata.get("general.file_type")
        named = _FILE_TYPES.get(kind, "") if isinstance(kind, int) else ""
        return named or max(
            shares, key=shares.__getitem__, default=next(iter(self.tensors.values())).kind.name
        )

    def text(self, key: str, otherwise: str = "") -> str:
        """A text of the key-values; other values count as absent."""
        value = self.metadata.get(key, otherwise)
        return value if isinstance(value, str) else otherwise


def read_header(path: Path) -> Header:
    """The header of a GGUF file with all its parts. ModelError, one sentence, for an invalid or damaged file,
    or a missing part."""
    with explained(f"{path.name} cannot be read as a GGUF file", AGAIN):
        metadata, tensors = _read_part(path, 0)
        count = metadata.get("split.count", 1)
        paths = [path.with_name(name) for name in part_names(path.name)] if count > 1 else [path]
        if len(paths) != max(count, 1):
            raise ModelError(
                f"{path.name} is a part of a model in {count} files and is not named like one; give them"
                " their names back, such as model-00001-of-00003.gguf"
            )
        if paths[0] != path:
            raise ModelError(f"{path.name} is a part of {count}; choose the first, {paths[0].name}")
        digests = [_fingerprint(path, tensors)]
        for number, other in enumerate(paths[1:], 1):
            if not other.is_file():
                raise ModelError(
                    f"{path.name} is one of {count} files, and {other.name} is not beside it; download it too"
                )
            _, more = _read_part(other, number)
            if twice := tensors.keys() & more.keys():
                raise ValueError(f"{other.name} repeats {min(twice)!r}")
            digests.append(_fingerprint(other, more))
            tensors |= more
        wanted = metadata.get("split.tensors.count", len(tensors))
        if count > 1 and wanted != len(tensors):
            raise ValueError(f"it names {wanted} tensors and its parts hold {len(tensors)}")
    if not tensors:
        raise ModelError(f"{path.name} holds no weights; choose the file of a model")
    size, digest = sum(one.stat().st_size for one in paths), hashlib.sha256("".join(digests).encode())
    return Header(tuple(paths), metadata, tensors, size, digest.hexdigest())


def part_names(name: str) -> list[str]:
    """The names of all files of a split model, from the name of one of them; any other name alone."""
    part = PART.fullmatch(name)
    count = int(part[3]) if part else 0
    if part is None or not 1 <= count <= MOST_PARTS:
        return [name]
    end = name[-len(".gguf") :]  # as this file has it, in small letters or not
    return [f"{part[1]}-{number:05d}-of-{part[3]}{end}" for number in range(1, count + 1)]


def clean(text: object, most: int = 80) -> str:
    """What a header says, on one line of printable characters."""
    return "".join(letter for letter in " ".join(str(text).split()) if letter.isprintable())[:most]


def is_pointer(path: Path) -> bool:
    """Whether the file is a Git LFS pointer in place of a large file."""
    with suppress(OSError), path.open("rb") as opened:
        return opened.read(len(LFS)) == LFS
    return False


def _read_part(path: Path, number: int) -> tuple[dict[str, Any], dict[str, TensorInfo]]:
    """The key-values and tensors of one file. It raises what it meets."""
    if is_pointer(path):
        raise ModelError(f"{path.name} {POINTER}")
    with path.open("rb") as opened:
        if opened.read(4) != b"GGUF":
            raise ModelError(f"{path.name} is no GGUF file; choose a file that was made as one")
        with mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as memory:
            return _Walk(memory).part(number)


class _Walk:
    """A walk through the bytes of one header."""

    def __init__(self, memory: mmap.mmap) -> None:
        self.memory, self.at = memory, 4

    def part(self, number: int) -> tuple[dict[str, Any], dict[str, TensorInfo]]:
        version = self.number(_U4)
        if version not in (2, 3):
            raise ValueError(
                "it is written for big-endian machines"
                if version % 2**24 == 0
                else f"it has the version {version}, and 2 and 3 are read"
            )
        tensor_count, key_count = self.number(), self.number()
        metadata: dict[str, Any] = {}
        for _ in range(key_count):
            key = self.text()
            if key in metadata:  # zeros, for one, that would be read for hours
                raise ValueError(f"it has {key[:60]!r} twice")
            metadata[key] = self.value(self.number(_U4))
        found: dict[str, tuple[tuple[int, ...], BlockType, int]] = {}
        for _ in range(tensor_count):
            name = self.text()
            if name in found:
                raise ValueError(f"it has {name[:60]!r} twice")
            found[name] = self.tensor(name)
        step = metadata.get("general.alignment", 32)
        if not isinstance(step, int) or step < 1:
            raise ValueError(f"it gives general.alignment as {str(step)[:40]}")
        begin = -(-self.at // step) * step
        tensors = {}
        for name, (shape, kind, offset) in found.items():
            size = math.prod(shape) // kind.numbers * kind.size
            if (end := begin + offset + size) > len(self.memory):
                raise ValueError(
                    f"it is cut short: {name[:60]!r} ends at byte {end:,} of {len(self.memory):,}"
                )
            tensors[name] = TensorInfo(name, shape, kind, number, begin + offset, size)
        return metadata, tensors

    def take(self, size: int) -> bytes:
        at, self.at = self.at, self.at + size
        if self.at > len(self.memory):
            raise ValueError("it ends within its header")
        return self.memory[at : self.at]

    def numbers(self, kind: int, count: int) -> NDArray[Any]:
        if kind not in _NUMBERS:
            raise ValueError(f"it has a value of the unknown kind {kind}")
        form = np.dtype(_NUMBERS[kind])
        return np.frombuffer(self.take(count * form.itemsize), form)

    def number(self, kind: int = _U8) -> Any:
        return self.numbers(kind, 1)[0].item()

    def text(self) -> str:
        return self.take(self.number()).decode(errors="replace")

    def value(self, kind: int) -> Any:
        """A number, a text, a list of texts or of lists, or an array of numbers."""
        if kind == _TEXT:
            return self.text()
        if kind != _LIST:
            return self.number(kind)
        kind, count = self.number(_U4), self.number()
        if kind == _LIST:
            return [self.value(_LIST) for _ in range(count)]
        return self.texts(count) if kind == _TEXT else self.numbers(kind, count)

    def texts(self, count: int) -> list[str]:
        """`count` texts. A tokenizer has hundreds of thousands, so this loop is short."""
        if count > MOST_TEXTS:
            raise ValueError(f"it names {count:,} texts")
        at, memory, texts = self.at, self.memory, []
        end = len(memory)
        unpack = struct.Struct("<Q").unpack_from
        for _ in range(count):
            if (begin := at + 8) > end:
                raise ValueError("it ends within its header")
            at = begin + unpack(memory, at)[0]
            texts.append(memory[begin:at])
        self.at = at
        return [text.decode(errors="replace") for text in texts]

    def tensor(self, name: str) -> tuple[tuple[int, ...], BlockType, int]:
        """(shape, type, offset from the beginning of the weights)."""
        shape = tuple(self.numbers(_U8, self.number(_U4)).tolist())
        kind, offset = self.number(_U4), self.number()
        if kind not in BLOCK_TYPES:
            raise ValueError(f"it has weights of type {kind}, which is not known here")
        block = BLOCK_TYPES[kind]
        if not 1 <= len(shape) <= 4 or min(shape) < 1 or shape[0] % block.numbers:
            raise ValueError(f"it gives {name[:60]!r} the shape {str(shape)[:60]} in {block.name}")
        return shape[::-1], block, offset


def _fingerprint(path: Path, tensors: dict[str, TensorInfo]) -> str:
    """A hash of everything before the weights, and of each tensor's first bytes."""
    digest = hashlib.sha256()
    with path.open("rb") as opened:
        left = min((tensor.offset for tensor in tensors.values()), default=path.stat().st_size)
        while left > 0 and (read := opened.read(min(left, 2**20))):
            digest.update(read)
            left -= len(read)
        for tensor in tensors.values():
            opened.seek(tensor.offset)
            digest.update(opened.read(min(SAMPLE, tensor.size)))
    return digest.hexdigest()
