"""How weights of a few bits lie in memory: in records, which kernels read one after the other.

A record holds 32 columns of four rows: their codes, and the numbers that make weights of them, scale · code + minimum in float32. That is
the value that the weight has in its file, bit for bit; so a packed matrix is the float32 matrix, in fewer bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Forms of a matrix, as compiled code knows them. The first two are plain arrays, the others records.
FLOAT32, BFLOAT16, NIBBLES, BYTES, SIXTEENS = range(5)
COLUMNS, ROWS = 32, 4  # of a record
RECORDS: dict[int, np.dtype[Any]] = {
    # Codes from 0 to 15, those of the columns 0 to 15 in the low halves of 16 bytes, the others in the high ones.
    NIBBLES: np.dtype([("codes", np.uint8, (ROWS, 16)), ("scales", np.float32, (ROWS,)), ("minima", np.float32, (ROWS,))]),
    BYTES: np.dtype([("codes", np.int8, (ROWS, COLUMNS)), ("scales", np.float32, (ROWS,))]),
    # The columns 0 to 15 have a scale and a minimum of their own, and so have the others.
    SIXTEENS: np.dtype([("codes", np.int8, (ROWS, COLUMNS)), ("scales", np.float32, (ROWS, 2)), ("minima", np.float32, (ROWS, 2))]),
}
SIZES = {form: kind.itemsize for form, kind in RECORDS.items()}  # bytes of a record
PIECE = 2**18  # weights that are packed at a time, so that what lies between the steps stays in a core's cache


@dataclass(frozen=True, slots=True)
class Coded:
    """Weights as a file has them: `codes` [out, in] of one byte each, and `scales` and `minima` [out, in / 16 or in / 32] in float32. None
    for minima that are zero."""

    codes: NDArray[Any]
    scales: NDArray[np.float32]
    minima: NDArray[np.float32] | None


@dataclass(frozen=True, slots=True)
class PackedMatrix:
    """`rows` × `columns` weights as `records` [⌈rows / 4⌉, columns / 32] of a form; where rows are missing at the end, they are zeros."""

    form: int
    rows: int
    columns: int
    records: NDArray[Any]

    @property
    def nbytes(self) -> int:
        return self.records.nbytes

    @classmethod
    def of(cls, form: int, rows: int, columns: int, read: Callable[[int, int], Coded]) -> PackedMatrix:
        """Pack `rows` × `columns` weights, several cores at once. `read(begin, end)` gives rows as `Coded`."""
        kind = RECORDS[form]
        groups, blocks = -(-rows // ROWS), columns // COLUMNS
        memory = np.zeros(groups * blocks * kind.itemsize + 64, np.uint8)
        begin = -memory.ctypes.data % 64  # records begin on a cache line
        records = memory[begin : begin + groups * blocks * kind.itemsize].view(kind).reshape(groups, blocks)
        step = max(1, PIECE // (ROWS * columns)) * ROWS

        def fill(first: int) -> None:
            last = min(rows, first + step)
            with np.errstate(all="ignore"):  # a damaged scale is no number: the probe at load finds what comes of it
                _write(form, records[first // ROWS : -(-last // ROWS)], read(first, last))

        with ThreadPoolExecutor() as pool:
            list(pool.map(fill, range(0, rows, step)))
        return cls(form, rows, columns, records)

    def values(self) -> NDArray[np.float32]:
        """The weights [rows, columns]."""
        codes, scales = self.records["codes"], self.records["scales"]
        if self.form == NIBBLES:
            codes = np.concatenate([codes & 15, codes >> 4], -1)
        per_half = scales[..., None] if scales.ndim == 3 else scales
        values = per_half[..., None] * codes.reshape(*per_half.shape, -1).astype(np.float32)
        if self.form != BYTES:
            minima = self.records["minima"]
            values += (minima[..., None] if minima.ndim == 3 else minima)[..., None]
        grouped = values.reshape(*codes.shape[:2], ROWS, COLUMNS).swapaxes(1, 2)
        return grouped.reshape(-1, self.columns)[: self.rows]


def _write(form: int, records: NDArray[Any], coded: Coded) -> None:
    """Write rows, whose last group may be short, into records [groups, blocks]."""
    rows, blocks = len(coded.codes), records.shape[1]
    codes = coded.codes.reshape(rows, blocks, COLUMNS)
    if form == NIBBLES:
        codes = codes[..., :16] | codes[..., 16:] << np.uint8(4)
    _place(records["codes"], codes)
    halves = records["scales"].ndim == 4
    for name, numbers in (("scales", coded.scales), ("minima", coded.minima)):
        if numbers is not None:
            each = numbers.reshape(rows, blocks, -1)
            _place(records[name], np.broadcast_to(each, (rows, blocks, 2)) if halves else each[..., 0])


def _place(field: NDArray[Any], numbers: NDArray[Any]) -> None:
    """Rows [rows, blocks, …] into a field [groups, blocks, 4, …]."""
    whole = len(numbers) // ROWS
    field[:whole] = numbers[: whole * ROWS].reshape(whole, ROWS, *numbers.shape[1:]).swapaxes(1, 2)
    for row in range(whole * ROWS, len(numbers)):
        field[whole, :, row % ROWS] = numbers[row]
