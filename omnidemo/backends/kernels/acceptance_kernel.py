"""Compiled `Method.accept` for temperature 0 and seeds: a draft token is accepted if it is the target's
own."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from omnidemo.backends.call_layout import NONE, Array, Choice, Numbers, Scores, TargetText, Whole
from omnidemo.backends.kernels.filters_kernel import filtered, mark, plain
from omnidemo.backends.kernels.noise_kernel import race_own
from omnidemo.backends.kernels.rows_kernel import append, compiled, highest, int64, softmax_given


@compiled
def likelihood(scores: Scores, place: int, token: int) -> Any:
    """The softmax of a token in a row of logits, from the row's `RowStats`."""
    return np.exp(np.float64(scores.logits[place, token]) - np.float64(scores.stats[place, 1])) / np.float64(
        scores.stats[place, 2]
    )


@compiled
def own_token(place: int, scores: Scores, choice: Choice, text: TargetText, probs: Array) -> Any:
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


@njit(cache=True, error_model="numpy", nogil=True)
def judge_own(
    proposal: Whole,
    logits: Array,
    stats: Array,
    choice: Choice,
    text: TargetText,
    accept_probs: Numbers,
    target_probs: Numbers,
) -> tuple[int, Any]:
    """(accepted ids of the `proposal` [m], the token after them or NONE), from the target's `logits` [m + 1,
    T] and their `stats` [m + 1, 4]. A token is accepted where the target draws it itself: the most probable
    one, or that of the shared noise.

    `accept_probs` [m] receives a number for each judged token, `target_probs` [m + 1] those of the proposal
    and of the token written.
    """
    scores, probs = Scores(logits, logits[:0], stats), np.empty(logits.shape[1], np.float32)
    accepted, written = int64(0), int64(NONE)
    for place in range(len(proposal) + 1):
        token = own_token(place, scores, choice, text, probs)
        if place == len(proposal) or proposal[place] != token:
            written = token
            break
        accept_probs[place] = 1.0
        accepted += 1
        mark(text.seen, token)
        if np.any(text.ends == token):
            break
    for place in range(len(proposal)):
        target_probs[place] = likelihood(scores, place, proposal[place])
    if written >= 0:
        target_probs[len(proposal)] = likelihood(scores, accepted, written)
    return accepted, written
