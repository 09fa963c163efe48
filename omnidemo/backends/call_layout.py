"""The arguments of compiled code, and the structured results of whole rounds.

Arguments that belong together are named tuples: compiled code takes them apart at the call, so they cost no
more than positions. Sizes: V is a model's row of logits, D that of the drafter, T that of the target, H a
model's hidden size.

Rounds come back in structured arrays, which both sides read by name: `ROUND`, `SLOT` and `DRAW` have the
fields of the named tuples that they are made of. Of each round there is a `RoundNumbers`. Slots, draws and
the drafter tokens of all rounds stand in arrays of their own, one round after another.
"""

from __future__ import annotations

from typing import Any, NamedTuple, get_type_hints

import numpy as np
from numpy.typing import NDArray

from omnidemo.backends.thread_pool import Queue

Array = NDArray[np.float32]
Whole = NDArray[np.int64]
Numbers = NDArray[np.float64]
Limits = NDArray[np.int32]
Flags = NDArray[np.bool_]

SPAN = 64  # positions whose keys are transposed together, see `Cache`
# in place of a token or a count: only the host can compute it; there is none
UNFINISHED, NONE = -2, -1


class RoundNumbers(NamedTuple):
    """A round as it comes back."""

    drawn: int  # draws
    read: int  # drafted tokens that the drafter's cache holds
    passes: int  # drafted tokens that it has read, with those thrown away
    slots: int
    # Those that the target has read, which have a `SlotNumbers` each, and one is behind them; UNFINISHED
    # where nothing was verified, and there are none.
    proposed: int
    accepted: int
    written: int  # the target's own token
    spent: int  # uniform numbers
    began: float  # seconds, as the two below
    had_drafted: float
    ended: float


class SlotNumbers(NamedTuple):
    """A slot of a round, or what stands behind the last of them: there `likely` alone says something."""

    target: int  # what it proposes
    first: int  # its first draw
    end: int  # drafter tokens up to its end
    q: float
    chance: float  # of acceptance, where it was judged
    likely: float  # the target's probability of the token; behind the last, of the one that was written


class DrawNumbers(NamedTuple):
    """A draw: at which place, of which drafter id, and its probability."""

    place: int
    id: int
    prob: float


def _record(numbers: type[tuple[Any, ...]]) -> np.dtype[np.void]:
    kinds = {int: np.int64, float: np.float64}
    return np.dtype([(name, kinds[kind]) for name, kind in get_type_hints(numbers).items()])


ROUND, SLOT, DRAW = _record(RoundNumbers), _record(SlotNumbers), _record(DrawNumbers)


class Made(NamedTuple):
    """What a call writes of all its rounds. Slots lie as the rows of `Scores` do. Of a round's drafter
    tokens there are as many as its last slot's end says, or as were read, if these are more."""

    rounds: Any  # [n] of ROUND
    slots: Any  # of SLOT
    draws: Any  # of DRAW
    tokens: Whole


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
    # [7 · layers + 2, 4]: each layer's matrices, the output layer and the embedding
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


class Text(NamedTuple):
    """The tokens that a model counts as seen, and its end ids."""

    seen: Marks
    ends: Whole


class Side(NamedTuple):
    """A model, its unread ids, the position of the first of them, and its text."""

    model: Model
    unread: Whole
    start: int
    text: Text


class Sampling(NamedTuple):
    """`SamplingParams.numbers`."""

    temperature: float
    top_k: int
    top_p: float
    min_p: float
    penalty: float


class Noise(NamedTuple):
    """Shared noise: the numbers of the target's tokens by position, computed block by block at first use,
    because a filter leaves tokens of few blocks. Empty `known`: noise is not shared."""

    rows: NDArray[np.uint32]  # [n, T or more, whole blocks], the row of a position at its remainder by n
    known: Whole  # [n, blocks], of which position each block is, −1 for none
    place: Whole  # [2], the seed, and the position of the next token


class Choice(NamedTuple):
    """How tokens are chosen: by the shared noise if there is any, else by uniform numbers [n] in order."""

    sampling: Sampling
    uniforms: Numbers
    noise: Noise


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


class Words(NamedTuple):
    """A map between two vocabularies: `VocabularyMap.tables`. `spelled` has the number of drafter tokens that
    spell a target token, and these tokens; 0 where there are none, or nobody has asked (for n-grams somebody
    has), −1 for more than n tokens."""

    targets: Whole  # [D], the target token of each drafter token, −1 for none
    drafters: Whole  # [T], the reverse
    draftable: Flags  # [D], which may be proposed directly
    spelled: Limits  # [T, 1 + n]


class Draft(NamedTuple):
    """The output of a rollout of at most n draws, of which R − 1 tokens may be read."""

    rows: Array  # [R, V], the logits before the draft and after each token read
    states: Array  # [R, H], what the output layer read for them
    # [3, n or more]: place and id of each draw, as in `Rollout`; and the drafted tokens
    notes: Whole
    probs: Numbers  # [n], of the draws
    distributions: Array  # [n, V]
    # [n, 4]: first draw; end (equal to the beginning for an empty slot); trie node there; wasted draw after
    # it, −1 for none
    slots: Whole
    bounds: Numbers  # [n], each slot's Q̄


class Scores(NamedTuple):
    """The output of a pass for its last R rows."""

    logits: Array  # [R, V]
    states: Array  # [R, H], what the output layer read for them
    stats: Array  # [R or 0, 4], the numbers of `RowStats`


class Course(NamedTuple):
    """The limits of a call."""

    rounds: int
    budget: int  # drafter tokens of a round
    overrun: int  # tokens by which a slot may exceed the rest of the budget
    left: int  # target tokens that may be proposed or written in all, one fewer than are wanted
    grows: bool  # whether the host inserts missing n-grams into the trie
