"""Drawing several drafter tokens in a row without coming back for each: read a token, draw the next, follow the trie, and again."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from omnidemo.backends.kernels.forward import Model, forward
from omnidemo.backends.kernels.gemm import Array
from omnidemo.backends.kernels.rows_kernel import BLOCK, compiled, exponential, highest, mass, ordered, place_by
from omnidemo.backends.thread_pool import Board
from omnidemo.vocab.trie_table import PROBES, SPREAD

Whole = NDArray[np.int64]
Numbers = NDArray[np.float64]


@njit(cache=True, error_model="numpy", nogil=True)
def roll_out(
    board: Board, pieces: int, model: Model, given: Whole, start: int, rows: Array, states: Array, first: NDArray[np.int32],
    inside: NDArray[np.int32], alone: NDArray[np.bool_], keys: Whole, info: Whole, total: int, aim: int, heat: float, uniforms: Numbers,
    reach: float, least: float, price: float, rule: Numbers, ends: Whole, notes: Whole, shares: Numbers, laws: Array, slots: Whole,
    bounds: Numbers,
) -> tuple[int, int, int, int]:  # fmt: skip
    """Read the `given` tokens at positions start…, of which rows[0] are the logits if there are none, and make the draws of
    `NgramExact.draft`: (how many, tokens read for them and not thrown away, slots that came of them; −1 where a walk could not be ended,
    and all tokens that were read).

    Up to `states` everything is as in `forward`, but with `rows` [R, V] and `states` [R, H] for the logits after each read token. `first`
    to `info`: see `ProposalRule` and `TrieTable`. `total`: the first slot's limit; no slot begins after `aim` drafter tokens. `heat`: the
    temperature, 0 for the most probable token. `uniforms` [n] are the numbers of the draws. `reach` to `rule`: see `StopRule`. Nothing is
    drawn after a slot of one token that is among the `ends`. Written are the `notes` [3, n or more], `shares` [n] and `laws` [n, V]: for
    each of at most n draws its place, id, share and law, as in `Rollout`, and in the last of the notes the tokens that were drafted.
    Written too are the `slots` [n, 4] and `bounds` [n]: of each slot its first draw, the place where it ends (where it began if nothing
    came of it), the trie's node there, and the draw that was made in vain after it, −1 if none was; and Q̄.
    """
    places, ids, tokens = notes
    base, read, passes, count, most, room, made = 0, 0, 0, 0, len(shares), len(rows) - 1, 0
    if len(given):
        forward(board, pieces, len(given), model, given, start, rows[:1], states[:1], 1.0, np.empty((0, 4), np.float32))
        start += len(given)
    vocabulary = rows.shape[1]
    while base < aim and base <= room and count < most:
        limit = total - base
        passes += max(0, base - read)
        read = read_on(board, pieces, model, tokens, start, read, base, rows, states)
        drawn = draw(rows[base], first, limit, heat, uniforms[count], laws[count])
        if drawn < 0:
            break
        share = probability(laws[count], drawn, heat)
        places[count], ids[count], shares[count] = base, drawn, share
        count += 1
        tokens[base] = drawn
        end, sure, path, depth, vain = base, 0.0, float(share), 1, -1
        node = find(keys, vocabulary, 0, drawn)
        known, slots[made, 0] = node, count - 1
        if alone[drawn]:
            end, sure = base + 1, path
        while node > 0 and info[node, 2] <= limit:
            if base + depth > room or count == most:
                return count, min(read, end), -1, passes
            passes += max(0, base + depth - read)
            read = read_on(board, pieces, model, tokens, start, read, base + depth, rows, states)
            drawn = draw(rows[base + depth], inside, limit, heat, uniforms[count], laws[count])
            if drawn < 0:
                return count, min(read, end), -1, passes
            share = probability(laws[count], drawn, heat)
            places[count], ids[count], shares[count] = base + depth, drawn, share
            if end == base + depth:
                vain = count
            count += 1
            node = find(keys, vocabulary, node, drawn)
            if node == 0 or info[node, 1] > limit:
                break
            tokens[base + depth] = drawn
            path *= share
            depth += 1
            if info[node, 0] <= limit:
                end, sure, known, vain = base + depth, path, node, -1
        read = min(read, end)
        slots[made, 1], slots[made, 2], slots[made, 3], bounds[made] = end, known, vain, sure
        made += 1
        line = 0
        while line + 1 < len(rule) and sure >= rule[line + 1, 0]:
            line += 1
        reach *= rule[line, 1] + rule[line, 2] * sure
        if end == base or sure < least or reach * (rule[line, 3] + rule[line, 4] * sure) <= price:
            break
        if end == base + 1 and np.any(ends == tokens[base]):
            break
        base = end
    return count, read, made, passes


@compiled
def read_on(board: Board, pieces: int, model: Model, tokens: Whole, start: int, read: int, until: int, rows: Array, states: Array) -> int:
    """Read the drafted tokens, one by one, as far as `until`."""
    for token in range(read, until):
        row = slice(token + 1, token + 2)
        forward(
            board, pieces, 1, model, tokens[token : token + 1], start + token, rows[row], states[row], 1.0, np.empty((0, 4), np.float32)
        )  # fmt: skip
    return max(read, until)


@compiled
def draw(row: Array, least: NDArray[np.int32], limit: int, heat: float, uniform: float, law: Array) -> int:
    """A token by logits [V] among those whose `least` is within the limit, −1 where there is none or they are not
    finite. `law` [V] becomes what it was drawn from, at temperature 0 the masked logits."""
    if heat == 0.0:
        masked(row, least, limit, law)
        best = highest(law)
        return best if -np.inf < law[best] < np.inf else -1
    high = top_within(row, least, limit)
    if not -np.inf < high < np.inf:
        return -1
    sums = np.empty((len(law) + BLOCK - 1) // BLOCK)
    warm_within(row, least, limit, high, heat, law, sums)
    return place_by(law, sums, uniform)


@compiled
def masked(row: Array, least: NDArray[np.int32], limit: int, law: Array) -> None:
    """The logits [V] of which the `least` is within the limit; −∞ for the others."""
    for i in range(len(row)):
        law[i] = row[i] if least[i] <= limit else np.float32(-np.inf)


@compiled
def top_within(row: Array, least: NDArray[np.int32], limit: int) -> Any:
    """The highest of them."""
    bits, lowest, within = row.view(np.int32), np.int32(-(1 << 31)), np.int32(limit)
    found = lowest
    for i in range(len(row)):
        found = max(found, ordered(bits[i]) if least[i] <= within else lowest)
    return np.int32(ordered(found)).view(np.float32) if found > lowest else np.float32(-np.inf)


@compiled
def warm_within(row: Array, least: NDArray[np.int32], limit: int, high: float, heat: float, law: Array, sums: Numbers) -> None:
    """Their softmax [V] at a temperature, and its running sums as of `add_up`. From the logits to the law in one go, for there is a draw to
    each token that is drafted, and a loop that writes where it reads takes twice as long."""
    within, factor, full = np.int32(limit), np.float32(1.0 / heat), len(law) // BLOCK
    whole: Any = np.float32(0.0)
    for i in range(len(row)):
        away = (row[i] - high) * factor
        law[i] = exponential(away) if (least[i] <= within) & (away > np.float32(-87.0)) else np.float32(0.0)
        whole += law[i]
    share = np.float32(1.0) / whole
    running: Any = 0.0
    for block in range(full):
        total = np.float32(0.0)
        for i in range(block * BLOCK, block * BLOCK + BLOCK):
            law[i] *= share
            total += law[i]
        running += total
        sums[block] = running
    if full < len(sums):
        total = np.float32(0.0)
        for i in range(full * BLOCK, len(law)):
            law[i] *= share
            total += law[i]
        sums[full] = running + total


@compiled
def probability(law: Array, drawn: int, heat: float) -> Any:
    """That of what `draw` drew: at temperature 0 what it would be at temperature 1."""
    return law[drawn] if heat > 0.0 else np.float32(1.0) / mass(law, law[drawn], np.float32(1.0))


@compiled
def find(keys: Whole, vocabulary: int, node: int, token: int) -> int:
    """The child of a node by a token, 0 where there is none; see `TrieTable`."""
    wanted = node * vocabulary + token
    begin = wanted * SPREAD % (len(keys) - PROBES)
    for slot in range(begin, begin + PROBES):
        if keys[slot] == wanted:
            return slot + 1
    return 0
