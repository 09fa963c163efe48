"""A walk through the bytes of a GGUF header: key-values and tensor descriptions."""

from __future__ import annotations

import math
import mmap
import struct
from dataclasses import dataclass
from typing import Any

import numpy as np

from omnidemo.backends.runner import ModelError
from omnidemo.models.gguf.block_types import BLOCK_TYPES, BlockType

MOST_KEYS, MOST_TENSORS = 65_536, 65_536
LONGEST_KEY, LONGEST_NAME, LONGEST_TEXT = 1024, 256, 16 * 2**20  # bytes
MOST_DIMENSIONS = 4
_NUMBERS: dict[int, np.dtype[Any]] = {
    0: np.dtype("<u1"), 1: np.dtype("<i1"), 2: np.dtype("<u2"), 3: np.dtype("<i2"), 4: np.dtype("<u4"),
    5: np.dtype("<i4"),
    6: np.dtype("<f4"), 7: np.dtype("?"), 10: np.dtype("<u8"), 11: np.dtype("<i8"), 12: np.dtype("<f8"),
}  # fmt: skip
_TEXT, _ARRAY = 8, 9


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


class HeaderWalk:
    """A walk through one header. Every size is checked against the remaining bytes before it is used."""

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
        tensors = [self.placed(number, begin, step, *tensor) for tensor in described]
        if len({tensor.name for tensor in tensors}) < len(tensors):
            raise self.damage("has a tensor twice")
        count = metadata.get("split.count", 1)
        return metadata, tensors, count if isinstance(count, int) and not isinstance(count, bool) else 1

    def take(self, count: int) -> int:
        """Advance by `count` bytes; returns where they begin."""
        at = self.at
        if count < 0 or at + count > len(self.memory):
            raise self.damage("ends within its header")
        self.at = at + count
        return at

    def whole(self, form: str) -> int:
        number: int = struct.unpack_from(form, self.memory, self.take(struct.calcsize(form)))[0]
        return number

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
        """Texts as a list, numbers as an array."""
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
        """`count` texts. A tokenizer has hundreds of thousands, so this loop is short."""
        at, end, texts = self.at, len(self.memory), []
        unpack = struct.Struct("<Q").unpack_from
        for _ in range(count):
            if at + 8 > end:
                raise self.damage("ends within its header")
            begin = at + 8
            at = begin + unpack(self.memory, at)[0]
            if at > end:
                raise self.damage("ends within its header")
            texts.append(self.memory[begin:at])
        self.at = at
        return [text.decode(errors="replace") for text in texts]

    def tensor(self) -> tuple[str, tuple[int, ...], BlockType, int]:
        """(name, shape, type, offset from the beginning of the weights)."""
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
        block = BLOCK_TYPES[kind]
        too_many = math.prod(shape) > 8 * block.numbers * len(self.memory)
        if min(shape) < 1 or too_many or shape[0] % block.numbers:
            size = " × ".join(map(str, shape))[:60]
            raise self.damage(f"gives {name[:60]!r} the shape {size} in {block.name}")
        return name, shape[::-1], block, offset

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
