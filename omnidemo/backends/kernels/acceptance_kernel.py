"""`Method.accept` in compiled code, for copied ids, and for all others where only the target's own token is
accepted."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from omnidemo.backends.call_layout import NONE, Array, Choice, Numbers, Scores, Text, Whole
from omnidemo.backends.kernels.filters_kernel import filtered, mark, plain
from omnidemo.backends.kernels.noise_kernel import is_shared, race_own
from omnidemo.backends.kernels.rows_kernel import (
    BLOCK,
    append,
    block_sums,
    compiled,
    highest,
    int64,
    inverse_cdf_by,
    softmax_given,
)

UNFINISHED = -2  # in place of a token that is still to be drawn


@compiled
def likelihood(scores: Scores, place: int, token: int) -> Any:
    """The softmax of a token in a row of logits, from the row's `RowStats`."""
    return np.exp(np.float64(scores.logits[place, token]) - np.float64(scores.stats[place, 1])) / np.float64(
        scores.stats[place, 2]
    )


@compiled
def judge_own(
    proposal: Whole, scores: Scores, choice: Choice, text: Text, accept_probs: Numbers, probs: Array
) -> tuple[int, Any]:
    """(accepted proposals, the token after them or NONE) where only the target's own token is accepted: the
    most probable one, or that of the shared noise. No uniform number is used. `probs` [T] is scratch
    space."""
    for place in range(len(proposal) + 1):
        token = own_token(place, scores, choice, text, probs)
        if place == len(proposal) or proposal[place] != token:
            break
        accept_probs[place] = 1.0
        mark(text.seen, token)
        if np.any(text.ends == token):
            return place + 1, NONE
    if place < len(proposal):
        accept_probs[place] = 0.0
    return place, token


@compiled
def own_token(place: int, scores: Scores, choice: Choice, text: Text, probs: Array) -> Any:
    """The token that the target itself draws at a place."""
    sampling, simple = choice.sampling, plain(choice.sampling)
    if sampling.temperature == 0.0 and simple:
        return np.int64(scores.stats[place, 0])
    if simple:
        softmax_given(
            scores.logits[place],
            scores.stats[place, 1],
            1.0 / sampling.temperature,
            scores.stats[place, 3],
            probs,
        )
    else:
        append(probs, int64(0), scores.logits[place])
        filtered(probs, sampling, text.seen)
    if sampling.temperature == 0.0:
        return np.int64(highest(probs))
    return np.int64(race_own(probs, choice.noise, place))


@compiled
def judge_copied(
    proposal: Whole, scores: Scores, choice: Choice, text: Text, accept_probs: Numbers, probs: Array
) -> tuple[int, int, int]:
    """(accepted proposals, UNFINISHED or NONE for the token after them, uniform numbers used), each proposed
    with q = 1. With a filter or a penalty `probs` [T] becomes the distribution of the last row that was read.
    Rows after the first rejection are not filtered."""
    sampling, simple, at = choice.sampling, plain(choice.sampling), 0
    for place in range(len(proposal) + 1):
        if not simple:
            append(probs, int64(0), scores.logits[place])
            filtered(probs, sampling, text.seen)
        if place == len(proposal):
            break
        token = proposal[place]
        if simple:
            away = np.float64(scores.logits[place, token]) - np.float64(scores.stats[place, 1])
            chance = np.exp(away / sampling.temperature) / np.float64(scores.stats[place, 3])
        else:
            chance = np.float64(probs[token])
        accept_probs[place] = min(1.0, chance)
        if chance < 1.0:
            at += 1
            if choice.uniforms[at - 1] >= chance:
                return place, UNFINISHED, at
        mark(text.seen, token)
        if np.any(text.ends == token):
            return place + 1, NONE, at
    return len(proposal), UNFINISHED, at


@njit(cache=True, error_model="numpy", nogil=True)
def judge_given(
    proposal: Whole,
    logits: Array,
    stats: Array,
    choice: Choice,
    text: Text,
    accept_probs: Numbers,
    target_probs: Numbers,
) -> tuple[int, Any, int]:
    """(accepted ids of the `proposal` [m], the token after them or NONE, uniform numbers used), from the
    target's `logits` [m + 1, T] and their `stats` [m + 1, 4].

    The rule is that of `Method.accept` with q = 1: a rejected token is replaced by a draw from p without it.
    With shared noise a token is accepted where the target draws it itself. `accept_probs` [m] receives a
    number for each judged token, `target_probs` [m + 1] those of the proposal and of the token written.
    """
    sampling, spent, vocabulary = choice.sampling, 0, logits.shape[1]
    scores = Scores(logits, logits[:0], stats)
    probs = np.empty(vocabulary, np.float32)
    if sampling.temperature == 0.0 or is_shared(choice.noise):
        accepted, written = judge_own(proposal, scores, choice, text, accept_probs, probs)
    else:
        accepted, written, spent = judge_copied(proposal, scores, choice, text, accept_probs, probs)
        if written == UNFINISHED:
            if plain(sampling):
                softmax_given(
                    logits[accepted],
                    stats[accepted, 1],
                    1.0 / sampling.temperature,
                    stats[accepted, 3],
                    probs,
                )
            if accepted < len(proposal):
                probs[proposal[accepted]] = 0.0
            sums = np.empty((vocabulary + BLOCK - 1) // BLOCK)
            block_sums(probs, sums)
            written, spent = inverse_cdf_by(probs, sums, choice.uniforms[spent]), spent + 1
    for place in range(len(proposal)):
        target_probs[place] = likelihood(scores, place, proposal[place])
    if written >= 0:
        target_probs[len(proposal)] = likelihood(scores, accepted, written)
    return accepted, written, spent
