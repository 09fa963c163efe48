"""Filters and the penalty by compiled code are those of `SamplingParams`, row by row."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from omnidemo.backends import compile_kernels
from omnidemo.backends.call_layout import Sampling
from omnidemo.backends.compiled_passes import marks_of
from omnidemo.decoding.sampling import SamplingParams, Seen

TOP_K, TOP_P, MIN_P, PENALTY = (0, 1, 3, 40, 9_999), (1.0, 0.9, 0.3, 1e-6), (0.0, 0.05, 1.0), (1.0, 1.3, 0.8)
ALL = [
    SamplingParams(heat, *rest)
    for heat in (0.2, 1.0, 1.7)
    for rest in itertools.product(TOP_K, TOP_P, MIN_P, PENALTY)
]


def filtered(row: Any, sampling: SamplingParams, seen: Seen | None = None) -> Any:
    """The distribution by compiled code; None where it says that there is none."""
    kernels: Any = compile_kernels.kernels()
    assert kernels is not None
    probs = np.array(row, np.float32)
    return probs if kernels.distribution(probs, Sampling(*sampling.numbers), marks_of(seen)) else None


def wanted(row: Any, sampling: SamplingParams, ids: list[int]) -> Any:
    seen = np.zeros(len(row), np.bool_)
    seen[ids] = True
    return sampling.probs(sampling.penalised(row, seen))


def same(row: Any, sampling: SamplingParams, ids: list[int]) -> None:
    found, law = filtered(row, sampling, Seen(len(row)).hold(ids, 0)), wanted(row, sampling, ids)
    assert found.sum() == pytest.approx(1.0, abs=1e-5)
    assert np.allclose(found, law, rtol=1e-4, atol=1e-7), sampling


@pytest.fixture(scope="module", autouse=True)
def ready() -> None:
    assert compile_kernels.wait()


@pytest.mark.parametrize("size", [1, 2, 257, 2_000, 8_192])
@pytest.mark.parametrize("scale", [0.3, 3.0, 12.0])
def test_a_row_is_filtered_as_the_reference_does(size: int, scale: float) -> None:
    chance = np.random.default_rng(size)
    row = (scale * chance.standard_normal(size)).astype(np.float32)
    barred = row.copy()
    barred[chance.random(size) < 0.4] = -np.inf
    barred[size // 2] = 1.0
    for place, sampling in enumerate(ALL):
        same(row if place % 2 else barred, sampling, chance.integers(0, size, 40).tolist())


@pytest.mark.parametrize("sampling", [one for one in ALL if one.temperature == 1.0], ids=str)
def test_among_equals_the_lowest_ids_stay(sampling: SamplingParams) -> None:
    """Powers of two, so that nothing is rounded."""
    for row in (np.zeros(64), np.repeat([3.0, 0.0], 32), np.tile([0.0, 3.0, 3.0, -np.inf], 16)):
        same((row * np.log(2.0)).astype(np.float32), sampling, [1, 5, 40])


# So far apart that no rounding makes equals of two, or two of equals.
LOGITS = st.integers(-2560, 2560).map(lambda number: number / 64) | st.just(float("-inf"))


@settings(max_examples=300, deadline=None)
@given(
    st.lists(LOGITS, min_size=1, max_size=40).filter(lambda row: max(row) > -np.inf),
    st.sampled_from(ALL),
    st.lists(st.integers(0, 39), max_size=5),
)
@example([0.0], SamplingParams(1.0, 1, 0.1, 1.0, 2.0), [0])
@example([-5.0, float("-inf")], SamplingParams(1.0, 2, 0.5), [])
def test_any_row(row: list[float], sampling: SamplingParams, ids: list[int]) -> None:
    logits = np.array(row, np.float32)
    ids = [token for token in ids if token < len(row)]
    same_but_for_borders(logits, sampling, ids)


def same_but_for_borders(row: Any, sampling: SamplingParams, ids: list[int]) -> None:
    """As `same`, but a token whose being there is decided by rounding may stay in one and not in the other
    (docs/kernels.md, "Filters"): then a border that is a little higher or lower makes both alike."""
    found = filtered(row, sampling, Seen(len(row)).hold(ids, 0))
    assert found.sum() == pytest.approx(1.0, abs=1e-5)
    laws = (wanted(row, nudged, ids) for nudged in [sampling, *nudges(sampling)])
    assert any(np.allclose(found, law, rtol=1e-4, atol=1e-7) for law in laws), sampling


def nudges(sampling: SamplingParams) -> list[SamplingParams]:
    """The same with borders that are a little higher or lower."""
    by = (1 - 3e-6, 1.0, 1 + 3e-6)
    return [
        SamplingParams(
            sampling.temperature,
            sampling.top_k,
            sampling.top_p * p,
            sampling.min_p * m,
            sampling.repetition_penalty,
        )
        for p, m in itertools.product(by, by)
    ]


@pytest.mark.parametrize(
    "sampling",
    [SamplingParams(0.0, repetition_penalty=1.3), SamplingParams(1.0, top_k=2), SamplingParams(1.0)],
    ids=str,
)
@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
def test_rows_that_are_no_numbers_have_none(sampling: SamplingParams, bad: float) -> None:
    row = np.full(300, bad, np.float32)
    assert filtered(row, sampling) is None
    row[5] = 1.0
    assert (filtered(row, sampling) is None) == (bad > 0 or bad != bad)


def test_greedy_rows_are_penalised_alone() -> None:
    row = np.array([2.0, 1.9, -1.0, 0.0], np.float32)
    sampling = SamplingParams(0.0, 1, 0.5, 0.5, 2.0)
    assert filtered(row, sampling, Seen(4).hold([0, 2], 0)).tolist() == pytest.approx([1.0, 1.9, -2.0, 0.0])


def test_what_is_seen_is_what_the_ids_are() -> None:
    chance = np.random.default_rng(3)
    seen, ids, settled = Seen(50), [], 0
    for _ in range(200):
        del ids[settled + chance.integers(0, 5) :]
        ids += chance.integers(0, 50, chance.integers(0, 4)).tolist()
        settled = int(chance.integers(settled, len(ids) + 1))
        seen.hold(ids, settled)
        marks, order = seen.arrays
        assert set(order[1 : 1 + order[0]].tolist()) == set(np.flatnonzero(marks).tolist()) == set(ids)
        assert (
            len(set(order[1 : 1 + order[0]].tolist())) == order[0] and seen.there.tolist() == marks.tolist()
        )
        for token in chance.integers(0, 50, 3).tolist():  # as compiled code does
            if not marks[token]:
                marks[token], order[0] = True, order[0] + 1
                order[order[0]] = token
        if settled > 40:
            seen, ids, settled = Seen(50), [], 0
