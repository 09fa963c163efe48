"""A compiled rollout: draw a drafter token, follow the trie, read the token, repeat."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from omnidemo.backends.call_layout import (
    Array,
    Choice,
    Limits,
    Marks,
    Model,
    Numbers,
    RolloutOutput,
    Rule,
    Sampling,
    Scores,
    Side,
    Stop,
    Whole,
    Workers,
)
from omnidemo.backends.kernels.filters_kernel import filtered, mark_all, plain, unmark
from omnidemo.backends.kernels.forward import run_pass
from omnidemo.backends.kernels.noise_kernel import further, is_shared, race_after, race_at
from omnidemo.backends.kernels.rows_kernel import (
    BLOCK,
    block_sums,
    compiled,
    exponential,
    highest,
    int64,
    inverse_cdf_by,
    mass,
    ordered,
)
from omnidemo.vocabulary.trie_table import PROBES, SPREAD

BY_NOISE = -2


@njit(cache=True, error_model="numpy", nogil=True)
def roll_out(
    workers: Workers, side: Side, rule: Rule, slot_limit: int, draft_limit: int, choice: Choice, names: Whole,
    stop: Stop, draft: RolloutOutput
) -> tuple[int, int]:  # fmt: skip
    """Read the unread ids of the `side` (without any, draft.rows[0] are the logits), and make the draws of
    `NgramExact.draft`. Returns (draws, tokens read and kept).

    `slot_limit` is the first slot's limit; no slot begins after `draft_limit` drafter tokens. At temperature
    0 the most probable token is drawn. With shared noise the first slot is that of the next token, and
    `names` [D] are the target tokens that drafter tokens propose by themselves, −1 for none.
    """
    rows, states, notes, draft_probs, distributions = draft
    sampling, uniforms, noise = choice
    model, given, start, seen = side
    first, inside, alone, keys, info, kin = rule
    segments, cumulative = stop.segments, stop.cumulative
    places, ids, tokens = notes[0], notes[1], notes[2]
    base, read, count, made = int64(0), int64(0), 0, int64(0)
    most, room, before, temperature = len(draft_probs), len(rows) - 1, seen.ids[0], sampling.temperature
    if len(given):
        run_pass(
            workers, model, given, start, Scores(rows[:1], states[:1], np.empty((0, 4), np.float32)), 1.0
        )
        start += len(given)
    vocabulary = rows.shape[1]
    while base < draft_limit and base <= room and count < most:
        limit = slot_limit - base
        read = read_on(workers, model, tokens, start, read, base, rows, states)
        follow(seen, before, tokens[:base])
        drawn = draw(
            rows[base], first, limit, sampling, seen, uniforms[count], distributions[count], is_shared(noise)
        )
        if drawn == BY_NOISE:
            drawn = race_at(distributions[count], noise, made, names)
        if drawn < 0:
            break
        prob = probability(distributions[count], drawn, temperature)
        places[count], ids[count], draft_probs[count] = base, drawn, prob
        count += 1
        tokens[base] = drawn
        end, slot_prob, path_prob, depth = base, 0.0, float(prob), 1
        node = find(keys, vocabulary, int64(0), int64(drawn))
        stream = further(np.uint64(1), drawn)
        if alone[drawn]:
            end, slot_prob = base + 1, path_prob
        while node > 0 and info[node, 2] <= limit:
            if base + depth > room or count == most:
                return count, min(read, end)
            read = read_on(workers, model, tokens, start, read, base + depth, rows, states)
            follow(seen, before, tokens[: base + depth])
            drawn = draw(
                rows[base + depth],
                inside,
                limit,
                sampling,
                seen,
                uniforms[count],
                distributions[count],
                is_shared(noise),
            )
            if drawn == BY_NOISE:
                drawn = race_after(distributions[count], noise, made, stream, node, limit, info, kin)
            if drawn < 0:
                return count, min(read, end)
            prob = probability(distributions[count], drawn, temperature)
            places[count], ids[count], draft_probs[count] = base + depth, drawn, prob
            count += 1
            node, stream = find(keys, vocabulary, node, drawn), further(stream, drawn)
            if node == 0 or info[node, 1] > limit:
                break
            tokens[base + depth] = drawn
            path_prob *= prob
            depth += 1
            if info[node, 0] <= limit:
                end, slot_prob = base + depth, path_prob
        read = min(read, end)
        made += 1
        line = 0
        while line + 1 < len(segments) and slot_prob >= segments[line + 1, 0]:
            line += 1
        cumulative *= segments[line, 1] + segments[line, 2] * slot_prob
        if (
            end == base
            or slot_prob < stop.min_prob
            or cumulative * (segments[line, 3] + segments[line, 4] * slot_prob) <= stop.price
        ):
            break
        base = end
    return count, read


@compiled
def read_on(
    workers: Workers,
    model: Model,
    tokens: Whole,
    start: int,
    read: int,
    until: int,
    rows: Array,
    states: Array,
) -> int:
    """Read the drafted tokens, one by one, up to `until`."""
    for token in range(read, until):
        row = slice(token + 1, token + 2)
        scores = Scores(rows[row], states[row], np.empty((0, 4), np.float32))
        run_pass(workers, model, tokens[token : token + 1], start + token, scores, 1.0)
    return max(read, until)


@compiled
def follow(seen: Marks, before: int, tokens: Whole) -> None:
    """Mark as seen what was seen before the draft, and these tokens of it."""
    unmark(seen, before)
    mark_all(seen, tokens)


@compiled
def draw(
    row: Array, needed: Limits, limit: int, sampling: Sampling, seen: Marks, uniform: float, probs: Array,
    racing: bool
) -> int:  # fmt: skip
    """A token from logits [V] among those whose `needed` is within the limit. −1 where there is none, or
    logits are not finite. BY_NOISE where the shared noise decides. `probs` [V] becomes the
    distribution; at temperature 0 the masked logits after the penalty."""
    temperature, simple = sampling.temperature, plain(sampling)
    if temperature == 0.0 or not simple:
        masked_logits(row, needed, limit, probs)
        if not simple and not filtered(probs, sampling, seen):
            return -1
        if temperature == 0.0:
            best = highest(probs)
            return best if -np.inf < probs[best] < np.inf else -1
    sums = np.empty((len(probs) + BLOCK - 1) // BLOCK)
    if simple:
        high = masked_top(row, needed, limit)
        if not -np.inf < high < np.inf:
            return -1
        masked_softmax(row, needed, limit, high, temperature, probs, sums)
    elif not racing:
        block_sums(probs, sums)
    if racing:
        return BY_NOISE
    return inverse_cdf_by(probs, sums, uniform)


@compiled
def masked_logits(row: Array, needed: Limits, limit: int, probs: Array) -> None:
    """The logits [V], −∞ where `needed` exceeds the limit."""
    for i in range(len(row)):
        probs[i] = row[i] if needed[i] <= limit else np.float32(-np.inf)


@compiled
def masked_top(row: Array, needed: Limits, limit: int) -> Any:
    """The highest logit whose `needed` is within the limit."""
    bits, lowest, within = row.view(np.int32), np.int32(-(1 << 31)), np.int32(limit)
    high = lowest
    for i in range(len(row)):
        high = max(high, ordered(bits[i]) if needed[i] <= within else lowest)
    return np.int32(ordered(high)).view(np.float32) if high > lowest else np.float32(-np.inf)


@compiled
def masked_softmax(
    row: Array, needed: Limits, limit: int, high: float, temperature: float, probs: Array, sums: Numbers
) -> None:
    """The softmax [V] at a temperature over logits whose `needed` is within the limit, and its running sums
    as `block_sums` makes them. One loop for all of it: it runs for every drafted token, and writing to the
    array that is read would take twice as long."""
    within, factor, full = np.int32(limit), np.float32(1.0 / temperature), len(probs) // BLOCK
    whole: Any = np.float32(0.0)
    for i in range(len(row)):
        away = (row[i] - high) * factor
        probs[i] = (
            exponential(away) if (needed[i] <= within) & (away > np.float32(-87.0)) else np.float32(0.0)
        )
        whole += probs[i]
    factor = np.float32(1.0) / whole
    running: Any = 0.0
    for block in range(full):
        total = np.float32(0.0)
        for i in range(block * BLOCK, block * BLOCK + BLOCK):
            probs[i] *= factor
            total += probs[i]
        running += total
        sums[block] = running
    if full < len(sums):
        total = np.float32(0.0)
        for i in range(full * BLOCK, len(probs)):
            probs[i] *= factor
            total += probs[i]
        sums[full] = running + total


@compiled
def probability(probs: Array, drawn: int, temperature: float) -> Any:
    """The probability of a drawn token; at temperature 0 that at temperature 1."""
    return probs[drawn] if temperature > 0.0 else np.float32(1.0) / mass(probs, probs[drawn], np.float32(1.0))


@compiled
def find(keys: Whole, vocabulary: int, node: int, token: int) -> int:
    """The child of a node by a token, 0 for none; see `TrieTable`."""
    wanted = node * vocabulary + token
    begin = wanted * SPREAD % (len(keys) - PROBES)
    for slot in range(begin, begin + PROBES):
        if keys[slot] == wanted:
            return slot + 1
    return 0
