"""Accepting a proposal that the host made, such as one copied from the text: each of its tokens is a point
mass."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from omnidemo.backends.call_layout import UNFINISHED, Array, Choice, Numbers, Scores, Text, Whole
from omnidemo.backends.kernels.filters_kernel import plain
from omnidemo.backends.kernels.noise_kernel import is_shared
from omnidemo.backends.kernels.rounds_kernel import judge, judge_own, likelihood
from omnidemo.backends.kernels.rows_kernel import BLOCK, block_sums, int64, inverse_cdf_by, softmax_given


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
    """(how many tokens of the `proposal` [m] are accepted, the token after them or NONE, uniform numbers
    used), by the target's `logits` [m + 1, T] and their `stats` [m + 1, 4]. As `Method.accept` does it with q
    = 1: where a token is rejected, p without it is drawn from; with shared noise a token is accepted where it
    is what the target draws by it. Written are the `accept_probs` [m] of those that were judged, and
    `target_probs` [m + 1]: of the proposal, then of the token written."""
    sampling, at, vocabulary, found = (
        choice.sampling,
        int64(0),
        logits.shape[1],
        Scores(logits, logits[:0], stats),
    )
    probs = np.empty(vocabulary, np.float32)
    if sampling.temperature == 0.0 or is_shared(choice.noise):
        accepted, written = judge_own(proposal, found, choice, text, accept_probs, probs)
    else:
        accepted, written, at = judge(
            proposal, np.ones(len(proposal)), found, choice, text, at, accept_probs, probs
        )
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
            written, at = inverse_cdf_by(probs, sums, choice.uniforms[at]), at + 1
    for place in range(len(proposal)):
        target_probs[place] = likelihood(found, place, proposal[place])
    if written >= 0:
        target_probs[len(proposal)] = likelihood(found, accepted, written)
    return accepted, written, at
