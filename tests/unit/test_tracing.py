"""What is kept of the target's law for training."""

from __future__ import annotations

import numpy as np
import pytest

from omnidemo.decoding.tracing import FIRSTS, Tracer, _largest
from tests.support.worlds import NESTED


@pytest.mark.parametrize("k", [1, 5, 40])
def test_the_largest_are_those_of_a_sort(k: int) -> None:
    rows = np.random.default_rng(k).random((7, 40))
    values, places = _largest(rows, k)
    assert np.array_equal(np.sort(values), np.sort(rows)[:, -k:])
    assert np.array_equal(np.sort(places), np.sort(np.argsort(rows)[:, -k:]))
    assert np.array_equal(values, np.take_along_axis(rows, places, 1))


def test_what_cannot_be_spelled_is_no_first_token_and_the_first_place_is_never_padding() -> None:
    vocabulary = NESTED.map
    whole = [number for number in range(len(vocabulary.drafters)) if vocabulary.spelling(number)]
    first = vocabulary.first_tokens(np.array(whole))
    assert first.tolist() == [vocabulary.spelling(number)[0] for number in whole]  # type: ignore[index]
    lost = [number for number in range(len(vocabulary.drafters)) if not vocabulary.spelling(number)]
    probs = np.zeros((2, len(vocabulary.drafters)))
    probs[0, whole[-1]] = 1.0
    probs[1, lost or []] = 1.0 / max(1, len(lost))
    ids, p = Tracer(vocabulary, 0, 8)._first_tokens(probs)
    assert ids.shape == p.shape == (2, min(FIRSTS, len(vocabulary.targets)))
    assert (ids[0, 0], p[0, 0]) == (first[-1], 1.0) and p[1].sum() == 0
    assert (ids[:, 0] >= 0).all() and (ids[:, 1:] == -1).all()
