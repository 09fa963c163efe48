"""The functions that are called from outside. Run as a program, this compiles all of them and keeps the machine code, so that another
process has it in half a second."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from omnidemo.backends.kernels.draft import roll_out
from omnidemo.backends.kernels.filters_kernel import distribution
from omnidemo.backends.kernels.forward import forward, run_worker
from omnidemo.backends.kernels.gemm import Array
from omnidemo.backends.kernels.given_kernel import judge_given
from omnidemo.backends.kernels.noise_kernel import noise, race
from omnidemo.backends.kernels.rounds_kernel import rounds
from omnidemo.backends.kernels.rows_kernel import block_sums, inverse_cdf, inverse_cdf_by, softmax_, softmax_given, token_prob
from omnidemo.backends.packed_forms import FLOAT32
from omnidemo.backends.thread_pool import new_queue
from omnidemo.vocab.trie_table import PROBES

ENTRIES = (
    token_prob, inverse_cdf, block_sums, inverse_cdf_by, softmax_given, softmax_, distribution, noise, race, forward, run_worker, roll_out,
    rounds, judge_given,
)  # fmt: skip


def compile_all() -> None:
    """Compile for the types that are used; a moment where another process has left its machine code."""

    def zeros(*shape: int) -> Array:
        return np.zeros(shape, np.float32)

    def whole(*shape: int) -> NDArray[np.int64]:
        return np.zeros(shape, np.int64)

    token_prob(zeros(1), 0)
    inverse_cdf(np.ones(1, np.float32), 0.5)
    block_sums(zeros(1), np.zeros(1))
    inverse_cdf_by(np.ones(1, np.float32), np.ones(1), 0.5)
    softmax_given(zeros(1), 0.0, 1.0, 1.0, zeros(1))
    softmax_(zeros(1), 1.0)
    noise(np.zeros(3, np.uint64), np.zeros(256, np.uint32))
    race(np.ones(1, np.float32), np.zeros(1, np.uint32))
    queue, sampling, seen = new_queue(), (0.0, 0, 1.0, 0.0, 1.0), (np.zeros(1, np.bool_), whole(2))
    distribution(zeros(1), sampling, seen)
    weight = zeros(4, 4)  # nothing but zeros, and as many as the largest matrix needs
    matrices = np.array([(FLOAT32, weight.ctypes.data, 4 if i < 8 else 1) for i in range(9)])
    model = (zeros(1, 2, 1, 1, 4), matrices, zeros(1, 2, 4), zeros(4), zeros(1, 12), zeros(1, 9), zeros(1, 4), zeros(1, 4), 1e-5)
    forward(queue, 1, 1, model, whole(1), 0, zeros(1, 1), zeros(1, 4), 1.0, zeros(1, 4))
    numbers, tokens, limits, marks = np.zeros(1), whole(1), np.zeros(1, np.int32), np.zeros(1, np.bool_)
    shared = (np.zeros((0, 0), np.uint32), whole(0), whole(2))
    keys, info, segments = whole(1 + PROBES), whole(2 + PROBES, 3), np.zeros((1, 5))
    roll_out(
        queue, 1, model, tokens, 0, zeros(1, 1), zeros(1, 4), limits, limits, marks, keys, info, 1, 1, sampling, seen, numbers,
        shared, tokens, whole(2 + PROBES, 4), 1.0, 0.0, 0.0, segments, tokens, whole(3, 1), numbers, zeros(1, 1), whole(1, 4), numbers,
    )  # fmt: skip
    tables = (limits, limits, marks, keys, info, whole(2 + PROBES, 4), tokens, tokens, marks, np.zeros((1, 2), np.int32))
    rounds(
        queue, 1, 1, 1, model, tokens, 0, model, tokens, 0, 1, 1, 0, 1, tables, sampling, seen, seen, numbers, shared, 1.0, 0.0,
        0.0, segments, tokens, tokens, True, zeros(2, 1), zeros(2, 4), zeros(1, 1), zeros(2, 1), zeros(2, 4), zeros(2, 4), whole(99),
        np.zeros(99),
    )  # fmt: skip
    judge_given(tokens, zeros(2, 1), np.ones((2, 4), np.float32), sampling, seen, numbers, shared, tokens, numbers, np.zeros(2))
    run_worker(queue)
    for entry in ENTRIES:
        entry.disable_compile()  # other types would be a mistake, and would keep an answer waiting for seconds


if __name__ == "__main__":
    compile_all()
