"""The replay buffer: bounded, four orders, seeded, and batches for the acceptance head that the drafter has
not learnt from."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from omnidemo.core.records import Trace
from omnidemo.learning.distill.trace_buffer import TraceBuffer, usable


def make_trace(accepted: float = 0.5, n: int = 10) -> Trace:
    flags = np.arange(n) < round(accepted * n)
    return Trace(
        drafter_ids=np.arange(n + 1),
        starts=np.arange(1, n + 1),
        lengths=np.ones(n, dtype=np.int64),
        accepted=flags,
        p=np.full(n, 0.5, dtype=np.float32),
        top_ids=np.zeros((n, 2), dtype=np.int64),
        top_p=np.full((n, 2), 0.3, dtype=np.float32),
    )


def filled(order: str, traces: list[Trace], fresh: int, seed: int = 0) -> TraceBuffer:
    """A buffer with these traces, of which the last `fresh` have not been taken."""
    buffer = TraceBuffer(1 << 24, seed, order)  # type: ignore[arg-type]
    for trace in traces[: len(traces) - fresh]:
        buffer.add(trace)
    buffer.take(1, 1)
    for trace in traces[len(traces) - fresh :]:
        buffer.add(trace)
    return buffer


def numbers(traces: list[Trace], batch: list[Trace]) -> list[int]:
    place = {id(trace): index for index, trace in enumerate(traces)}
    return [place[id(trace)] for trace in batch]


@pytest.mark.parametrize("order", ["mixed", "newest", "informative", "uniform"])
def test_every_order_is_seeded_takes_once_and_repeats_nothing_in_a_batch(order: str) -> None:
    traces = [make_trace(index / 30) for index in range(30)]
    one, two = filled(order, traces, 4), filled(order, traces, 4)
    batches = one.take(6, 8)
    assert [numbers(traces, batch) for batch in batches] == [
        numbers(traces, batch) for batch in two.take(6, 8)
    ]
    assert len(batches) == 6 and all(len({id(trace) for trace in batch}) == 8 for batch in batches)
    assert one.fresh == 0 and one.take(6, 8) == []
    few = filled(order, traces[:3], 3)
    assert all(len(batch) == 3 for batch in few.take(2, 8))
    # five fresh ones, of which a batch may have room for four
    for batch in filled(order, traces, 5).take(20, 8):
        assert len({id(trace) for trace in batch}) == 8


def test_mixed_is_half_fresh() -> None:
    traces = [make_trace() for _ in range(30)]
    for batch in filled("mixed", traces, 4).take(10, 8):
        assert sum(index >= 26 for index in numbers(traces, batch)) == 4


def test_newest_stays_among_the_newest_and_uses_them_evenly() -> None:
    traces = [make_trace() for _ in range(40)]
    counts = Counter(
        index for batch in filled("newest", traces, 4).take(8, 8) for index in numbers(traces, batch)
    )
    assert set(counts) == set(range(24, 40)) and set(counts.values()) == {4}
    many = Counter(
        index for batch in filled("newest", traces, 25).take(25, 8) for index in numbers(traces, batch)
    )
    # all that is fresh, where that is more
    assert set(many) == set(range(15, 40)) and set(many.values()) == {8}


def test_informative_prefers_what_was_guessed_worst() -> None:
    traces = [make_trace(1.0) for _ in range(20)] + [make_trace(0.0) for _ in range(20)]
    buffer = filled("informative", traces, 4)
    counts = Counter(index >= 20 for batch in buffer.take(50, 8) for index in numbers(traces, batch))
    assert counts[True] > 0.85 * counts.total() and counts[False] > 0  # and none is ruled out


def test_uniform_takes_all_alike() -> None:
    traces = [make_trace(index % 2) for index in range(20)]
    counts = Counter(
        index for batch in filled("uniform", traces, 1).take(500, 5) for index in numbers(traces, batch)
    )
    assert len(counts) == 20 and min(counts.values()) > 85 and max(counts.values()) < 170  # 125 expected


def test_fresh_traces_and_draws_are_what_no_update_has_learnt_from() -> None:
    traces = [make_trace() for _ in range(12)]
    buffer = filled("mixed", traces, 5)
    assert numbers(traces, buffer.fresh_traces()) == [7, 8, 9, 10, 11]
    drawn = buffer.draw(3, 2)
    assert [len(batch) for batch in drawn] == [2, 2, 1]
    assert sorted(index for batch in drawn for index in numbers(traces, batch)) == [7, 8, 9, 10, 11]
    assert buffer.fresh == 5  # nothing was taken
    buffer.take(2, 4)
    assert buffer.fresh_traces() == []
    after = buffer.draw(1, 4)  # the update that begins now has not learnt from them either
    assert len(after) == 1 and len(after[0]) == 4 and set(numbers(traces, after[0])) <= {7, 8, 9, 10, 11}
    buffer.add(make_trace())
    assert [len(batch) for batch in buffer.draw(8, 8)] == [1]
    assert TraceBuffer(1000).draw(2, 2) == []


def test_drawing_does_not_change_what_is_taken() -> None:
    traces = [make_trace() for _ in range(20)]
    quiet, asked = filled("mixed", traces, 4), filled("mixed", traces, 4)
    asked.draw(2, 2)
    assert [numbers(traces, batch) for batch in quiet.take(3, 6)] == [
        numbers(traces, batch) for batch in asked.take(3, 6)
    ]


def test_bytes_are_bounded() -> None:
    size = make_trace().nbytes
    buffer = TraceBuffer(10 * size)
    traces = [make_trace() for _ in range(26)]
    for trace in traces:
        buffer.add(trace)
    assert len(buffer) == 10 and buffer.nbytes == 10 * size and buffer.fresh == 10
    assert numbers(traces, buffer.fresh_traces()) == list(range(16, 26))
    buffer.add(make_trace(n=4000))  # larger than the buffer: it does not stay
    assert len(buffer) == 0 and buffer.nbytes == 0 and buffer.take(2, 2) == [] and buffer.draw(2, 2) == []


def test_usable() -> None:
    good = make_trace()
    assert usable(good)
    bad = make_trace()
    bad.p[3] = np.nan
    assert not usable(bad)
    unspelled = make_trace()
    unspelled.lengths[:] = 0
    assert not usable(unspelled)


def test_what_was_copied_says_nothing_of_the_drafter() -> None:
    trace = replace(make_trace(n=4), accepted=np.array([True, True, False, False]))
    assert trace.acceptance == 0.5
    assert replace(trace, copied=np.array([True, False, False, False])).acceptance == pytest.approx(1 / 3)
    assert replace(trace, copied=np.array([True, True, False, False])).acceptance == 0.0
    assert replace(trace, copied=np.ones(4, dtype=bool)).acceptance == 0.0, (
        "nothing was the drafter's to guess"
    )


def test_earlier_traces_are_those_that_an_update_has_taken() -> None:
    traces = [make_trace() for _ in range(20)]
    buffer = filled("mixed", traces, 4)
    assert sorted(numbers(traces, buffer.earlier(99))) == list(range(16)) and len(buffer.earlier(5)) == 5
    again = filled("mixed", traces, 4)
    assert numbers(traces, again.take(3, 6)[0]) == numbers(traces, buffer.take(3, 6)[0]), "looking changes it"
    assert TraceBuffer(1 << 20).earlier(5) == []
