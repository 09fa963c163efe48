"""A pass of one token in each of many contexts, made of the parts of the compiled passes.

Import it by `BatchedWriter` alone, once machine code is loaded: before that numba would compile these parts
again. They are called with the types that they have there, so nothing is added to the machine code.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from omnidemo.backends.call_layout import Array, Cache, Model, Whole, Workers
from omnidemo.backends.kernels.attention_kernel import layer_of
from omnidemo.backends.kernels.forward import (
    DOWN,
    EACH_LAYER,
    GATE,
    MIX,
    QUERY,
    run_attention,
    run_rows,
)
from omnidemo.backends.kernels.integer.products import WIDTH as BLOCK_WIDTH
from omnidemo.backends.kernels.layers import (
    COUNT,
    GATED,
    PRODUCT,
    ROW_STATS,
    add_normed,
    look_up,
    norm_heads,
    store,
)
from omnidemo.backends.kernels.rows_kernel import FAST, int64
from omnidemo.backends.packed_forms import COLUMNS


@njit(fastmath=FAST, error_model="numpy", nogil=True)
def step(
    workers: Workers, model: Model, caches: int, each: int, slots: Whole, places: Whole, ids: Whole,
    logits: Array, stats: Array
) -> None:  # fmt: skip
    """Read `ids` [T], each at its place in the cache of its slot, and write logits [T, V] and their `stats`.
    `caches`: where the first cache begins; `each`: bytes of one. They are as that of the `model`, which is
    not used."""
    queue, _, _ = workers
    kept, matrices, norms, last, bias, of_heads, cos, sin, eps = model
    count, layers, groups, dim = len(ids), len(norms), kept.heads, kept.dim
    width, inner = len(last), matrices[GATE, COUNT]
    x, y = np.empty((count, width), np.float32), np.zeros((count, width), np.float32)
    wide = np.empty((count, bias.shape[1]), np.float32)
    mixed = np.empty((count, bias.shape[1] - 2 * groups * dim), np.float32)
    gated = np.empty((count, inner), np.float32)
    quantized = np.empty((count, max(width, mixed.shape[1], inner) // COLUMNS * BLOCK_WIDTH), np.float32)
    for row in range(count):
        look_up(matrices[EACH_LAYER * layers + 1], ids[row], x[row])
    for layer in range(layers):
        own = matrices[EACH_LAYER * layer : EACH_LAYER * (layer + 1)]
        add_normed(x, y, norms[layer, 0], eps, y)
        run_rows(workers, PRODUCT, own[QUERY:MIX], y, quantized, wide)
        wide += bias[layer]
        if of_heads.shape[1]:
            heads = mixed.shape[1] // dim
            norm_heads(wide, int64(0), heads, of_heads[layer], int64(0))
            norm_heads(wide, heads, heads + groups, of_heads[layer], int64(1))
        for row in range(count):
            whole = Cache(caches + slots[row] * each, kept.number, groups, kept.capacity, dim)
            cache, one = layer_of(whole, layer), slice(row, row + 1)
            store(wide[one], places[row], cache, cos, sin, int64(0), groups)
            run_attention(queue, wide[one], places[row], cache, cos, sin, mixed[one])
        run_rows(workers, PRODUCT, own[MIX:GATE], mixed, quantized, y)
        add_normed(x, y, norms[layer, 1], eps, y)
        run_rows(workers, GATED, own[GATE:DOWN], y, quantized, gated)
        run_rows(workers, PRODUCT, own[DOWN:], gated, quantized, y)
    add_normed(x, y, last, eps, y)
    run_rows(workers, PRODUCT, matrices[EACH_LAYER * layers : EACH_LAYER * layers + 1], y, quantized, logits)
    stats[:, 3] = 1.0
    run_rows(workers, ROW_STATS, matrices[:0], logits, logits, stats)
