"""How weights of a few bits lie in memory: in records, which kernels read one after the other.

A record holds 32 columns of sixteen rows: codes, and the numbers that make weights of them, scale · code +
minimum in float32. That is the weight's value in its file, bit for bit, so a packed matrix is the float32
matrix in fewer bytes. The sixteen rows are the lanes of a vector: each piece of a record has a word, or a
number, for every one of them.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from omnidemo.core.resources import usable_cores

COLUMNS, ROWS = 32, 16  # of a block, which is a record or an eighth of one
SHARE = 8  # blocks with a common factor of their scales
QUADS = COLUMNS // 4  # groups of four columns, whose codes share a word byte by byte


class Layout(NamedTuple):
    """The contents of a record for 32 columns, in order: words of codes, `scales` scales for each row, each
    for an equal share of the columns, and as many minima or none. Where scales are whole numbers a record has
    eight times that, followed by the factors of all of it: one for each row's scales, and one for its minima.

    A word has consecutive columns: four codes of 8 bits, or the lower four bits of eight codes, where byte b
    has those of columns b and 4 + b. So the lower halves of its bytes are four consecutive columns, and the
    upper halves are the next four. With 5 or 6 bits a code, one or two more words have the upper bits, see
    `upper`.
    """

    bits: int  # of a code in a record, which is the code plus `zero`
    centre: int  # the middle of the codes in a record; sums of codes minus it stay small
    scales: int
    minima: bool
    number: type[np.float16] | type[np.uint8] | type[np.int8]  # of scales and minima

    @property
    def zero(self) -> int:
        return 0 if self.minima else self.centre

    @property
    def each(self) -> int:
        """Codes of a word."""
        return min(8, 32 // self.bits) if self.bits % 8 == 0 else 8

    @property
    def words(self) -> int:
        """Words of a row in a record, without those of upper bits."""
        return COLUMNS // self.each

    @property
    def upper(self) -> int:
        """Bits of a code outside its word. Those of columns 4 q + b are in byte b of the words after the
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
        """Blocks of 32 columns in a record."""
        return 1 if self.number is np.float16 else SHARE

    @property
    def block(self) -> np.dtype[Any]:
        """The numpy type of 32 columns."""
        numbers = self.scales * (2 if self.minima else 1)
        return np.dtype(
            [
                ("codes", np.uint32, (COLUMNS * self.bits // 32, ROWS)),
                ("numbers", self.number, (numbers, ROWS)),
            ]
        )

    @property
    def record(self) -> np.dtype[Any]:
        factors = [] if self.blocks == 1 else [("factors", np.float16, (2 if self.minima else 1, ROWS))]
        return np.dtype([("blocks", self.block, (self.blocks,)), *factors])

    @property
    def size(self) -> int:
        """Bytes of a record."""
        return self.record.itemsize


# Forms of a matrix, as compiled code knows them: the first two are plain arrays, the others records.
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
# weights packed at a time, so that intermediate results stay in a core's cache
PIECE = 2**18


def nbytes(form: int, rows: int, columns: int) -> int:
    """Bytes of a matrix in a packed form."""
    layout = LAYOUTS[form]
    return -(-rows // ROWS) * (columns // (COLUMNS * layout.blocks)) * layout.size


@dataclass(frozen=True, slots=True)
class Coded:
    """Weights as a file has them: `codes` [out, in] of one byte each, unsigned where there are minima, and
    `scales` and `minima` [out, groups]; None for minima of zero. With `factors` [out, in / 256, 1 or 2]
    scales and minima are whole numbers, which the first and the second factor multiply."""

    codes: NDArray[Any]
    scales: NDArray[Any]
    minima: NDArray[Any] | None = None
    factors: NDArray[np.float32] | None = None

    def in_rows(self, rows: int) -> Coded:
        """The same weights as a matrix of so many rows."""
        minima = None if self.minima is None else self.minima.reshape(rows, -1)
        factors = None if self.factors is None else self.factors.reshape(rows, -1, self.factors.shape[2])
        return Coded(self.codes.reshape(rows, -1), self.scales.reshape(rows, -1), minima, factors)

    def values(self) -> NDArray[np.float32]:
        """scale · code + minimum [out, in]."""
        scales, minima = self.numbers
        codes = self.codes.reshape(*scales.shape, -1)
        values: NDArray[np.float32] = scales[..., None] * codes.astype(np.float32)
        if minima is not None:
            values += minima[..., None]
        return values.reshape(self.codes.shape)

    @property
    def numbers(self) -> tuple[NDArray[np.float32], NDArray[np.float32] | None]:
        """Scales and minima in float32, as a reader of the file computes them."""

        def made(which: int, whole: NDArray[Any]) -> NDArray[np.float32]:
            found = whole.astype(np.float32)
            if self.factors is not None:
                rows, shares = self.factors.shape[:2]
                found = found.reshape(rows, shares, -1) * self.factors[:, :, which, None]
            return found.reshape(whole.shape)

        return made(0, self.scales), None if self.minima is None else made(1, self.minima)


@dataclass(frozen=True, slots=True)
class PackedMatrix:
    """`rows` × `columns` weights as `records` [⌈rows / 16⌉, columns / 32 or / 256] of a form. Rows that are
    missing in the last group have scales of zero."""

    form: int
    rows: int
    columns: int
    records: NDArray[Any]

    @property
    def nbytes(self) -> int:
        return self.records.nbytes

    @classmethod
    def of(cls, form: int, rows: int, columns: int, read: Callable[[int, int], Coded]) -> PackedMatrix:
        """Pack `rows` × `columns` weights on several cores. `read(begin, end)` gives rows as `Coded`."""
        kind = LAYOUTS[form].record
        groups, blocks = -(-rows // ROWS), columns // (COLUMNS * LAYOUTS[form].blocks)
        memory = np.zeros(groups * blocks * kind.itemsize + 64, np.uint8)
        begin = -memory.ctypes.data % 64  # records begin on a cache line
        records = memory[begin : begin + groups * blocks * kind.itemsize].view(kind).reshape(groups, blocks)
        step = max(1, PIECE // (ROWS * columns)) * ROWS
        threads = usable_cores()

        def fill(thread: int) -> None:
            # a damaged scale may be NaN, which the probe at load finds
            with np.errstate(all="ignore"):
                for first in range(thread * step, rows, threads * step):
                    last = min(rows, first + step)
                    _write(LAYOUTS[form], records[first // ROWS : -(-last // ROWS)], read(first, last))

        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(fill, range(threads)))
        return cls(form, rows, columns, records)

    def coded(self) -> Coded:
        """The weights as `of` was given them."""
        layout = LAYOUTS[self.form]
        blocks = self.records["blocks"]
        words, numbers = blocks["codes"], blocks["numbers"]
        codes = np.empty((*words.shape[:3], QUADS, 4, ROWS), np.uint8)
        byte = np.arange(0, 32, 8, dtype=np.uint32)[:, None]
        for quad in range(QUADS):
            word, shift = layout.place(quad)
            lower = words[..., word, None, :] >> (byte + np.uint32(shift))
            codes[..., quad, :, :] = lower & np.uint32(255 if layout.bits == 8 else 15)
            if layout.upper:
                word, shift = layout.upper_place(quad)
                upper = words[..., word, None, :] >> (byte + np.uint32(shift)) & np.uint32(
                    2**layout.upper - 1
                )
                codes[..., quad, :, :] |= (upper << np.uint32(4)).astype(np.uint8)
        if not layout.minima:
            codes = (codes - np.uint8(layout.zero)).view(np.int8)

        def rows(of: NDArray[Any]) -> NDArray[Any]:
            """[groups, …, 16] by rows."""
            return np.moveaxis(of, -1, 1).reshape(len(of) * ROWS, -1)[: self.rows]

        scales, minima = numbers[..., : layout.scales, :], numbers[..., layout.scales :, :]
        factors = None
        if layout.blocks > 1:
            shares = self.records["factors"].astype(np.float32)
            factors = rows(shares).reshape(self.rows, shares.shape[1], -1)
        return Coded(rows(codes), rows(scales), rows(minima) if layout.minima else None, factors)

    def values(self) -> NDArray[np.float32]:
        """The weights [rows, columns]."""
        return self.coded().values()


def _write(layout: Layout, records: NDArray[Any], coded: Coded) -> None:
    """Write rows into records [groups, blocks]; the last group may be short."""
    (groups, shares), count = records.shape, len(coded.codes)
    blocks = shares * layout.blocks
    codes = np.zeros((groups * ROWS, blocks * COLUMNS), np.uint8)
    np.add(coded.codes.view(np.uint8), np.uint8(layout.zero), out=codes[:count])

    def put(field: str, first: int, values: NDArray[Any]) -> None:
        """`values` of each row and block, from a place of the field on."""
        placed = values.reshape(groups, ROWS, shares, layout.blocks, -1).transpose(0, 2, 3, 4, 1)
        records["blocks"][field][:, :, :, first : first + placed.shape[3]] = placed

    eights = codes.view("<u8")
    put("codes", 0, codes.view("<u4") if layout.bits == 8 else _joined(eights & _each(15), 4))
    if layout.upper:
        bits = _joined(eights >> np.uint64(4) & _each(2**layout.upper - 1), layout.upper)
        several = bits.reshape(-1, 4 // layout.upper)
        for place in range(1, several.shape[1]):
            several[:, 0] |= several[:, place] << np.uint32(2 * layout.upper * place)
        put("codes", layout.words, several[:, 0])
    for first, numbers in ((0, coded.scales), (layout.scales, coded.minima if layout.minima else None)):
        if numbers is not None:
            wide = np.zeros((groups * ROWS, blocks * layout.scales), layout.number)
            wide[:count] = numbers
            put("numbers", first, wide)
    if coded.factors is not None:
        factors = np.zeros((groups * ROWS, *coded.factors.shape[1:]), np.float16)
        factors[:count] = coded.factors
        records["factors"] = factors.reshape(groups, ROWS, shares, -1).transpose(0, 2, 3, 1)


def _joined(eights: NDArray[np.uint64], bits: int) -> NDArray[np.uint32]:
    """Eight codes of up to four bits, a byte each, as a word: byte b has the codes b and 4 + b."""
    return (eights | eights >> np.uint64(32 - bits)).astype(np.uint32)


def _each(mask: int) -> np.uint64:
    """A mask for each of eight bytes."""
    return np.uint64(sum(mask << place for place in range(0, 64, 8)))
