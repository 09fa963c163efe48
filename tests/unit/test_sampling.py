"""Rows of logits and of laws."""

from __future__ import annotations

import numpy as np
import pytest

from omnidemo.decoding.sampling import chosen, highest, highest_each, softmax, total


def test_the_highest_is_the_first_among_equals() -> None:
    logits = np.array([[0.0, 2.0, 2.0, -np.inf], [3.0, 3.0, 3.0, 3.0], [-np.inf, -np.inf, -5.0, -6.0]])
    assert highest_each(logits) == [1, 0, 2] == [highest(row) for row in logits]


def test_single_entries_of_laws() -> None:
    laws = softmax(np.random.default_rng(1).random((3, 50)))
    assert chosen(laws, [4, 7]) == [float(laws[0, 4]), float(laws[1, 7])]
    assert total(laws[2], [1, 3, 49]) == pytest.approx(float(laws[2, 1] + laws[2, 3] + laws[2, 49]), rel=1e-6)
