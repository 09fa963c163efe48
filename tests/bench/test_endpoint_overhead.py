"""The measurement of the endpoint: that it compares like with like. What it finds means nothing on a busy machine."""

from __future__ import annotations

import pytest

from omnidemo.bench.overhead.endpoint_overhead import Paired, run, summary
from omnidemo.config import Settings


def paired(ratio: float, tokens: int = 8, same: bool = True) -> Paired:
    return Paired("x", tokens, 4, 100.0, 100.0 * ratio, 101.0, same)


def test_only_whole_answers_with_the_same_text_count() -> None:
    pairs = [paired(0.9), paired(1.0), paired(0.8), paired(3.0, tokens=7), paired(3.0, same=False)]
    count, middle, (low, high) = summary(pairs, 8)
    assert (count, middle) == (3, 0.9) and low == pytest.approx(0.85) and high == pytest.approx(0.95)
    with pytest.raises(ValueError, match="take fewer tokens, or more prompts"):
        summary(pairs, 9)


def test_both_ways_give_the_same_answer() -> None:
    (one, other) = run(Settings(backend="reference"), ["Tell me a story with a duck.", "What is 37 + 25?"], 1, 12)
    assert one.same and one.tokens == 12 and 1 < one.events <= 12
    assert other.same and one.python > 0 and one.endpoint > 0 and one.engine
