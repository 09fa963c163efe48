"""`decoding/methods/ngram_residual.py` in compiled code: the token that replaces a rejected slot, by
rejection sampling."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from omnidemo.backends.call_layout import (
    UNFINISHED,
    Array,
    Choice,
    Numbers,
    Rule,
    Scores,
    Side,
    Whole,
    Words,
    Workers,
)
from omnidemo.backends.kernels import examples
from omnidemo.backends.kernels.draft import find, follow, masked_logits
from omnidemo.backends.kernels.filters_kernel import filtered
from omnidemo.backends.kernels.forward import run_pass
from omnidemo.backends.kernels.outlined import outlined
from omnidemo.backends.kernels.rows_kernel import BLOCK, append, block_sums, compiled, int64, inverse_cdf_by
from omnidemo.vocabulary.trie_table import CHILD, SIBLING, TOKEN

SPARE = 48  # uniform numbers that a correction may use
ROUNDING = 1e-6  # as in `row_ops`


class Walk(NamedTuple):
    """The draws of a rejected slot: tokens [n] and their distributions [n, D]."""

    tokens: Whole
    probs: Array


class Reader(NamedTuple):
    """The drafter of a correction. `side.start` is the position of the slot's first token; `row` [1, D] are
    the logits of the newest token read."""

    workers: Workers
    side: Side
    rule: Rule
    choice: Choice
    row: Array


@compiled
def correct(
    probs: Array, sums: Numbers, limit: int, walk: Walk, reader: Reader, words: Words, at: int
) -> tuple[int, int, int]:  # fmt: skip
    """`Residual.token`: (a token of the residual of `probs` [T], whose block sums are `sums`, or UNFINISHED
    where that takes too many uniform numbers; numbers used so far; drafter tokens read from the slot's first
    position on)."""
    keys, info, kin, uniforms, spelled = (
        reader.rule.keys,
        reader.rule.info,
        reader.rule.kin,
        reader.choice.uniforms,
        words.spelled,
    )
    before = reader.side.text.seen.ids[0]
    proposed, vocabulary, until, passes = walk.probs[0], walk.probs.shape[1], at + SPARE - limit - 2, 0
    after = np.empty(vocabulary, np.float32)
    while at <= until:
        token = inverse_cdf_by(probs, sums, uniforms[at])
        p, mapped, count, at = np.float64(probs[token]), words.drafters[token], spelled[token, 0], at + 1
        if mapped >= 0:
            if not words.draftable[mapped]:
                return token, at, passes
            path = np.full(max(limit, 1), mapped)
            count = 1
        else:
            if count < 0:
                return UNFINISHED, at, passes
            if count > limit or not is_ngram(spelled[token, 1 : 1 + count], vocabulary, keys, info):
                return token, at, passes
            path = np.empty(limit, np.int64)
            append(path, int64(0), spelled[token, 1 : 1 + count])
        bound = np.float64(proposed[path[0]])  # at least the probability of every path that begins so
        if bound <= 0.0:
            return token, at, passes
        if bound < p and uniforms[at] >= bound / p:
            return token, at + 1, passes
        node, read = find(keys, vocabulary, int64(0), path[0]), int64(0)
        for depth in range(1, count):
            read = probs_after(path[:depth], read, walk, reader, before, after)
            bound *= after[path[depth]]
            node = find(keys, vocabulary, node, path[depth])
            if bound <= 0.0:
                break
        if bound > 0.0 and has_children(node, limit, True, info, kin):
            read = probs_after(path[:count], read, walk, reader, before, after)
            bound *= rest_of(children_mass(after, node, info, kin))
        if bound <= 0.0:
            return token, at, passes + read
        if bound < p:
            at += 1
            if uniforms[at - 1] >= bound / p:
                return token, at, passes + read
        longer, at, read = becomes_longer(path, count, node, limit, read, walk, reader, before, after, at)
        passes += read
        if longer:
            return token, at, passes
    return UNFINISHED, at, passes


@compiled
def becomes_longer(
    path: Whole, count: int, node: int, limit: int, read: int, walk: Walk, reader: Reader, before: int,
    after: Array, at: int
) -> tuple[bool, int, int]:  # fmt: skip
    """`Residual._simulate` from a `node` at the end of a `path` of `count` tokens, of which `read` have been
    read: (whether a longer n-gram comes, uniform numbers used so far, tokens read). `after` [D] is scratch
    space."""
    keys, info, kin, uniforms = reader.rule.keys, reader.rule.info, reader.rule.kin, reader.choice.uniforms
    avoiding, sums = True, np.empty((len(after) + BLOCK - 1) // BLOCK)
    while node > 0 and info[node, 2] <= limit:
        if avoiding and not has_children(node, limit, False, info, kin):
            return False, at, read
        read = probs_after(path[:count], read, walk, reader, before, after)
        if avoiding:
            child = kin[node, CHILD]
            while child > 0:
                if info[child, 0] == 0:
                    after[kin[child, TOKEN]] = 0.0
                child = kin[child, SIBLING]
        block_sums(after, sums)
        if sums[-1] <= 0.0:
            return False, at, read
        drawn, avoiding, at = inverse_cdf_by(after, sums, uniforms[at]), False, at + 1
        node = find(keys, len(after), node, drawn) if after[drawn] > 0.0 else 0
        if node == 0 or info[node, 1] > limit:
            return False, at, read
        if info[node, 0] == 0:
            return True, at, read
        path[count] = drawn
        count += 1
    return False, at, read


@compiled
def probs_after(path: Whole, read: int, walk: Walk, reader: Reader, before: int, probs: Array) -> int:
    """Write the drafter's `probs` [D] after a path, whose first `read` tokens were read last; returns the
    tokens read now. `before`: tokens marked as seen before the slot."""
    count, same = len(path), len(path) < len(walk.tokens)
    for i in range(count):
        same = same and path[i] == walk.tokens[i]
    if same:
        append(probs, int64(0), walk.probs[count])
        return read
    side, row = reader.side, reader.row
    state = np.empty((1, len(side.model.last)), np.float32)
    for token in range(read, count):
        scores = Scores(row, state, np.empty((0, 4), np.float32))
        run_pass(reader.workers, side.model, path[token : token + 1], side.start + token, scores, 1.0)
    masked_logits(row[0], reader.rule.inside, 0, probs)
    follow(side.text.seen, before, path)
    if not filtered(probs, reader.choice.sampling, side.text.seen):  # no walk goes on from here
        probs[:] = 0.0
    return count


@compiled
def has_children(node: int, limit: int, complete: bool, info: Whole, kin: Whole) -> bool:
    """Whether a child of a node is an n-gram (`complete`), or can become a longer one, within the limit."""
    child = kin[node, CHILD] if node > 0 else 0
    while child > 0:
        if (info[child, 0] == 0) == complete and info[child, 1] <= limit:
            return True
        child = kin[child, SIBLING]
    return False


@compiled
def children_mass(probs: Array, node: int, info: Whole, kin: Whole) -> Any:
    """Σ q over the complete children of a node."""
    total, child = 0.0, kin[node, CHILD]
    while child > 0:
        if info[child, 0] == 0:
            total += probs[kin[child, TOKEN]]
        child = kin[child, SIBLING]
    return total


@compiled
def rest_of(mass: float) -> Any:
    """`row_ops.rest_of`: 1 − mass, or 0 where the difference may be rounding."""
    return 1.0 - mass if mass < 1.0 - ROUNDING else 0.0


@compiled
def is_ngram(path: Any, vocabulary: int, keys: Whole, info: Whole) -> bool:
    if len(path) < 2:
        return False
    node = int64(0)
    for token in path:
        node = find(keys, vocabulary, node, int64(token))
        if node == 0:
            return False
    return info[node, 0] == 0


replace = outlined(
    correct, examples.WEIGHT[0], np.zeros(1), 1, Walk(examples.whole(1), examples.WEIGHT),
    Reader(examples.WORKERS, examples.SIDE, examples.RULE, examples.CHOICE, examples.WEIGHT), examples.WORDS,
    0,
)  # fmt: skip
