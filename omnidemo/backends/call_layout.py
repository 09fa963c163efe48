"""What goes into a call of compiled code, and the packed results of whole rounds.

Arguments that belong together are named tuples: compiled code takes them apart when it is called, so they
cost no more than as many positions. Sizes: V is a model's row of logits, D that of the drafter, T that of the
target, H a model's hidden size.

Rounds come back as an array of whole numbers and one of floats, of one round after another, with nothing in
between. The whole numbers of a round are its header (`HEADER` of them, see below); then the proposals; of
each of their slots its first draw, and the number of drafter tokens up to its end; the drafter tokens
themselves, of which there are as many as the last slot's end says, or as were read, if these are more; and
where only the host can finish the round, the draws' places and ids. The floats are three times, at which the
round began, had been drafted and ended; the acceptance probabilities of the proposals, as far as they were
judged; the probabilities of the proposals, and that of the token written; each slot's q; and the
probabilities of the draws.
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

SPAN = 64  # positions of a cache whose keys lie turned, see `Cache`
DRAWN, READ, PASSES, SLOTS, PROPOSED, ACCEPTED, WRITTEN, USED, SPENT = range(9)
# Draws; tokens read that are left, and all that were; slots; proposals, those accepted, the token written;
# and uniform numbers used before and in the round.
HEADER = 9
# instead of a token or a number of them: only the host can compute it; there is none
UNFINISHED, NONE = -2, -1


class Workers(NamedTuple):
    """Who makes a pass: the queue of the threads' pool, into about how many tasks a product is split, and how
    many tokens are read at a time."""

    queue: Queue
    tasks: int
    chunk: int


class Cache(NamedTuple):
    """Keys and values [2, heads, capacity, head dim], of a layer or of all layers one after the other: where
    they begin, and how many bytes a number has, 4 or 2. The keys of SPAN positions are turned, [head dim,
    SPAN], and the capacity is a multiple of SPAN."""

    address: int
    number: int
    heads: int
    capacity: int
    dim: int


class Model(NamedTuple):
    """A model and one of its caches."""

    cache: Cache  # of all layers
    # [7 · layers + 2, 4]: the table of each layer's matrices, of the output layer and of the embedding
    matrices: Whole
    norms: Array  # [layers, 2, H], before attention and before the rest
    last: Array  # [H], the norm before the output layer
    bias: Array  # [layers, n] of queries, keys and values; zeros for none
    # [layers, 2 · head dim + 1], the norms of queries and keys and what they add; [layers, 0] for none
    of_heads: Array
    cos: Array  # [positions, head dim]
    sin: Array  # the same; the first half is negative
    eps: float  # what the norms add


class Marks(NamedTuple):
    """What the text contains, for the penalty: `Seen.arrays` of `decoding/sampling.py`, which its next `hold`
    puts right again. No flags where nobody asks."""

    there: Flags  # [V]
    ids: Whole  # [1 + V], how many are marked, and which, the newest last


class Text(NamedTuple):
    """What a model counts as seen in the text, and its ids after which nothing follows."""

    seen: Marks
    ends: Whole


class Side(NamedTuple):
    """A model, the ids that it has not read, the position of the first of them, and what the text is to
    it."""

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
    """The numbers of the target's tokens by position. A block of them is made when it is first asked for:
    what a filter leaves of a row is in a few. Without `known` noise is not shared."""

    rows: NDArray[np.uint32]  # [n, T or more, whole blocks], the row of a position at its remainder by n
    known: Whole  # [n, blocks], of which position each block is, −1 for none
    place: Whole  # [2], the seed, and the position of the next token


class Choice(NamedTuple):
    """How tokens are chosen: by the shared noise where there is some, else by uniform numbers [n] in their
    order."""

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
    """A map between two vocabularies: `VocabularyMap.tables`. How target tokens are spelled: by how many
    drafter tokens, and by which; 0 where nobody asked yet (for n-grams somebody has) or none do, −1 where n
    do not hold them."""

    targets: Whole  # [D], the target token of each drafter token, −1 for none
    drafters: Whole  # [T], the reverse
    draftable: Flags  # [D], which may be proposed directly
    spelled: Limits  # [T, 1 + n]


class Draft(NamedTuple):
    """What a rollout of at most n draws writes, R − 1 tokens of which may be read."""

    rows: Array  # [R, V], the logits before the draft and after each token read
    states: Array  # [R, H], what the output layer read for them
    # [3, n or more]: of each draw its place and id, as in `Rollout`; and the tokens that were drafted
    notes: Whole
    probs: Numbers  # [n], of the draws
    distributions: Array  # [n, V]
    # [n, 4]: first draw; end (the beginning if nothing came of it); node of the trie there; draw in vain
    # after it, or −1
    slots: Whole
    bounds: Numbers  # [n], each slot's Q̄


class Scores(NamedTuple):
    """What a pass writes of its last R rows."""

    logits: Array  # [R, V]
    states: Array  # [R, H], what the output layer read for them
    stats: Array  # [R or 0, 4], the numbers of `RowStats`


class Course(NamedTuple):
    """How far a call may go."""

    rounds: int
    budget: int  # drafter tokens of a round
    overrun: int  # by how many a slot may exceed what is left of the budget
    left: int  # target tokens that may be proposed or written in all, one fewer than are wanted
    grows: bool  # whether the host puts n-grams into the trie that it lacks
