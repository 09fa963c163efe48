"""The block types of GGUF files: numbers and bytes of a block, and how bytes become numbers.

The numbers of a block are scale · quant + minimum, computed in float32 in the order of the format's
definition, so that every value is, bit for bit, that of every other reader.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from omnidemo.backends.packed_forms import Quantized

Bytes = NDArray[np.uint8]  # [blocks, bytes of a block]
Quants = NDArray[Any]  # [blocks, quants], of one byte each
Numbers = NDArray[np.float32]  # [blocks, numbers of a block]


@dataclass(frozen=True, slots=True)
class BlockType:
    """`numbers` weights in `size` bytes. `read`: the values of whole blocks, None where this project cannot
    read the type; `parts`: their quants and scales, a row for each block, None where a block holds plain
    numbers."""

    name: str
    numbers: int
    size: int
    read: Callable[[Bytes], Numbers] | None = None
    parts: Callable[[Bytes], Quantized] | None = None


def _coded(name: str, numbers: int, size: int, parts: Callable[[Bytes], Quantized]) -> BlockType:
    return BlockType(name, numbers, size, lambda blocks: parts(blocks).values(), parts)


def _halves(blocks: Bytes, at: int) -> Numbers:
    """The float16 at byte `at` of each block, as float32 [blocks, 1]."""
    return np.ascontiguousarray(blocks[:, at : at + 2]).view(np.float16).astype(np.float32)


def _nibbles(quants: Bytes) -> Quants:
    """[blocks, n] bytes as [blocks, 2n] quants: all low halves, then all high halves."""
    return np.concatenate([quants & 0x0F, quants >> 4], axis=-1)


def _fifth_bits(blocks: Bytes, at: int) -> Quants:
    """32 bits from byte `at` of each block on, each as 0 or 16 [blocks, 32]."""
    return np.unpackbits(blocks[:, at : at + 4], axis=-1, bitorder="little") << 4


def _q4_0(blocks: Bytes) -> Quantized:
    return Quantized(_nibbles(blocks[:, 2:]).astype(np.int8) - np.int8(8), _halves(blocks, 0))


def _q4_1(blocks: Bytes) -> Quantized:
    return Quantized(_nibbles(blocks[:, 4:]), _halves(blocks, 0), _halves(blocks, 2))


def _q5_0(blocks: Bytes) -> Quantized:
    return Quantized(
        (_nibbles(blocks[:, 6:]) | _fifth_bits(blocks, 2)).astype(np.int8) - np.int8(16), _halves(blocks, 0)
    )


def _q5_1(blocks: Bytes) -> Quantized:
    return Quantized(_nibbles(blocks[:, 8:]) | _fifth_bits(blocks, 4), _halves(blocks, 0), _halves(blocks, 2))


def _q8_0(blocks: Bytes) -> Quantized:
    return Quantized(blocks[:, 2:].view(np.int8), _halves(blocks, 0))


def _super_scales(blocks: Bytes, at: int) -> Numbers:
    """The super_scales of scales and of minima, which K types subtract [blocks, 1, 2]."""
    return np.stack([_halves(blocks, at), -_halves(blocks, at + 2)], axis=-1)


def _two_bits(quants: Bytes) -> Quants:
    """[blocks, 64] bytes as 256 quants of two bits, in the order of the K types: 32 bytes hold 4 × 32 quants,
    the lowest bits first."""
    halves = quants.reshape(-1, 2, 1, 32) >> np.array([0, 2, 4, 6], np.uint8).reshape(1, 1, 4, 1)
    return (halves & 3).reshape(-1, 256)


def _q2_k(blocks: Bytes) -> Quantized:
    both = blocks[:, :16]
    return Quantized(_two_bits(blocks[:, 16:80]), both & 0x0F, both >> 4, _super_scales(blocks, 80))


def _q3_k(blocks: Bytes) -> Quantized:
    masks, packed = blocks[:, :32], blocks[:, 96:108]
    low = np.concatenate([packed[:, :8] & 0x0F, packed[:, :8] >> 4], axis=-1)
    high = (packed[:, None, 8:] >> np.array([0, 2, 4, 6], np.uint8).reshape(1, 4, 1)).reshape(-1, 16) & 3
    scales = (low | high << 4).astype(np.int8) - np.int8(32)
    # A cleared bit of the mask subtracts 4. Bit j of the 32 bytes belongs to the j-th group of 32 quants.
    bits = (masks[:, None, :] >> np.arange(8, dtype=np.uint8).reshape(1, 8, 1)).reshape(-1, 256) & 1
    quants = _two_bits(blocks[:, 32:96]).astype(np.int8) - ((bits ^ 1) << 2).astype(np.int8)
    return Quantized(quants, scales, None, _halves(blocks, 108)[..., None])


def six_bit_scales(packed: Bytes) -> tuple[Bytes, Bytes]:
    """The eight scales and eight minima [blocks, 8] of six bits in twelve bytes [blocks, 12] of Q4_K and
    Q5_K."""
    first, second, third = packed[:, :4], packed[:, 4:8], packed[:, 8:]
    scales = np.concatenate([first & 0x3F, (third & 0x0F) | ((first >> 6) << 4)], axis=-1)
    minima = np.concatenate([second & 0x3F, (third >> 4) | ((second >> 6) << 4)], axis=-1)
    return scales, minima


def _with_minima(blocks: Bytes, quants: Quants) -> Quantized:
    """Q4_K and Q5_K from their quants [blocks, 256]."""
    scales, minima = six_bit_scales(blocks[:, 4:16])
    return Quantized(quants, scales, minima, _super_scales(blocks, 0))


def _q4_k(blocks: Bytes) -> Quantized:
    return _with_minima(blocks, _nibbles(blocks[:, 16:].reshape(-1, 4, 32)).reshape(-1, 256))


def _q5_k(blocks: Bytes) -> Quantized:
    fifth = (blocks[:, None, 16:48] >> np.arange(8, dtype=np.uint8).reshape(1, 8, 1)) & 1
    low = _nibbles(blocks[:, 48:].reshape(-1, 4, 32)).reshape(-1, 256)
    return _with_minima(blocks, low | (fifth.reshape(-1, 256) << 4))


def _q6_k(blocks: Bytes) -> Quantized:
    low = _nibbles(blocks[:, :128].reshape(-1, 2, 64)).reshape(-1, 256)
    quants = (low | _two_bits(blocks[:, 128:192]) << 4).astype(np.int8) - np.int8(32)
    return Quantized(quants, blocks[:, 192:208].view(np.int8), None, _halves(blocks, 208)[..., None])


def _float32(blocks: Bytes) -> Numbers:
    return np.ascontiguousarray(blocks).view(np.float32).copy()


def _float16(blocks: Bytes) -> Numbers:
    return np.ascontiguousarray(blocks).view(np.float16).astype(np.float32)


def _bfloat16(blocks: Bytes) -> Numbers:
    return (np.ascontiguousarray(blocks).view(np.uint16).astype(np.uint32) << 16).view(np.float32)


# By the type's number in a file. Types without a reader are refused by name.
BLOCK_TYPES: dict[int, BlockType] = {
    0: BlockType("F32", 1, 4, _float32),
    1: BlockType("F16", 1, 2, _float16),
    2: _coded("Q4_0", 32, 18, _q4_0),
    3: _coded("Q4_1", 32, 20, _q4_1),
    6: _coded("Q5_0", 32, 22, _q5_0),
    7: _coded("Q5_1", 32, 24, _q5_1),
    8: _coded("Q8_0", 32, 34, _q8_0),
    9: BlockType("Q8_1", 32, 40),
    10: _coded("Q2_K", 256, 84, _q2_k),
    11: _coded("Q3_K", 256, 110, _q3_k),
    12: _coded("Q4_K", 256, 144, _q4_k),
    13: _coded("Q5_K", 256, 176, _q5_k),
    14: _coded("Q6_K", 256, 210, _q6_k),
    15: BlockType("Q8_K", 256, 292),
    16: BlockType("IQ2_XXS", 256, 66),
    17: BlockType("IQ2_XS", 256, 74),
    18: BlockType("IQ3_XXS", 256, 98),
    19: BlockType("IQ1_S", 256, 50),
    20: BlockType("IQ4_NL", 32, 18),
    21: BlockType("IQ3_S", 256, 110),
    22: BlockType("IQ2_S", 256, 82),
    23: BlockType("IQ4_XS", 256, 136),
    24: BlockType("I8", 1, 1),
    25: BlockType("I16", 1, 2),
    26: BlockType("I32", 1, 4),
    27: BlockType("I64", 1, 8),
    28: BlockType("F64", 1, 8),
    29: BlockType("IQ1_M", 256, 56),
    30: BlockType("BF16", 1, 2, _bfloat16),
    34: BlockType("TQ1_0", 256, 54),
    35: BlockType("TQ2_0", 256, 66),
    39: BlockType("MXFP4", 32, 17),
    40: BlockType("NVFP4", 64, 36),
    41: BlockType("Q1_0", 128, 18),
}
READABLE = tuple(kind.name for kind in BLOCK_TYPES.values() if kind.read is not None)
