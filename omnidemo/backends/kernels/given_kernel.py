"""Accepting a proposal that the host made, such as one copied from the text: each of its tokens is a point mass."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from omnidemo.backends.kernels.filters_kernel import Numbers, Sampling, Seen, Whole, plain
from omnidemo.backends.kernels.gemm import Array
from omnidemo.backends.kernels.noise_kernel import Shared, is_shared
from omnidemo.backends.kernels.rounds_kernel import judge, judge_equal, judge_greedy, likelihood
from omnidemo.backends.kernels.rows_kernel import BLOCK, block_sums, inverse_cdf_by, softmax_given
from omnidemo.backends.round_layout import UNFINISHED


@njit(cache=True, error_model="numpy", nogil=True)
def judge_given(
    proposal: Whole, scores: Array, stats: Array, sampling: Sampling, seen: Seen, uniforms: Numbers, noise: Shared, ends: Whole,
    accept_probs: Numbers, target_probs: Numbers,
) -> tuple[int, Any, int]:  # fmt: skip
    """(how many tokens of the `proposal` [m] are accepted, the token after them or NONE, uniform numbers used), from the target's rows
    `scores` [m + 1, T] and their `stats` [m + 1, 4]. As `Method.accept` does it with q = 1: where a token is rejected, p without it is
    drawn from; with `noise` a token is accepted where it is what the target draws by it. Written are the `accept_probs` [m] of those that
    were judged, and `target_probs` [m + 1]: of the proposal, then of the token written."""
    temperature, at, vocabulary = sampling[0], 0, scores.shape[1]
    probs = np.empty(vocabulary, np.float32)
    if temperature == 0.0:
        accepted, written = judge_greedy(proposal, scores, stats, sampling, seen, ends, accept_probs, probs)
    elif is_shared(noise):
        accepted, written = judge_equal(proposal, scores, stats, sampling, seen, noise, ends, accept_probs, probs)
    else:
        bounds = np.ones(len(proposal))
        accepted, written, at = judge(proposal, bounds, scores, stats, sampling, seen, uniforms, 0, ends, accept_probs, probs)
        if written == UNFINISHED:
            if plain(sampling):
                softmax_given(scores[accepted], stats[accepted, 1], 1.0 / temperature, stats[accepted, 3], probs)
            if accepted < len(proposal):
                probs[proposal[accepted]] = 0.0
            sums = np.empty((vocabulary + BLOCK - 1) // BLOCK)
            block_sums(probs, sums)
            written, at = inverse_cdf_by(probs, sums, uniforms[at]), at + 1
    for place in range(len(proposal)):
        target_probs[place] = likelihood(scores[place], stats[place], proposal[place])
    if written >= 0:
        target_probs[len(proposal)] = likelihood(scores[accepted], stats[accepted], written)
    return accepted, written, at
