"""The table of continuations in compiled code: the same numbers, and a million tokens."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from omnidemo.backends import compile_kernels
from omnidemo.decoding.sources.continuations import Continuations
from omnidemo.decoding.sources.ngram_table import KEPT, WAYS


@pytest.fixture(autouse=True)
def compiled() -> Iterator[None]:
    assert compile_kernels.wait(), compile_kernels.failure()
    yield


def answers(count: int) -> list[list[int]]:
    """Answers of 40 ids of which most go on as others have."""
    draw = np.random.default_rng(0)
    phrases = [draw.integers(1, 150_000, draw.integers(2, 9)).tolist() for _ in range(40)]
    return [[token for at in draw.integers(0, 40, 20) for token in phrases[at]][:40] for _ in range(count)]


def test_compiled_code_computes_the_same_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    fast, plain = Continuations(1 << 20), Continuations(1 << 20)
    known = answers(30)
    for text in known:
        fast.learn(text)
    chains = [fast.follow(text[:end], 16) for text in known for end in range(0, 40, 3)]
    monkeypatch.setattr("omnidemo.decoding.sources.compiled.functions", None)
    for text in known:
        plain.learn(text)
    assert chains == [plain.follow(text[:end], 16) for text in known for end in range(0, 40, 3)]
    assert sum(map(len, chains)) > 500 and fast.contexts == plain.contexts
    assert all(np.array_equal(one, other) for one, other in zip(fast.arrays, plain.arrays, strict=True))


def test_a_million_tokens_take_no_more_memory_and_the_old_goes() -> None:
    """In answers of a hundred, in the room that a line has."""
    table, most = Continuations(16 << 20), 0
    text = np.random.default_rng(0).integers(1, 150_000, 1_000_000).tolist()
    for begin in range(0, len(text), 100):
        part = text[begin : begin + 100]
        table.learn(part)
        most = max(most, table.nbytes)
    assert 8 << 20 < most <= 16 << 20 and table.contexts <= WAYS << table.bits
    assert [token for token, *_ in table.follow(text[-50:-20], 5)] == text[-20:-15]
    old = [table.follow(text[at : at + 4], 1) for at in range(0, 50_000, 100)]
    assert all(not found or found[0][2] < 9 for found in old), "no context of four is as old as that"
    assert len(table.arrays[3]) == KEPT * len(table.arrays[0])
