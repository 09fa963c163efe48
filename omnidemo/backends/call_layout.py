"""The arguments of compiled code.

Arguments that belong together are named tuples: compiled code takes them apart at the call, so they cost no
more than positions. Sizes: V is a model's row of logits, D that of the drafter, T that of the target, H a
model's hidden size.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from omnidemo.backends.thread_pool import Queue

Array = NDArray[np.float32]
Whole = NDArray[np.int64]
Numbers = NDArray[np.float64]
Limits = NDArray[np.int32]
Flags = NDArray[np.bool_]

SPAN = 64  # positions of transposed keys, see `Cache`
NONE = -1  # no token


class Workers(NamedTuple):
    """Who makes a pass: the queue of the threads' pool, the number of tasks of a product, and the tokens that
    are read at a time."""

    queue: Queue
    tasks: int
    chunk: int


class Cache(NamedTuple):
    """Keys and values [2, heads, capacity, head dim] of a layer, or of all layers in order: their address,
    and bytes of a number, 4 or 2. The keys of SPAN positions are transposed, [head dim, SPAN]; the capacity
    is a multiple of SPAN."""

    address: int
    number: int
    heads: int
    capacity: int
    dim: int


class Model(NamedTuple):
    """A model and one of its caches."""

    cache: Cache  # of all layers
    # [7 · layers + 2, 3]: each layer's matrices, the output layer and the embedding
    matrices: Whole
    norms: Array  # [layers, 2, H], before attention and before the rest
    last: Array  # [H], the norm before the output layer
    bias: Array  # [layers, n] of queries, keys and values; zeros for none
    # [layers, 2 · head dim + 1], the norms of queries and keys, and ε; [layers, 0] for none
    of_heads: Array
    cos: Array  # [positions, head dim]
    sin: Array  # the same; the first half is negative
    eps: float  # ε of the norms


class Marks(NamedTuple):
    """The tokens that the text contains, for the penalty: `Seen.arrays` of `decoding/sampling.py`, which the
    next `Seen.hold` resets. Empty flags without a penalty."""

    there: Flags  # [V]
    ids: Whole  # [1 + V], how many are marked, and which, the newest last


class TargetText(NamedTuple):
    """The tokens that the target counts as seen, and its end ids."""

    seen: Marks
    ends: Whole


class Side(NamedTuple):
    """A model, its unread ids, the position of the first of them, and the tokens that it counts as seen."""

    model: Model
    unread: Whole
    start: int
    seen: Marks


class Sampling(NamedTuple):
    """`SamplingParams.numbers`."""

    temperature: float
    top_k: int
    top_p: float
    min_p: float
    penalty: float


class NoiseBlocks(NamedTuple):
    """Shared Gumbel noise of the target's tokens by position, computed block by block at first use, because
    logits processors leave tokens of few blocks. Empty `known`: there is no shared noise."""

    rows: NDArray[np.uint32]  # [n, T or more, whole blocks], the row of a position at its remainder by n
    known: Whole  # [n, blocks], of which position each block is, −1 for none
    place: Whole  # [2], the seed, and the position of the next token


class Choice(NamedTuple):
    """How tokens are chosen: by the shared noise if there is any, else by uniform numbers [n] in order."""

    sampling: Sampling
    uniforms: Numbers
    noise: NoiseBlocks


class Rule(NamedTuple):
    """A `ProposalRule`, and the arrays of its `TrieTable`."""

    first: Limits  # [D]
    inside: Limits  # [D]
    alone: Flags  # [D]
    keys: Whole
    info: Whole
    kin: Whole


class Stop(NamedTuple):
    """A `StopRule`."""

    cumulative: float
    min_prob: float
    price: float
    segments: Numbers  # [n, 5]


class RolloutOutput(NamedTuple):
    """The output of a rollout of at most n draws, of which R − 1 tokens may be read."""

    rows: Array  # [R, V], the logits before the draft and after each token read
    states: Array  # [R, H], what the output layer read for them
    # [3, n or more]: place and id of each draw, as in `Rollout`; and the drafted tokens
    notes: Whole
    probs: Numbers  # [n], of the draws
    distributions: Array  # [n, V]


class Scores(NamedTuple):
    """The output of a pass for its last R rows."""

    logits: Array  # [R, V]
    states: Array  # [R, H], what the output layer read for them
    stats: Array  # [R or 0, 4], the numbers of `RowStats`
