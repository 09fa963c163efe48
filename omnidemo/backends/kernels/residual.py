"""The compiled form of `omnidemo.methods.ngram_residual`: what takes the place of a rejected slot, by rejection."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from omnidemo.backends.kernels.draft import Numbers, Whole, find, masked
from omnidemo.backends.kernels.forward import Model, forward
from omnidemo.backends.kernels.gemm import Array
from omnidemo.backends.kernels.rows_kernel import compiled, place, place_by, top, warm
from omnidemo.backends.round_layout import HOST
from omnidemo.backends.thread_pool import Board
from omnidemo.vocab.trie_table import CHILD, SIBLING, TOKEN

SPARE = 48  # numbers that a correction may need

# A rule and a map: `ProposalRule`'s first, inside and alone [D]; its trie's keys, info and kin; the target token of each drafter token
# [D] and the reverse [T], −1 for none; which drafter tokens may be proposed directly [D]; and how target tokens are spelled [T, 1 + n]:
# by how many drafter tokens, and by which; 0 where nobody asked yet, so that it can be no n-gram, and −1 where n do not hold them.
Tables = tuple[
    NDArray[np.int32], NDArray[np.int32], NDArray[np.bool_], Whole, Whole, Whole, Whole, Whole, NDArray[np.bool_], NDArray[np.int32]
]  # fmt: skip
# What reads a token: the crew's board, pieces of a product, the drafter, and the position of the slot's first token.
Reader = tuple[Board, int, Model, int]


@compiled
def correct(
    law: Array, sums: Numbers, limit: int, walk: Whole, walked: Array, reader: Reader, heat: float, tables: Tables, uniforms: Numbers,
    at: int,
) -> tuple[int, int, int]:  # fmt: skip
    """`Residual.token`: (a token from what is left of the target's `law` [T], whose blocks add up to `sums`, without what the slot could
    have proposed; HOST where that takes too many numbers; numbers used so far; drafter tokens that were read, from the slot's first
    position on). `walk` [n] and `walked` [n, D] are the tokens that the slot drew, and their laws."""
    _, _, _, keys, info, kin, _, drafters, draftable, spelled = tables
    proposed, vocabulary, until, passes = walked[0], walked.shape[1], at + SPARE - limit - 2, 0
    row, after = np.empty((1, vocabulary), np.float32), np.empty(vocabulary, np.float32)
    while at <= until:
        token = place_by(law, sums, uniforms[at])
        p, piece, count, at = np.float64(law[token]), drafters[token], spelled[token, 0], at + 1
        if piece >= 0:
            if not draftable[piece]:
                return token, at, passes
            path = np.full(max(limit, 1), piece)
            count = 1
        else:
            if count < 0:
                return HOST, at, passes
            if count > limit or not is_ngram(spelled[token, 1 : 1 + count], vocabulary, keys, info):
                return token, at, passes
            path = np.empty(limit, np.int64)
            path[:count] = spelled[token, 1 : 1 + count]
        bound = np.float64(proposed[path[0]])  # at least as much as the probability of what begins with it
        if bound <= 0.0:
            return token, at, passes
        if bound < p and uniforms[at] >= bound / p:
            return token, at + 1, passes
        node, read = find(keys, vocabulary, 0, path[0]), 0
        for depth in range(1, count):
            read = law_after(path[:depth], read, row, walk, walked, reader, heat, tables, after)
            bound *= after[path[depth]]
            node = find(keys, vocabulary, node, path[depth])
        if bound > 0.0 and has_children(node, limit, True, info, kin):
            read = law_after(path[:count], read, row, walk, walked, reader, heat, tables, after)
            bound *= 1.0 - mass_of(after, node, info, kin)
        if bound <= 0.0:
            return token, at, passes + read
        if bound < p:
            at += 1
            if uniforms[at - 1] >= bound / p:
                return token, at, passes + read
        onward, at, read = goes_further(path, count, node, limit, read, row, walk, walked, reader, heat, tables, after, uniforms, at)
        passes += read
        if onward:
            return token, at, passes
    return HOST, at, passes


@compiled
def goes_further(
    path: Whole, count: int, node: int, limit: int, read: int, row: Array, walk: Whole, walked: Array, reader: Reader, heat: float,
    tables: Tables, after: Array, uniforms: Numbers, at: int,
) -> tuple[bool, int, int]:  # fmt: skip
    """`Residual._simulate` from the end of a `path` of `count` tokens at a `node`, of which `read` have been read: (whether a longer
    n-gram comes, numbers used so far, tokens read)."""
    _, _, _, keys, info, kin, _, _, _, _ = tables
    avoiding = True
    while node > 0 and info[node, 2] <= limit:
        if avoiding and not has_children(node, limit, False, info, kin):
            return False, at, read
        read = law_after(path[:count], read, row, walk, walked, reader, heat, tables, after)
        if avoiding:
            child = kin[node, CHILD]
            while child > 0:
                if info[child, 0] == 0:
                    after[kin[child, TOKEN]] = 0.0
                child = kin[child, SIBLING]
        drawn, avoiding, at = place(after, uniforms[at]), False, at + 1
        node = find(keys, len(after), node, drawn) if after[drawn] > 0.0 else 0
        if node == 0 or info[node, 1] > limit:
            return False, at, read
        if info[node, 0] == 0:
            return True, at, read
        path[count] = drawn
        count += 1
    return False, at, read


@compiled
def law_after(
    path: Whole, read: int, row: Array, walk: Whole, walked: Array, reader: Reader, heat: float, tables: Tables, law: Array
) -> int:
    """The drafter's `law` [D] after a path, of which the first `read` tokens have been read and left the logits `row` [1, D]; how many have
    been read now."""
    count, same = len(path), len(path) < len(walk)
    for i in range(count):
        same = same and path[i] == walk[i]
    if same:
        law[:] = walked[count]
        return read
    board, few, drafter, origin = reader
    state = np.empty((1, drafter[1].shape[1]), np.float32)
    for token in range(read, count):
        forward(board, few, 1, drafter, path[token : token + 1], origin + token, row, state, 1.0, np.empty((0, 4), np.float32))
    masked(row[0], tables[1], 0, law)
    if -np.inf < top(law) < np.inf:
        warm(law, heat)
    else:  # it is not a number: no walk goes on from here
        law[:] = 0.0
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
def mass_of(law: Array, node: int, info: Whole, kin: Whole) -> Any:
    """Σ q over the complete children of a node."""
    total, child = 0.0, kin[node, CHILD]
    while child > 0:
        if info[child, 0] == 0:
            total += law[kin[child, TOKEN]]
        child = kin[child, SIBLING]
    return total


@compiled
def is_ngram(path: Any, vocabulary: int, keys: Whole, info: Whole) -> bool:
    if len(path) < 2:
        return False
    node = 0
    for token in path:
        node = find(keys, vocabulary, node, token)
        if node == 0:
            return False
    return info[node, 0] == 0
