"""Dot products of quants and int8 activations, by instruction set.

All sets give the same sums, because integers are exact unless they overflow. Quants are unsigned, `bits`
wide; activations are −127 … 127. Each lane of a vector has a word of four quants; a word of four activations
is broadcast to all lanes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from llvmlite import ir
from numba.core import cgutils

from omnidemo.backends.packed_forms import COLUMNS, Layout

I32 = ir.IntType(32)


def lanes_of(kind: Any, lanes: int) -> Any:
    return ir.VectorType(kind, lanes)


def constant(kind: Any, value: float) -> Any:
    return ir.Constant(kind, [value] * kind.count)


def spread(builder: Any, value: Any, lanes: int) -> Any:
    """Broadcast a number to all lanes."""
    kind = lanes_of(value.type, lanes)
    first = builder.insert_element(ir.Constant(kind, ir.Undefined), value, I32(0))
    return builder.shuffle_vector(
        first, ir.Constant(kind, ir.Undefined), ir.Constant(lanes_of(I32, lanes), [0] * lanes)
    )


def call(builder: Any, name: str, result: Any, *given: Any) -> Any:
    kind = ir.FunctionType(result, [one.type for one in given])
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), given)


class Sums:
    """The sums of some columns in one vector. `add` adds four columns, `value` is the sum."""

    centred = False  # whether they are of the quant minus the layout's zero

    def __init__(self, builder: Any, lanes: int, layout: Layout) -> None:
        self.builder, self.bits = builder, layout.bits
        self.words = lanes_of(I32, lanes)
        self.bytes, self.pairs = lanes_of(ir.IntType(8), 4 * lanes), lanes_of(ir.IntType(16), 2 * lanes)
        self.total: Any = ir.Constant(self.words, None)

    def add(self, quants: Any, x: Any) -> None:
        """Add quant · activation of the columns of a word."""
        raise NotImplementedError

    def value(self) -> Any:
        return self.total


class Dots(Sums):
    """One instruction: four products of an unsigned and a signed byte, added to a word."""

    def add(self, quants: Any, x: Any) -> None:
        name = f"llvm.x86.avx512.vpdpbusd.{32 * self.words.count}"
        self.total = call(self.builder, name, self.words, self.total, quants, x)


class Pairs(Sums):
    """Sums of two products in 16 bits, as many as fit, then in words.

    Two products of quants of 4 bits are at most 2 · 15 · 127 = 3,810, and eight such pairs 30,480; of 5 bits
    four pairs are 31,496, of 6 bits two are 32,004: all below 32,768. One pair of unsigned 8-bit quants may
    exceed that, so |quant − 128| is multiplied with activations that take its sign: 2 · 128 · 127 = 32,512.
    """

    def __init__(self, builder: Any, lanes: int, layout: Layout) -> None:
        super().__init__(builder, lanes, layout)
        self.centred = layout.bits == 8
        most = 2 * 127 * (128 if self.centred else 2**layout.bits - 1)
        self.room, self.held, self.short = 32767 // most, 0, None

    def add(self, quants: Any, x: Any) -> None:
        builder = self.builder
        quants, x = (builder.bitcast(one, self.bytes) for one in (quants, x))
        if self.centred:
            quants = builder.xor(quants, constant(self.bytes, -128))
            x = call(builder, "llvm.x86.avx2.psign.b", self.bytes, x, quants)
            quants = call(builder, f"llvm.abs.v{self.bytes.count}i8", self.bytes, quants, ir.IntType(1)(0))
        more = call(builder, "llvm.x86.avx2.pmadd.ub.sw", self.pairs, quants, x)
        self.short = more if self.short is None else builder.add(self.short, more)
        self.held += 1
        if self.held == self.room:
            self._widen()

    def _widen(self) -> None:
        ones = constant(self.pairs, 1)
        more = call(self.builder, "llvm.x86.avx2.pmadd.wd", self.words, self.short, ones)
        self.total, self.short, self.held = self.builder.add(self.total, more), None, 0

    def value(self) -> Any:
        if self.held:
            self._widen()
        return self.total


class ScalarSums(Sums):
    """For any processor: one of four columns after another."""

    def add(self, quants: Any, x: Any) -> None:
        builder = self.builder
        for byte in range(4):
            code = builder.and_(
                builder.lshr(quants, constant(self.words, 8 * byte)), constant(self.words, 255)
            )
            number = builder.shl(x, constant(self.words, 24 - 8 * byte))
            number = builder.ashr(number, constant(self.words, 24))
            self.total = builder.add(self.total, builder.mul(code, number))


class Instructions(NamedTuple):
    """One instruction set: the features that it needs, lanes of a vector, rows of x whose sums fit into the
    registers, and the class of sums."""

    name: str
    needs: tuple[str, ...]
    lanes: int
    most: int
    sums: type[Sums]

    @property
    def halves(self) -> bool:
        """Whether the processor converts float16."""
        return "f16c" in self.needs


# the fastest first; the last one needs nothing
SETS = (
    Instructions("avx512-vnni", ("avx512f", "avx512bw", "avx512vnni", "f16c"), 16, 8, Dots),
    Instructions("avx-vnni", ("avx2", "avxvnni", "f16c"), 8, 6, Dots),
    Instructions("avx2", ("avx2", "f16c"), 8, 6, Pairs),
    Instructions("any", (), 8, 4, ScalarSums),
)


def best(has: Callable[[str], bool]) -> Instructions:
    """The fastest set whose needs the processor `has`."""
    return next(one for one in SETS if all(map(has, one.needs)))


def quads(layout: Layout, scale: int) -> range:
    """The groups of four columns that share a scale."""
    each = COLUMNS // layout.scales // 4
    return range(scale * each, (scale + 1) * each)
