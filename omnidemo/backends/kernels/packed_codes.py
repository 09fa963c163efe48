"""What a record of packed weights holds, as vectors of float32: the instructions that read it."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import binding, ir
from numba.core import cgutils

from omnidemo.backends.kernels import gemm
from omnidemo.backends.kernels.gemm import LANES
from omnidemo.backends.packed_forms import ROWS, Layout

HALF = binding.get_host_cpu_features().get("f16c", False)  # whether the processor reads float16
BYTE, INDEX, REAL = cgutils.voidptr_t, ir.IntType(64), ir.FloatType()
WORDS, REALS = (ir.VectorType(kind, LANES) for kind in (ir.IntType(32), ir.FloatType()))


def codes_of(builder: Any, layout: Layout, record: Any, word: Any, part: int, zero: int) -> list[Any]:
    """What a record has for the codes of a word's columns, less `zero`: float32 vectors, whose lanes are the rows from `part` on."""

    def constant(value: int) -> Any:
        return ir.Constant(WORDS, [value] * LANES)

    def loaded(which: Any) -> Any:
        place = builder.add(builder.mul(which, INDEX(4 * ROWS)), INDEX(4 * part))
        return gemm._load(builder, builder.gep(record, [place]), ir.IntType(32), 4)

    words, bits = loaded(word), layout.bits
    if bits == 32:
        return [builder.bitcast(words, REALS)]
    if layout.upper:  # two words of bytes, which hold every other column
        upper = loaded(builder.add(INDEX(layout.words), builder.udiv(builder.mul(word, INDEX(2 * layout.upper)), INDEX(8))))
        shift = builder.trunc(builder.urem(builder.mul(word, INDEX(2 * layout.upper)), INDEX(8)), ir.IntType(32))
        upper = builder.lshr(upper, everywhere(builder, shift, WORDS))
        low, high = constant(0x0F0F0F0F), constant((2**layout.upper - 1) * 0x10101010)
        even = builder.or_(builder.and_(words, low), builder.and_(builder.shl(upper, constant(4)), high))
        upper = builder.shl(upper, constant(4 - layout.upper))
        odd = builder.or_(builder.and_(builder.lshr(words, constant(4)), low), builder.and_(upper, high))
        places = [((even, odd)[column % 2], column // 2 * 8) for column in range(8)]
    else:
        places = [(words, column * bits) for column in range(layout.each)]

    def decoded(words: Any, at: int) -> Any:
        """The bits of a number 2ⁿ + code, of which 2ⁿ is taken: no instruction for what a shift would take in most places."""
        if at + bits > 23:
            words, at = builder.lshr(words, constant(16)), at - 16
        words = builder.or_(builder.and_(words, constant((2**bits - 1) << at)), constant((150 - at) << 23))
        return builder.fsub(builder.bitcast(words, REALS), ir.Constant(REALS, [2.0 ** (23 - at) + zero] * LANES))

    return [decoded(*place) for place in places]


def number_of(builder: Any, layout: Layout, record: Any, which: Any, part: int) -> Any:
    """A scale or minimum of as many rows as a vector has lanes, in float32."""
    which = INDEX(which) if isinstance(which, int) else which
    size = 2 if layout.number is np.float16 else 4
    place = builder.add(builder.mul(which, INDEX(size * ROWS)), INDEX(layout.size - layout.record["numbers"].itemsize + size * part))
    place = builder.gep(record, [place])
    if size == 4:
        return gemm._load(builder, place, REAL, 4)
    bits = gemm._load(builder, place, ir.IntType(16), 2)
    if HALF:
        return builder.fpext(builder.bitcast(bits, ir.VectorType(ir.HalfType(), LANES)), REALS)
    # Shifted to where float32 has them, its bits are 2⁻¹¹² times the number, but for infinities and what is no number.
    wide = builder.zext(bits, WORDS)
    sign = builder.and_(builder.shl(wide, ir.Constant(WORDS, [16] * LANES)), ir.Constant(WORDS, [0x80000000] * LANES))
    rest = builder.and_(builder.shl(wide, ir.Constant(WORDS, [13] * LANES)), ir.Constant(WORDS, [0x0FFFE000] * LANES))
    rest = builder.fmul(builder.bitcast(rest, REALS), ir.Constant(REALS, [2.0**112] * LANES))
    return builder.bitcast(builder.or_(sign, builder.bitcast(rest, WORDS)), REALS)


def spread(builder: Any, place: Any) -> Any:
    """A float32 in all lanes."""
    return everywhere(builder, builder.load(builder.bitcast(place, REAL.as_pointer()), align=4), REALS)


def everywhere(builder: Any, value: Any, kind: Any) -> Any:
    first = builder.insert_element(ir.Constant(kind, ir.Undefined), value, ir.IntType(32)(0))
    return builder.shuffle_vector(first, ir.Constant(kind, ir.Undefined), ir.Constant(WORDS, [0] * LANES))
