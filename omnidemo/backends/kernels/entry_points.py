"""The functions that Python calls. Run as a program, this module compiles all of them and keeps the machine
code; another process then loads it in half a second."""

from __future__ import annotations

import numpy as np

from omnidemo.backends.call_layout import RolloutOutput, Scores, TargetText
from omnidemo.backends.kernels.acceptance_kernel import judge_own
from omnidemo.backends.kernels.draft import roll_out
from omnidemo.backends.kernels.examples import (
    CHOICE,
    MODEL,
    RULE,
    SAMPLING,
    SEEN,
    SIDE,
    STOP,
    WORKERS,
    whole,
    zeros,
)
from omnidemo.backends.kernels.filters_kernel import distribution
from omnidemo.backends.kernels.forward import forward, run_worker
from omnidemo.backends.kernels.memory_kernel import chain, count, enter, follow, learn_chain
from omnidemo.backends.kernels.noise_kernel import gumbel_max, noise
from omnidemo.backends.kernels.rows_kernel import (
    block_sums,
    inverse_cdf_by,
    softmax_,
    softmax_given,
    token_prob,
)
from omnidemo.decoding.sources import ngram_table
from omnidemo.decoding.sources.continuations import Continuations
from omnidemo.decoding.sources.copy_chances import CopyChances
from omnidemo.decoding.sources.text_index import TextIndex

ENTRIES = (
    token_prob, block_sums, inverse_cdf_by, softmax_given, softmax_, distribution, noise, gumbel_max,
    forward, run_worker, roll_out,
    judge_own, follow, count, enter, chain, learn_chain,
)  # fmt: skip


def compile_all() -> None:
    """Compile all entry points for their types; with kept machine code this takes a moment."""
    token_prob(zeros(1), 0)
    block_sums(zeros(1), np.zeros(1))
    inverse_cdf_by(np.ones(1, np.float32), np.ones(1), 0.5)
    softmax_given(zeros(1), 0.0, 1.0, 1.0, zeros(1))
    softmax_(zeros(1), 1.0)
    noise(np.zeros(3, np.uint64), np.zeros(256, np.uint32))
    gumbel_max(np.ones(1, np.float32), np.zeros(1, np.uint32))
    distribution(zeros(1), SAMPLING, SEEN)
    forward(WORKERS, MODEL, whole(1), 0, Scores(zeros(1, 1), zeros(1, 4), zeros(1, 4)), 1.0)
    draft = RolloutOutput(zeros(2, 1), zeros(2, 4), whole(3, 2), np.zeros(1), zeros(1, 1))
    roll_out(WORKERS, SIDE, RULE, 1, 1, CHOICE, whole(1), STOP, draft)
    scores = Scores(zeros(2, 1), zeros(2, 4), np.ones((2, 4), np.float32))
    judge_own(
        whole(1), scores.logits, scores.stats, CHOICE, TargetText(SEEN, whole(1)), np.zeros(1), np.zeros(2)
    )
    keys, weights, ages, kept, counts = Continuations(0).arrays
    follow(keys, weights, kept, counts, 1, whole(1 + ngram_table.LONGEST), np.zeros(1), whole(1))
    count(keys, weights, ages, kept, counts, 1, whole(1), 0, 0)
    text, chances, made = TextIndex().arrays, CopyChances().table, whole(9)
    enter(text, np.zeros(1, np.int32))
    known = keys, weights, kept, counts, 1
    chain(
        text, text, known, chances, whole(1), 0, whole(1), whole(5), np.zeros(1), whole(1), made, np.zeros(1)
    )
    learn_chain(*chances, made, whole(1))
    run_worker(WORKERS.queue)
    for entry in ENTRIES:
        # Other types are a mistake, and would make an answer wait for seconds.
        entry.disable_compile()


if __name__ == "__main__":
    compile_all()
