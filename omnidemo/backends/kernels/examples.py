"""Arguments of the types that kernels are compiled for, of a model of zeros."""

from __future__ import annotations

import numpy as np

from omnidemo.backends.call_layout import (
    SPAN,
    Array,
    Cache,
    Choice,
    Marks,
    Model,
    NoiseBlocks,
    Rule,
    Sampling,
    Scores,
    Side,
    Stop,
    Whole,
    Workers,
)
from omnidemo.backends.packed_forms import FLOAT32
from omnidemo.backends.thread_pool import new_queue
from omnidemo.vocabulary.trie_table import PROBES


def zeros(*shape: int) -> Array:
    return np.zeros(shape, np.float32)


def whole(*shape: int) -> Whole:
    return np.zeros(shape, np.int64)


ROWS = zeros(2, 3)[:, :2]  # that lie apart
WEIGHT = zeros(4, 4)  # as many as the largest matrix needs
MATRICES = np.array([(FLOAT32, WEIGHT.ctypes.data, 4 if i < 8 else 1) for i in range(9)])
KEPT = zeros(2, SPAN, 4)  # keys and values
MODEL = Model(
    Cache(KEPT.ctypes.data, 4, 1, SPAN, 4),
    MATRICES,
    zeros(1, 2, 4),
    zeros(4),
    zeros(1, 12),
    zeros(1, 9),
    zeros(1, 4),
    zeros(1, 4),
    1e-5,
)
WORKERS, SCORES = Workers(new_queue(), 1, 1), Scores(zeros(1, 1), zeros(1, 4), zeros(1, 4))
SAMPLING, SEEN = Sampling(0.0, 0, 1.0, 0.0, 1.0), Marks(np.zeros(1, np.bool_), whole(2))
CHOICE = Choice(SAMPLING, np.zeros(1), NoiseBlocks(np.zeros((0, 0), np.uint32), whole(0, 0), whole(2)))
SIDE = Side(MODEL, whole(1), 0, SEEN)
LIMITS, FLAGS = np.zeros(1, np.int32), np.zeros(1, np.bool_)
RULE = Rule(LIMITS, LIMITS, FLAGS, whole(1 + PROBES), whole(2 + PROBES, 3), whole(2 + PROBES, 4))
STOP = Stop(1.0, 0.0, 0.0, np.zeros((1, 5)))
