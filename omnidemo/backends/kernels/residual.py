"""The compiled form of `omnidemo.methods.ngram_residual`: what takes the place of a rejected slot, by rejection."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from omnidemo.backends.kernels.draft import find, follow, masked_logits
from omnidemo.backends.kernels.filters_kernel import Numbers, Sampling, Seen, Whole, distribution
from omnidemo.backends.kernels.forward import Model, forward
from omnidemo.backends.kernels.gemm import Array
from omnidemo.backends.kernels.rows_kernel import BLOCK, append, block_sums, compiled, int64, inverse_cdf_by
from omnidemo.backends.round_layout import UNFINISHED
from omnidemo.backends.thread_pool import Queue
from omnidemo.vocab.trie_table import CHILD, SIBLING, TOKEN

SPARE = 48  # numbers that a correction may need
ROUNDING = 1e-6  # as in `row_ops`

# A rule and a map: `ProposalRule`'s first, inside and alone [D]; its trie's keys, info and kin; the target token of each drafter token
# [D] and the reverse [T], −1 for none; which drafter tokens may be proposed directly [D]; and how target tokens are spelled [T, 1 + n]:
# by how many drafter tokens, and by which; 0 where nobody asked yet (for n-grams somebody has) or none do, −1 where n do not hold them.
Tables = tuple[
    NDArray[np.int32], NDArray[np.int32], NDArray[np.bool_], Whole, Whole, Whole, Whole, Whole, NDArray[np.bool_], NDArray[np.int32]
]  # fmt: skip
# What reads a token and says what follows: the pool's queue, tasks of a product, the drafter, the position of the slot's first token, and
# how it is drawn from: the sampling, what is seen, and how many tokens of it were so before the slot.
Reader = tuple[Queue, int, Model, int, Sampling, Seen, int]


@compiled
def correct(
    probs: Array, sums: Numbers, limit: int, walk: Whole, walk_probs: Array, reader: Reader, tables: Tables, uniforms: Numbers, at: int,
) -> tuple[int, int, int]:  # fmt: skip
    """`Residual.token`: (a token from what is left of the target's `probs` [T], whose blocks add up to `sums`, without what the slot could
    have proposed; UNFINISHED where that takes too many numbers; numbers used so far; drafter tokens that were read, from the slot's first
    position on). `walk` [n] and `walk_probs` [n, D] are the tokens that the slot drew, and their distributions."""
    _, _, _, keys, info, kin, _, drafters, draftable, spelled = tables
    proposed, vocabulary, until, passes = walk_probs[0], walk_probs.shape[1], at + SPARE - limit - 2, 0
    row, after = np.empty((1, vocabulary), np.float32), np.empty(vocabulary, np.float32)
    while at <= until:
        token = inverse_cdf_by(probs, sums, uniforms[at])
        p, mapped, count, at = np.float64(probs[token]), drafters[token], spelled[token, 0], at + 1
        if mapped >= 0:
            if not draftable[mapped]:
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
        bound = np.float64(proposed[path[0]])  # at least as much as the probability of what begins with it
        if bound <= 0.0:
            return token, at, passes
        if bound < p and uniforms[at] >= bound / p:
            return token, at + 1, passes
        node, read = find(keys, vocabulary, int64(0), path[0]), int64(0)
        for depth in range(1, count):
            read = probs_after(path[:depth], read, row, walk, walk_probs, reader, tables, after)
            bound *= after[path[depth]]
            node = find(keys, vocabulary, node, path[depth])
            if bound <= 0.0:
                break
        if bound > 0.0 and has_children(node, limit, True, info, kin):
            read = probs_after(path[:count], read, row, walk, walk_probs, reader, tables, after)
            bound *= rest_of(children_mass(after, node, info, kin))
        if bound <= 0.0:
            return token, at, passes + read
        if bound < p:
            at += 1
            if uniforms[at - 1] >= bound / p:
                return token, at, passes + read
        longer, at, read = becomes_longer(path, count, node, limit, read, row, walk, walk_probs, reader, tables, after, uniforms, at)
        passes += read
        if longer:
            return token, at, passes
    return UNFINISHED, at, passes


@compiled
def becomes_longer(
    path: Whole, count: int, node: int, limit: int, read: int, row: Array, walk: Whole, walk_probs: Array, reader: Reader,
    tables: Tables, after: Array, uniforms: Numbers, at: int,
) -> tuple[bool, int, int]:  # fmt: skip
    """`Residual._simulate` from the end of a `path` of `count` tokens at a `node`, of which `read` have been read: (whether a longer
    n-gram comes, numbers used so far, tokens read)."""
    _, _, _, keys, info, kin, _, _, _, _ = tables
    avoiding, sums = True, np.empty((len(after) + BLOCK - 1) // BLOCK)
    while node > 0 and info[node, 2] <= limit:
        if avoiding and not has_children(node, limit, False, info, kin):
            return False, at, read
        read = probs_after(path[:count], read, row, walk, walk_probs, reader, tables, after)
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
def probs_after(path: Whole, read: int, row: Array, walk: Whole, walk_probs: Array, reader: Reader, tables: Tables, probs: Array) -> int:
    """The drafter's `probs` [D] after a path, of which the first `read` tokens have been read and left the logits `row` [1, D]; how many
    have been read now."""
    count, same = len(path), len(path) < len(walk)
    for i in range(count):
        same = same and path[i] == walk[i]
    if same:
        append(probs, int64(0), walk_probs[count])
        return read
    queue, few, drafter, origin, sampling, seen, before = reader
    state = np.empty((1, len(drafter[3])), np.float32)  # as wide as the last norm
    for token in range(read, count):
        forward(queue, few, int64(1), drafter, path[token : token + 1], origin + token, row, state, 1.0, np.empty((0, 4), np.float32))
    masked_logits(row[0], tables[1], 0, probs)
    follow(seen, before, path)
    if not distribution(probs, sampling, seen):  # no walk goes on from here
        probs[:] = 0.0
    return count


@compiled
def has_children(node: int, limit: int, complete: bool, info: Whole, kin: Whole) -> bool:
    """Whether some child of a node is an n-gram; or else, whether some other one can become one within the limit."""
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
    """`row_ops.rest_of`: what a mass leaves of 1, nothing where that may be rounding."""
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
