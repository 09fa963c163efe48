"""Topic shifts in synthetic acceptances."""

from __future__ import annotations

import random

import pytest

from omnidemo.learning.probes.drift import RECENT, DriftDetector, shifts


def noisy(levels: list[float], deviation: float, seed: int) -> list[float]:
    draw = random.Random(seed)
    return [min(1.0, max(0.0, draw.gauss(level, deviation))) for level in levels]


@pytest.mark.parametrize(("drop", "deviation"), [(0.15, 0.05), (0.25, 0.08), (0.4, 0.1)])
def test_a_drop_is_found_soon_and_placed_well(drop: float, deviation: float) -> None:
    for seed in range(20):
        values = noisy([0.6] * 60 + [0.6 - drop] * 40, deviation, seed)
        found = [index for index in shifts(values) if index >= 54]
        assert len(found) == 1 and abs(found[0] - 60) <= 4
        detector = DriftDetector()
        when = next(index for index, value in enumerate(values) if detector.add(value) and index >= 54)
        assert when <= 60 + RECENT + 3


def test_every_shift_of_a_sequence_is_found_once() -> None:
    values = noisy([0.7] * 40 + [0.5] * 10 + [0.68] * 40 + [0.4] * 30, 0.04, 3)
    assert [round(index, -1) for index in shifts(values)] == [40, 90]


@pytest.mark.parametrize("deviation", [0.03, 0.08, 0.15])
def test_noise_learning_and_slow_drift_are_no_shifts(deviation: float) -> None:
    level = sum(len(shifts(noisy([0.6] * 200, deviation, seed))) for seed in range(30))
    rising = sum(
        len(shifts(noisy([0.4 + 0.3 * min(1, n / 100) for n in range(200)], deviation, seed)))
        for seed in range(30)
    )
    falling = sum(
        len(shifts(noisy([0.6 - 0.1 * n / 200 for n in range(200)], deviation, seed))) for seed in range(30)
    )
    assert level <= 8 and rising <= 8 and falling <= 12  # in 6,000 requests each


def test_values_that_are_missing_and_short_sequences_do_no_harm() -> None:
    assert shifts([]) == [] and shifts([0.9] * 10 + [0.1] * 5) == []
    values: list[float | None] = [0.6, 0.62, None, None] * 20 + [0.2, None] * 10
    assert shifts(values) == [80]
