"""The memory layout of packed weights: tiles, which kernels read one after another.

A tile holds 32 columns of sixteen rows: quants, scales and minima. A weight is scale · quant + minimum in
float32, bit for bit the value in its file. The sixteen rows are the lanes of a vector: each part of a tile
has a word, or a number, for each of them.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from omnidemo.core.resources import usable_cores

COLUMNS, ROWS = 32, 16  # of a block, which is a tile or an eighth of one
SHARE = 8  # blocks of 32 columns in a super-block of the K types
QUADS = COLUMNS // 4  # groups of four columns, whose quants share a word byte by byte


class Layout(NamedTuple):
    """The contents of a tile for 32 columns, in order: words of quants, `scales` scales for each row, each
    for an equal share of the columns, and as many minima or none. With whole-number scales (K types) a tile
    has eight times that, followed by each row's super-block scales: one of its scales, one of its minima.

    A word has consecutive columns: four quants of 8 bits, or the lower four bits of eight quants, where byte
    b has those of columns b and 4 + b. So the lower halves of its bytes are four consecutive columns, and the
    upper halves are the next four. With 5 or 6 bits a quant, one or two more words have the upper bits, see
    `upper`.
    """

    bits: int  # of a quant in a tile, which is the quant plus `zero`
    centre: int  # the middle of the quants in a tile; sums of quants minus it stay small
    scales: int
    minima: bool
    number: type[np.float16] | type[np.uint8] | type[np.int8]  # of scales and minima

    @property
    def zero(self) -> int:
        return 0 if self.minima else self.centre

    @property
    def each(self) -> int:
        """Quants of a word."""
        return min(8, 32 // self.bits) if self.bits % 8 == 0 else 8

    @property
    def words(self) -> int:
        """Words of a row in a tile, without those of upper bits."""
        return COLUMNS // self.each

    @property
    def upper(self) -> int:
        """Bits of a quant outside its word. Those of columns 4 q + b are in byte b of the words after the
        others, from the lowest bit on for q = 0, 1, …, and in the next word where that byte is full."""
        return self.bits % 4

    def place(self, quad: int) -> tuple[int, int]:
        """(word, bit) of the columns 4 q … 4 q + 3: their lower bits, one column in each byte."""
        return (quad, 0) if self.bits == 8 else (quad // 2, quad % 2 * 4)

    def upper_place(self, quad: int) -> tuple[int, int]:
        """(word, bit) of their upper bits."""
        at = quad * self.upper
        return self.words + at // 8, at % 8

    @property
    def blocks(self) -> int:
        """Blocks of 32 columns in a tile."""
        return 1 if self.number is np.float16 else SHARE

    @property
    def block(self) -> np.dtype[Any]:
        """The numpy type of 32 columns."""
        numbers = self.scales * (2 if self.minima else 1)
        return np.dtype(
            [
                ("quants", np.uint32, (COLUMNS * self.bits // 32, ROWS)),
                ("numbers", self.number, (numbers, ROWS)),
            ]
        )

    @property
    def tile(self) -> np.dtype[Any]:
        super_scales = (
            [] if self.blocks == 1 else [("super_scales", np.float16, (2 if self.minima else 1, ROWS))]
        )
        return np.dtype([("blocks", self.block, (self.blocks,)), *super_scales])

    @property
    def size(self) -> int:
        """Bytes of a tile."""
        return self.tile.itemsize


# Forms of a matrix, as compiled code knows them: the first two are plain arrays, the others tiles.
FLOAT32, BFLOAT16, *PACKED = range(11)
CENTRED, NIBBLES, K_NIBBLES, FIVES, RAISED_FIVES, K_FIVES, SIXES, BYTES, HALVES = PACKED
LAYOUTS = {
    CENTRED: Layout(4, 8, 1, False, np.float16),
    NIBBLES: Layout(4, 8, 1, True, np.float16),
    K_NIBBLES: Layout(4, 8, 1, True, np.uint8),
    FIVES: Layout(5, 16, 1, False, np.float16),
    RAISED_FIVES: Layout(5, 16, 1, True, np.float16),
    K_FIVES: Layout(5, 16, 1, True, np.uint8),
    SIXES: Layout(6, 32, 2, False, np.int8),
    BYTES: Layout(8, 128, 1, False, np.float16),
    HALVES: Layout(4, 2, 2, True, np.uint8),
}
# weights packed at a time: intermediate results stay in a core's cache
PIECE = 2**18


def nbytes(form: int, rows: int, columns: int) -> int:
    """Bytes of a matrix in a packed form."""
    layout = LAYOUTS[form]
    return -(-rows // ROWS) * (columns // (COLUMNS * layout.blocks)) * layout.size


@dataclass(frozen=True, slots=True)
class Quantized:
    """Weights as a file has them: `quants` [out, in] of one byte each, unsigned where there are minima, and
    `scales` and `minima` [out, groups]; None for minima of zero. With `super_scales` [out, in / 256, 1 or 2]
    scales and minima are whole numbers, which the first and the second factor multiply."""

    quants: NDArray[Any]
    scales: NDArray[Any]
    minima: NDArray[Any] | None = None
    super_scales: NDArray[np.float32] | None = None

    def in_rows(self, rows: int) -> Quantized:
        """The same weights as a matrix of so many rows."""
        minima = None if self.minima is None else self.minima.reshape(rows, -1)
        super_scales = (
            None
            if self.super_scales is None
            else self.super_scales.reshape(rows, -1, self.super_scales.shape[2])
        )
        return Quantized(self.quants.reshape(rows, -1), self.scales.reshape(rows, -1), minima, super_scales)

    def values(self) -> NDArray[np.float32]:
        """scale · quant + minimum [out, in]."""
        scales, minima = self.numbers
        quants = self.quants.reshape(*scales.shape, -1)
        values: NDArray[np.float32] = scales[..., None] * quants.astype(np.float32)
        if minima is not None:
            values += minima[..., None]
        return values.reshape(self.quants.shape)

    @property
    def numbers(self) -> tuple[NDArray[np.float32], NDArray[np.float32] | None]:
        """Scales and minima in float32, as a reader of the file computes them."""

        def made(which: int, whole: NDArray[Any]) -> NDArray[np.float32]:
            found = whole.astype(np.float32)
            if self.super_scales is not None:
                rows, shares = self.super_scales.shape[:2]
                found = found.reshape(rows, shares, -1) * self.super_scales[:, :, which, None]
            return found.reshape(whole.shape)

        return made(0, self.scales), None if self.minima is None else made(1, self.minima)


@dataclass(frozen=True, slots=True)
class PackedMatrix:
    """`rows` × `columns` weights as `tiles` [⌈rows / 16⌉, columns / 32 or / 256] of a form. Rows that are
    missing in the last group have scales of zero."""

    form: int
    rows: int
    columns: int
    tiles: NDArray[Any]

    @property
    def nbytes(self) -> int:
        return self.tiles.nbytes

    @classmethod
    def of(cls, form: int, rows: int, columns: int, read: Callable[[int, int], Quantized]) -> PackedMatrix:
        """Pack `rows` × `columns` weights on several cores. `read(begin, end)` gives rows as `Quantized`."""
        kind = LAYOUTS[form].tile
        groups, blocks = -(-rows // ROWS), columns // (COLUMNS * LAYOUTS[form].blocks)
        memory = np.zeros(groups * blocks * kind.itemsize + 64, np.uint8)
        begin = -memory.ctypes.data % 64  # tiles begin on a cache line
        tiles = memory[begin : begin + groups * blocks * kind.itemsize].view(kind).reshape(groups, blocks)
        step = max(1, PIECE // (ROWS * columns)) * ROWS
        threads = usable_cores()

        def fill(thread: int) -> None:
            # a damaged scale may be NaN, which the probe at load finds
            with np.errstate(all="ignore"):
                for first in range(thread * step, rows, threads * step):
                    last = min(rows, first + step)
                    _write(LAYOUTS[form], tiles[first // ROWS : -(-last // ROWS)], read(first, last))

        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(fill, range(threads)))
        return cls(form, rows, columns, tiles)

    def quantized(self) -> Quantized:
        """The weights as `of` was given them."""
        layout = LAYOUTS[self.form]
        blocks = self.tiles["blocks"]
        words, numbers = blocks["quants"], blocks["numbers"]
        quants = np.empty((*words.shape[:3], QUADS, 4, ROWS), np.uint8)
        byte = np.arange(0, 32, 8, dtype=np.uint32)[:, None]
        for quad in range(QUADS):
            word, shift = layout.place(quad)
            lower = words[..., word, None, :] >> (byte + np.uint32(shift))
            quants[..., quad, :, :] = lower & np.uint32(255 if layout.bits == 8 else 15)
            if layout.upper:
                word, shift = layout.upper_place(quad)
                upper = words[..., word, None, :] >> (byte + np.uint32(shift)) & np.uint32(
                    2**layout.upper - 1
                )
                quants[..., quad, :, :] |= (upper << np.uint32(4)).astype(np.uint8)
        if not layout.minima:
            quants = (quants - np.uint8(layout.zero)).view(np.int8)

        def rows(of: NDArray[Any]) -> NDArray[Any]:
            """[groups, …, 16] by rows."""
            return np.moveaxis(of, -1, 1).reshape(len(of) * ROWS, -1)[: self.rows]

        scales, minima = numbers[..., : layout.scales, :], numbers[..., layout.scales :, :]
        super_scales = None
        if layout.blocks > 1:
            shares = self.tiles["super_scales"].astype(np.float32)
            super_scales = rows(shares).reshape(self.rows, shares.shape[1], -1)
        return Quantized(rows(quants), rows(scales), rows(minima) if layout.minima else None, super_scales)

    def values(self) -> NDArray[np.float32]:
        """The weights [rows, columns]."""
        return self.quantized().values()


def _write(layout: Layout, tiles: NDArray[Any], quantized: Quantized) -> None:
    """Write rows into tiles [groups, blocks]; the last group may be short."""
    (groups, shares), count = tiles.shape, len(quantized.quants)
    blocks = shares * layout.blocks
    quants = np.zeros((groups * ROWS, blocks * COLUMNS), np.uint8)
    np.add(quantized.quants.view(np.uint8), np.uint8(layout.zero), out=quants[:count])

    def put(field: str, first: int, values: NDArray[Any]) -> None:
        """`values` of each row and block, from a place of the field on."""
        placed = values.reshape(groups, ROWS, shares, layout.blocks, -1).transpose(0, 2, 3, 4, 1)
        tiles["blocks"][field][:, :, :, first : first + placed.shape[3]] = placed

    eights = quants.view("<u8")
    put("quants", 0, quants.view("<u4") if layout.bits == 8 else _joined(eights & _each(15), 4))
    if layout.upper:
        bits = _joined(eights >> np.uint64(4) & _each(2**layout.upper - 1), layout.upper)
        several = bits.reshape(-1, 4 // layout.upper)
        for place in range(1, several.shape[1]):
            several[:, 0] |= several[:, place] << np.uint32(2 * layout.upper * place)
        put("quants", layout.words, several[:, 0])
    for first, numbers in (
        (0, quantized.scales),
        (layout.scales, quantized.minima if layout.minima else None),
    ):
        if numbers is not None:
            wide = np.zeros((groups * ROWS, blocks * layout.scales), layout.number)
            wide[:count] = numbers
            put("numbers", first, wide)
    if quantized.super_scales is not None:
        super_scales = np.zeros((groups * ROWS, *quantized.super_scales.shape[1:]), np.float16)
        super_scales[:count] = quantized.super_scales
        tiles["super_scales"] = super_scales.reshape(groups, ROWS, shares, -1).transpose(0, 2, 3, 1)


def _joined(eights: NDArray[np.uint64], bits: int) -> NDArray[np.uint32]:
    """Eight quants of up to four bits, a byte each, as a word: byte b has the quants b and 4 + b."""
    return (eights | eights >> np.uint64(32 - bits)).astype(np.uint32)


def _each(mask: int) -> np.uint64:
    """A mask for each of eight bytes."""
    return np.uint64(sum(mask << place for place in range(0, 64, 8)))
