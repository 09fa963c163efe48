"""The header of a GGUF file: its key-values and where its tensors lie. Nothing in it is believed before it
fits the file's size."""

from __future__ import annotations

import hashlib
import math
import mmap
import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from omnidemo.backends.runner import ModelError
from omnidemo.gguf.block_types import BLOCK_TYPES, BlockType

MAGIC = b"GGUF"
MOST_KEYS, MOST_TENSORS, MOST_PARTS = 65_536, 65_536, 1024
LONGEST_KEY, LONGEST_NAME, LONGEST_TEXT = 1024, 256, 16 * 2**20  # bytes
MOST_DIMENSIONS = 4
SAMPLE = 4096  # bytes of each tensor that tell two files apart
_NUMBERS: dict[int, np.dtype[Any]] = {
    0: np.dtype("<u1"), 1: np.dtype("<i1"), 2: np.dtype("<u2"), 3: np.dtype("<i2"), 4: np.dtype("<u4"),
    5: np.dtype("<i4"),
    6: np.dtype("<f4"), 7: np.dtype("?"), 10: np.dtype("<u8"), 11: np.dtype("<i8"), 12: np.dtype("<f8"),
}  # fmt: skip
_TEXT, _ARRAY = 8, 9
_SPLIT = re.compile(r"(.*)-(\d{5})-of-(\d{5})\.gguf", re.DOTALL)


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """One tensor: its shape as torch has it ([out, in] for a matrix), and its bytes in one of the file's
    parts."""

    name: str
    shape: tuple[int, ...]
    kind: BlockType
    part: int
    offset: int
    size: int


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

    def path_of(self, tensor: TensorInfo) -> Path:
        return self.parts[tensor.part]


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
        if twice := next(
            (tensor.name for tensor in more if tensor.name in {known.name for known in tensors}), None
        ):
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
    found = _SPLIT.fullmatch(path.name)
    if found is None or int(found[3]) != count or count > MOST_PARTS:
        raise ModelError(
            f"{path.name} is a part of a model in {count} files and is not named like one; give them their"
            f" names back, such as model-00001-of-{min(count, 99_999):05d}.gguf"
        )
    if int(found[2]) != 1:
        raise ModelError(
            f"{path.name} is part {int(found[2])} of {count}; choose the first,"
            f" {found[1]}-00001-of-{found[3]}.gguf"
        )
    for number in range(2, count + 1):
        yield path.with_name(f"{found[1]}-{number:05d}-of-{found[3]}.gguf")


def _read_part(path: Path, number: int) -> tuple[dict[str, Any], list[TensorInfo], int]:
    """One file: (its key-values, its tensors, in how many files it says the model lies)."""
    try:
        with path.open("rb") as opened:
            if opened.read(4) != MAGIC:
                raise ModelError(f"{path.name} is no GGUF file; choose a file that was made as one")
            with mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as memory:
                return _Walk(path.name, memory).part(number)
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


class _Walk:
    """A walk through one header. Whatever it names is held against the bytes that are left, before anything
    is made of it."""

    def __init__(self, name: str, memory: mmap.mmap) -> None:
        self.name, self.memory, self.at = name, memory, 4

    def part(self, number: int) -> tuple[dict[str, Any], list[TensorInfo], int]:
        version = self.whole("<I")
        if version not in (2, 3):
            swapped = version in (2 << 24, 3 << 24)
            raise self.refusal(
                "is written for big-endian machines"
                if swapped
                else f"has the GGUF version {version}, and 2 and 3 are read"
            )
        tensor_count, key_count = self.whole("<Q"), self.whole("<Q")
        if tensor_count > MOST_TENSORS or key_count > MOST_KEYS:
            raise self.damage(f"names {tensor_count} tensors and {key_count} keys")
        metadata: dict[str, Any] = {}
        for _ in range(key_count):
            key = self.text(LONGEST_KEY, "a key")
            if key in metadata:
                raise self.damage(f"has {key[:60]!r} twice")
            metadata[key] = self.value(self.whole("<I"), key)
        described = [self.tensor() for _ in range(tensor_count)]
        step = metadata.get("general.alignment", 32)
        if not isinstance(step, int) or not 1 <= step <= 2**20:
            raise self.damage(f"is aligned to {str(step)[:20]} bytes")
        begin = -(-self.at // step) * step
        tensors = [self.placed(number, begin, step, *one) for one in described]
        if len({tensor.name for tensor in tensors}) < len(tensors):
            raise self.damage("has a tensor twice")
        count = metadata.get("split.count", 1)
        return metadata, tensors, count if isinstance(count, int) and not isinstance(count, bool) else 1

    def take(self, count: int) -> int:
        """Go `count` bytes on; where they begin."""
        at = self.at
        if count < 0 or at + count > len(self.memory):
            raise self.damage("ends within its header")
        self.at = at + count
        return at

    def whole(self, form: str) -> int:
        found: int = struct.unpack_from(form, self.memory, self.take(struct.calcsize(form)))[0]
        return found

    def text(self, most: int, what: str) -> str:
        size = self.whole("<Q")
        if size > most:
            raise self.damage(f"has {what} of {size} bytes")
        at = self.take(size)
        try:
            return self.memory[at : at + size].decode()
        except UnicodeDecodeError:
            if what == "a key" or what == "the name of a tensor":
                raise self.damage(f"has {what} that is no text") from None
            return self.memory[at : at + size].decode(errors="replace")

    def value(self, kind: int, key: str) -> Any:
        if kind == _TEXT:
            return self.text(LONGEST_TEXT, f"a text {key[:60]!r}")
        if kind == _ARRAY:
            return self.array(key)
        if kind not in _NUMBERS:
            raise self.damage(f"has a value of the unknown kind {kind}")
        form = _NUMBERS[kind]
        at = self.take(form.itemsize)
        return np.frombuffer(self.memory[at : self.at], form)[0].item()

    def array(self, key: str) -> Any:
        """Texts as a list, numbers as an array of their own."""
        kind, count = self.whole("<I"), self.whole("<Q")
        if kind == _ARRAY:
            raise self.refusal(f"has lists within lists ({key[:60]!r}), which are not read")
        if kind in _NUMBERS:
            form = _NUMBERS[kind]
            if count * form.itemsize > len(self.memory):
                raise self.damage(f"names {count} numbers for {key[:60]!r}")
            at = self.take(count * form.itemsize)
            return np.frombuffer(self.memory[at : self.at], form)
        if kind != _TEXT:
            raise self.damage(f"has a list of the unknown kind {kind}")
        if count * 8 > len(self.memory) - self.at:
            raise self.damage(f"names {count} texts for {key[:60]!r}")
        return self.texts(count)

    def texts(self, count: int) -> list[str]:
        """So many texts: hundreds of thousands in a tokenizer, so this loop is kept short."""
        at, end, found = self.at, len(self.memory), []
        unpack = struct.Struct("<Q").unpack_from
        for _ in range(count):
            if at + 8 > end:
                raise self.damage("ends within its header")
            begin = at + 8
            at = begin + unpack(self.memory, at)[0]
            if at > end:
                raise self.damage("ends within its header")
            found.append(self.memory[begin:at])
        self.at = at
        return [one.decode(errors="replace") for one in found]

    def tensor(self) -> tuple[str, tuple[int, ...], BlockType, int]:
        """(name, shape, type, offset from where the weights begin)."""
        name = self.text(LONGEST_NAME, "the name of a tensor")
        dimensions = self.whole("<I")
        if not 1 <= dimensions <= MOST_DIMENSIONS:
            raise self.damage(f"gives {name[:60]!r} {dimensions} dimensions")
        shape = tuple(self.whole("<Q") for _ in range(dimensions))
        kind, offset = self.whole("<I"), self.whole("<Q")
        if kind not in BLOCK_TYPES:
            raise self.refusal(
                f"has weights of type {kind}, which is not known here; take a file of type Q4_K_M, Q8_0"
                " or F16"
            )
        found = BLOCK_TYPES[kind]
        if (
            min(shape) < 1
            or math.prod(shape) > 8 * found.numbers * len(self.memory)
            or shape[0] % found.numbers
        ):
            raise self.damage(
                f"gives {name[:60]!r} the shape {' × '.join(map(str, shape))[:60]} in {found.name}"
            )
        return name, shape[::-1], found, offset

    def placed(
        self,
        part: int,
        begin: int,
        step: int,
        name: str,
        shape: tuple[int, ...],
        kind: BlockType,
        offset: int,
    ) -> TensorInfo:
        size = math.prod(shape) // kind.numbers * kind.size
        if offset % step or begin + offset + size > len(self.memory):
            raise ModelError(
                f"{self.name} is cut short or damaged: {name[:60]!r} ends at byte {begin + offset + size:,}"
                f" of {len(self.memory):,}; download it again"
            )
        return TensorInfo(name, shape, kind, part, begin + offset, size)

    def damage(self, what: str) -> ModelError:
        return ModelError(f"{self.name} is damaged: it {what}; download it again")

    def refusal(self, what: str) -> ModelError:
        return ModelError(f"{self.name} {what}; choose another file of this model")
