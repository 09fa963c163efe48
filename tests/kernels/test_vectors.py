"""What is written for vectors is numpy's, whatever is left over: products with
weights in float32 and bfloat16, rows of packed ones, and attention to a cache in float32 and float16."""

from __future__ import annotations

from pathlib import Path

from tests.support.narrow import machine_code, run

# As the app calls them, for arguments of the types that it compiles them for.
GEMM = """
import numpy as np
from omnidemo.backends.kernels import gemm

gemm.multiply.disable_compile()
rng = np.random.default_rng(0)
for n, k in ((1, 1), (3, 5), (4, 16), (7, 40), (13, 33), (64, 160)):
    weight = rng.normal(size=(n, k)).astype(np.float32)
    bits = (weight.view(np.uint32) >> 16).astype(np.uint16)
    for given, plain in ((weight, weight), (bits, (bits.astype(np.uint32) << 16).view(np.float32))):
        for rows in (1, 2, 3, 4, 5, 6, 11):
            x, out = rng.normal(size=(rows, k)).astype(np.float32), np.full((rows, n + 3), 7, np.float32)
            gemm.multiply(given, x, out[:, 1 : n + 1])
            assert np.allclose(out[:, 1 : n + 1], x @ plain.T, atol=1e-4), (n, k, rows, given.dtype)
            assert (out[:, 0] == 7).all() and (out[:, n + 1 :] == 7).all(), "it writes nothing beside"
"""

PACKED = """
import numpy as np
from omnidemo.backends.kernels import packed_blocks
from omnidemo.backends.packed_forms import COLUMNS, LAYOUTS
from tests.kernels.test_packed_matrices import random_matrix

packed_blocks.look_up_packed.disable_compile()
for form in LAYOUTS:
    for n, k in ((1, 32), (3, 64), (7, 576), (16, 32), (52, 256)):
        k = -(-k // (COLUMNS * LAYOUTS[form].blocks)) * COLUMNS * LAYOUTS[form].blocks
        matrix, plain = random_matrix(form, n, k)
        rows = packed_blocks.PackedRows(form, matrix.tiles.ctypes.data, n, k // COLUMNS)
        row = np.empty(k, np.float32)
        for which in range(n):
            packed_blocks.look_up_packed(rows, which, row)
            assert np.array_equal(row, plain[which]), "a weight is what it is in float32"
"""

# With the same bits in one part or several, and in a pass of any rows.
ATTENTION = """
import numpy as np
from omnidemo.backends.call_layout import SPAN, Cache
from omnidemo.backends.kernels.attention_kernel import PART, Queries, attend, halved, join, put, write

rng, groups, each, rows = np.random.default_rng(0), 2, 3, 5

def cache_of(kept):
    # as compiled passes have it, written position by position
    _, heads, capacity, dim = kept.shape
    whole = -(-capacity // SPAN) * SPAN
    memory = np.full((2, heads, whole, dim), np.nan, kept.dtype)  # what is not there yet is never used
    cache = Cache(memory.ctypes.data, memory.itemsize, heads, whole, dim)
    for which in (0, 1):
        for head in range(heads):
            for position in range(capacity):
                put(kept[which, head, position].astype(np.float32), cache, which, head, position)
    spans = memory[0].reshape(heads, -1, dim, SPAN).swapaxes(2, 3).reshape(heads, whole, dim)
    assert np.array_equal(spans[:, :capacity], kept[0], equal_nan=True)
    assert np.array_equal(memory[1, :, :capacity], kept[1], equal_nan=True)
    return cache, memory

def attended(wide, who, cache, cos, sin):
    dim, end = cache.dim, who.start + who.first + who.rows
    sums = np.empty((who.rows * who.each, dim + 2), np.float32)
    attend(wide, who, cache, cos, sin, 0, end, sums)
    out = np.zeros((len(wide), wide.shape[1] - 2 * groups * dim), np.float32)
    write(sums, who, out)
    return out

def in_parts(wide, who, cache, cos, sin):
    dim, end = cache.dim, who.start + who.first + who.rows
    parts = np.empty((-(-end // PART), who.rows * who.each, dim + 2), np.float32)
    for part in reversed(range(len(parts))):
        attend(wide, who, cache, cos, sin, part * PART, min(end, (part + 1) * PART), parts[part])
    for part in range(1, len(parts)):
        join(parts[0], parts[part], dim)
    out = np.zeros((len(wide), wide.shape[1] - 2 * groups * dim), np.float32)
    write(parts[0], who, out)
    return out

every = np.arange(2**16, dtype=np.uint16).view(np.float16)
between = np.nextafter(every.astype(np.float32), np.float32(np.inf)) * np.float32(1.0003)
with np.errstate(all="ignore"):
    for numbers in (every.astype(np.float32), between, np.float32([1e30, -1e30, 65519.9, 65520, 1e-9, -0.0])):
        wanted = numbers.astype(np.float16)
        found = np.array([halved(number) for number in numbers]).astype(np.uint16).view(np.float16)
        there = ~np.isnan(wanted)
        assert np.isnan(found[~there]).all()
        assert (found[there].view(np.int16) == wanted[there].view(np.int16)).all()

for dtype, dim, start in (
    (dtype, dim, start)
    for dtype in (np.float32, np.float16)
    for dim in (4, 24, 64, 80)
    for start in (0, 5, PART - 2, 2 * PART + 3)
):
    where = dtype, dim, start
    capacity, half = start + rows + 3, dim // 2
    kept = rng.normal(size=(2, groups, capacity, dim)).astype(dtype)
    kept[:, :, start + rows :] = np.nan
    cache, memory = cache_of(kept)
    angles = rng.normal(size=(capacity, half))
    cos = np.concatenate([np.cos(angles)] * 2, 1).astype(np.float32)
    sin = np.concatenate([-np.sin(angles), np.sin(angles)], 1).astype(np.float32)
    wide = rng.normal(size=(rows, (groups * each + 2 * groups) * dim)).astype(np.float32)
    for group in range(groups):
        who = Queries(0, rows, group * each, each, group, start)
        out = attended(wide, who, cache, cos, sin)
        own = slice(group * each * dim, (group + 1) * each * dim)
        assert (in_parts(wide, who, cache, cos, sin) == out).all(), where
        for row in range(rows):
            end = start + row + 1
            for head in range(group * each, (group + 1) * each):
                part = slice(head * dim, (head + 1) * dim)
                query = wide[row, part]
                query = query * cos[end - 1] + np.concatenate([query[half:], query[:half]]) * sin[end - 1]
                scores = kept[0, group, :end].astype(np.float64) @ query / np.sqrt(dim)
                weights = np.exp(scores - scores.max())
                wanted = weights @ kept[1, group, :end].astype(np.float64) / weights.sum()
                assert np.allclose(out[row, part], wanted, atol=2e-5), where
            who = Queries(0, 1, group * each, each, group, start + row)
            alone = attended(wide[row : row + 1], who, cache, cos, sin)
            assert (alone[0, own] == out[row, own]).all(), where
"""


def test_kernels(tmp_path: Path) -> None:
    """For the vectors of this processor; `make test-narrow` checks the narrow ones of one with AVX-512."""
    run({"gemm": GEMM, "packed": PACKED, "attention": ATTENTION}, machine_code(tmp_path))
