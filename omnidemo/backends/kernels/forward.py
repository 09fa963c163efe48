"""A forward pass of a few rows over weights of any format, shared by threads.

It is one call: with a call for each step, a small model spends as long between its products as in them.
"""

from __future__ import annotations

import numpy as np
from numba import carray, njit

from omnidemo.backends.call_layout import Array, Cache, Model, Scores, Whole, Workers
from omnidemo.backends.kernels import examples
from omnidemo.backends.kernels.attention_kernel import PART, join, layer_of, write
from omnidemo.backends.kernels.integer.products import WIDTH as BLOCK_WIDTH
from omnidemo.backends.kernels.integer.products import quantize_rows
from omnidemo.backends.kernels.layers import (
    ATTENTION,
    BIAS,
    BLOCK,
    CACHE,
    CAPACITY,
    COS,
    COUNT,
    DIM,
    EACH,
    FORM,
    GATED,
    GROUPS,
    HEADS,
    KIND,
    MATRICES,
    NORMS,
    NUMBER,
    OUT,
    PARTS,
    PRODUCT,
    PROJECTIONS,
    QUANTIZED,
    QUERIES,
    ROW_STATS,
    ROWS,
    SIN,
    START,
    SUMS,
    WIDE,
    WIDTH,
    K,
    N,
    X,
    add_normed,
    do_task,
    look_up,
    norm_heads,
    queries_of,
    store,
)
from omnidemo.backends.kernels.outlined import outlined
from omnidemo.backends.kernels.rows_kernel import FAST, append, compiled, int64
from omnidemo.backends.kernels.work_queue import add, look, next_task, offer, pointer, sched_yield
from omnidemo.backends.packed_forms import BFLOAT16, COLUMNS
from omnidemo.backends.thread_pool import (
    AWAKE,
    BUSY,
    DONE,
    SPINS_BEFORE_SLEEP,
    SPINS_BEFORE_YIELD,
    TASKS,
    Queue,
)
from omnidemo.backends.thread_pool import SIZE as LENGTH

WORTH_SHARING = 60_000  # multiplications of attention that take longer than waking a thread
# A layer's matrices in the table: queries, keys and values [n, H], out [H, heads · D], gate and up [inner,
# H], down [H, inner].
QUERY, MIX, GATE, DOWN, EACH_LAYER = 0, 3, 4, 6, 7


@njit(cache=True, fastmath=FAST, error_model="numpy", nogil=True)
def forward(
    workers: Workers, model: Model, ids: Whole, start: int, scores: Scores, temperature: float
) -> None:
    """Read `ids` [T] at positions start… into the cache of the `model`, and write the `scores` of the last
    rows, with their `stats` at the `temperature`."""
    logits, states, stats = scores
    unread, chunk = len(ids) - len(logits), workers.chunk
    for begin in range(0, len(ids), chunk):
        end = min(begin + chunk, len(ids))
        shown, after = max(0, begin - unread), max(0, end - unread)
        read(workers, model, ids[begin:end], start + begin, logits[shown:after], states[shown:after])
    if len(stats):
        stats[:, 3] = 1.0 / temperature
        run_rows(workers, ROW_STATS, model.matrices[:0], logits, logits, stats)


@compiled
def read(workers: Workers, model: Model, ids: Whole, start: int, logits: Array, states: Array) -> None:
    """`forward` of one chunk."""
    queue, tasks, _ = workers
    kept, matrices, norms, last, bias, of_heads, cos, sin, eps = model
    count, rows, layers, width, inner = len(ids), len(logits), len(norms), len(last), matrices[GATE, COUNT]
    x, y = np.empty((count, width), np.float32), np.zeros((count, width), np.float32)
    wide = np.empty((count, bias.shape[1]), np.float32)
    mixed = np.empty((count, bias.shape[1] - 2 * kept.heads * kept.dim), np.float32)
    gated = np.empty((count, inner), np.float32)
    quantized = np.empty((count, max(width, mixed.shape[1], inner) // COLUMNS * BLOCK_WIDTH), np.float32)
    # Only where each thread gets equally many key heads: two threads take as long for three heads as for
    # four.
    by_heads = count <= BLOCK and 1 < tasks <= TASKS * kept.heads and kept.heads % max(1, tasks // TASKS) == 0
    for row in range(count):
        look_up(matrices[EACH_LAYER * layers + 1], ids[row], x[row])
    for layer in range(layers):
        own, cache = matrices[EACH_LAYER * layer : EACH_LAYER * (layer + 1)], layer_of(kept, layer)
        add_normed(x, y, norms[layer, 0], eps, y)
        if by_heads:
            norms_of_heads = of_heads[layer]
            run_heads(
                queue,
                own[QUERY:MIX],
                y,
                quantized,
                bias[layer],
                norms_of_heads,
                wide,
                start,
                cache,
                cos,
                sin,
                mixed,
            )
        else:
            run_rows(workers, PRODUCT, own[QUERY:MIX], y, quantized, wide)
            wide += bias[layer]
            if of_heads.shape[1]:
                heads = mixed.shape[1] // kept.dim
                norm_heads(wide, int64(0), heads, of_heads[layer], int64(0))
                norm_heads(wide, heads, heads + kept.heads, of_heads[layer], int64(1))
            store(wide, start, cache, cos, sin, int64(0), kept.heads)
            run_attention(queue, wide, start, cache, cos, sin, mixed)
        run_rows(workers, PRODUCT, own[MIX:GATE], mixed, quantized, y)
        add_normed(x, y, norms[layer, 1], eps, y)
        run_rows(workers, GATED, own[GATE:DOWN], y, quantized, gated)
        run_rows(workers, PRODUCT, own[DOWN:], gated, quantized, y)
    add_normed(x, y, last, eps, y)
    for row in range(rows):
        append(states[row], int64(0), y[count - rows + row])
    run_rows(
        workers, PRODUCT, matrices[EACH_LAYER * layers : EACH_LAYER * layers + 1], states, quantized, logits
    )


@compiled
def run_rows(workers: Workers, kind: int, matrices: Whole, x: Array, quantized: Array, out: Array) -> None:
    """PRODUCT: out = x · Wᵀ, where W is the stack of `matrices`. GATED: `matrices` are gate and up, and out =
    silu(x · gateᵀ) · (x · upᵀ). ROW_STATS: `out` are the stats of logits x, one task a row. `quantized` has
    room for x in whole numbers."""
    queue, tasks, _ = workers
    n = out.shape[1] if kind != ROW_STATS else len(x)
    each = max(16, (n + tasks - 1) // tasks + 15 & -16) if kind != ROW_STATS else 1
    queue[KIND], queue[ROWS], queue[X], queue[OUT] = kind, len(x), x.ctypes.data, out.ctypes.data
    queue[PARTS], queue[MATRICES] = matrices.ctypes.data, len(matrices)
    queue[N], queue[K], queue[EACH] = n, x.shape[1], each
    quantize(queue, matrices, x, quantized)
    run_all(queue, (n + each - 1) // each)


@compiled
def quantize(queue: Queue, matrices: Whole, x: Array, out: Array) -> None:
    """Quantize the input of a product, once for all its matrices, if one of them is packed."""
    for which in range(len(matrices)):
        if matrices[which, FORM] > BFLOAT16:
            queue[QUANTIZED] = out.ctypes.data
            quantize_rows(x, int64(out.ctypes.data))
            return


@compiled
def run_attention(
    queue: Queue, wide: Array, start: int, cache: Cache, cos: Array, sin: Array, out: Array
) -> None:
    """Attention of the queries in `wide` [T, (H + 2 Hkv) · D], not rotated yet, to the cache; `out` is [T, H
    · D]. A task is one key head with BLOCK rows, or with fewer rows and one part of the positions."""
    rows, groups, dim = len(wide), cache.heads, cache.dim
    heads, blocks = out.shape[1] // dim, (rows + BLOCK - 1) // BLOCK
    parts = (start + rows + PART - 1) // PART if blocks == 1 else 1
    sums = np.empty((groups, parts, rows * heads // groups if parts > 1 else 0, dim + 2), np.float32)
    queue[KIND], queue[ROWS], queue[X], queue[OUT] = ATTENTION, rows, wide.ctypes.data, out.ctypes.data
    queue[SUMS] = sums.ctypes.data if parts > 1 else 0
    describe(queue, heads, cache, start, cos, sin)
    if rows * out.shape[1] * (start + rows) < WORTH_SHARING:
        take_tasks(queue.ctypes.data, blocks * groups * parts)
    else:
        run_all(queue, blocks * groups * parts)
    for group in range(groups if parts > 1 else 0):
        for part in range(1, parts):
            join(sums[group, 0], sums[group, part], dim)
        write(sums[group, 0], queries_of(queue, int64(0), rows, group), out)


@compiled
def run_heads(
    queue: Queue, matrices: Whole, x: Array, quantized: Array, bias: Array, norms: Array, wide: Array,
    start: int, cache: Cache, cos: Array, sin: Array, out: Array,
) -> None:  # fmt: skip
    """Queries, keys and values of a few rows x [T, H], and their attention. A task is one key head from its
    product to its attention, so that no data crosses between cores. `wide` [T, (H + 2 Hkv) · D] is scratch
    space."""
    queue[KIND], queue[ROWS], queue[X], queue[OUT] = HEADS, len(x), x.ctypes.data, out.ctypes.data
    queue[WIDE], queue[PROJECTIONS], queue[WIDTH] = wide.ctypes.data, matrices.ctypes.data, x.shape[1]
    queue[BIAS], queue[NORMS] = bias.ctypes.data, norms.ctypes.data if len(norms) else 0
    describe(queue, out.shape[1] // cache.dim, cache, start, cos, sin)
    quantize(queue, matrices, x, quantized)
    run_all(queue, cache.heads)


@compiled
def describe(queue: Queue, heads: int, cache: Cache, start: int, cos: Array, sin: Array) -> None:
    """Write the fields that all attention tasks read."""
    queue[CACHE], queue[NUMBER], queue[QUERIES] = cache.address, cache.number, heads
    queue[GROUPS], queue[CAPACITY] = cache.heads, cache.capacity
    queue[DIM], queue[START], queue[COS], queue[SIN] = cache.dim, start, cos.ctypes.data, sin.ctypes.data


@compiled
def run_all(queue: Queue, tasks: int) -> None:
    """Do the tasks that have been written, together with the threads of the queue."""
    offer(queue, tasks)
    take_tasks(queue.ctypes.data, 0)
    looks = 0
    while look(queue, DONE) < tasks:
        looks += 1
        if looks > SPINS_BEFORE_SLEEP:
            sched_yield()  # the thread with the last task may be waiting for this core


@njit(cache=True, nogil=True)
def run_worker(queue: Queue) -> None:
    """Take tasks until no pass is under way and none has come for a while. Within a pass a thread waits for
    the next step: a task of a long prompt takes longer than that while."""
    add(queue, AWAKE, 1)
    idle = 0
    while idle < SPINS_BEFORE_SLEEP or look(queue, BUSY):
        idle = 0 if take_tasks(queue.ctypes.data, 0) else idle + 1
        if idle > SPINS_BEFORE_YIELD:
            sched_yield()
    add(queue, AWAKE, -1)


@compiled
def run_tasks(address: int, alone: int) -> int:
    """Do the tasks of the queue at an address until there are none; whether there were any. `alone`: do this
    many, which no other thread sees."""
    # an address, because all threads would count the references of an array
    queue, any_done = carray(pointer(address), LENGTH, np.int64), 0
    for task in range(alone):
        do_task(queue, task)
    while not alone:
        task = next_task(queue)
        if task < 0:
            break
        do_task(queue, task)
        add(queue, DONE, 1)
        any_done = 1
    return any_done


take_tasks = outlined(run_tasks, 0, 0)
run_pass = outlined(forward, examples.WORKERS, examples.MODEL, examples.whole(1), 0, examples.SCORES, 1.0)
