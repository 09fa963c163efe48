"""Evidence, payback and the cost to a chat, against hand-computed values."""

from __future__ import annotations

import numpy as np
import pytest

from omnidemo.runtime.gain import (
    HORIZON,
    POOR_UPDATES,
    SURE_UPDATES,
    TRIAL_REQUESTS,
    Effect,
    Evidence,
    Payback,
    efficiency,
    seconds_saved,
    speed_gain,
)


def test_evidence_is_the_paired_mean_and_its_standard_error() -> None:
    draw = np.random.default_rng(0)
    tried, trusted = draw.random(200), draw.random(200)
    evidence = Evidence(3)
    evidence.add(tried[:120], trusted[:120], 3)
    assert evidence.verdict() == "open"  # three answers are too few, whatever they say
    evidence.add(tried[120:], trusted[120:], 3)
    difference = tried - trusted
    assert evidence.mean == pytest.approx(difference.mean()) and evidence.error == pytest.approx(difference.std(ddof=1) / np.sqrt(200))
    assert (evidence.against, evidence.requests, evidence.positions) == (3, 6, 200)


@pytest.mark.parametrize(("shift", "verdict"), [(0.3, "better"), (0.0, "open"), (-0.12, "open"), (-0.3, "worse")])
def test_a_version_is_trusted_soon_and_taken_back_only_when_it_is_sure(shift: float, verdict: str) -> None:
    difference = shift + np.array([-1.0, 1.0] * 50)  # standard error 0.1005
    evidence = Evidence()
    evidence.add(difference, np.zeros(100), 5)
    assert evidence.verdict() == verdict
    same = Evidence()
    same.add(np.ones(50), np.ones(50), 9)
    assert same.verdict() == "open"
    broken = Evidence()
    broken.add(np.full(9, np.nan), np.ones(9), 9)
    assert broken.verdict() == "open" and broken.mean == 0


def test_effect_is_the_mean_of_both() -> None:
    effect = Effect(2)
    assert effect.values() == {}
    effect.add(np.array([1.0, 0.0, np.nan]), np.array([0.0, 0.0, 1.0]), 1)
    effect.add(np.array([1.0, 1.0]), np.array([1.0, 0.0]), 2)
    assert effect.values() == {"acceptance_before": 0.25, "acceptance_after": 0.75, "requests": 3.0}


def test_speed_follows_leviathans_formula() -> None:
    assert efficiency(0.5, 4) == pytest.approx(1.9375) and efficiency(0.0, 4) == 1 and efficiency(1.0, 4) == pytest.approx(5, rel=0.01)
    assert speed_gain(0.5, 0.1, 4) == pytest.approx(efficiency(0.6, 4) / 1.9375 - 1) and speed_gain(0.5, -0.1, 4) < 0
    before, after = 100 / efficiency(0.5, 4) * 0.02, 100 / efficiency(0.6, 4) * 0.02  # seconds of an answer of 100 tokens
    assert seconds_saved(0.5, 0.1, 4, 100, 0.02) == pytest.approx(HORIZON * (before - after))


def test_learning_rests_after_three_estimates_that_do_not_pay_and_tries_again() -> None:
    payback = Payback()
    assert payback.gain is None
    assert all(payback.take(0.0, 1.0) for _ in range(SURE_UPDATES))
    assert [payback.take(saved, 1.0) for saved in (0.0, 0.0, 2.0, 0.0, 0.0)] == [True] * 5
    assert not payback.take(0.0, 1.0) and payback.converged and payback.rest == TRIAL_REQUESTS
    for _ in range(TRIAL_REQUESTS):
        payback.request()
    assert payback.rest == 0 and payback.take(0.0, 1.0) and not payback.converged
    payback.measured(0.02)
    assert payback.gain == pytest.approx(0.02)  # the trial speaks for itself
    assert payback.take(2.0, 1.0) and all(payback.take(0.0, 1.0) for _ in range(POOR_UPDATES - 1))
    assert not payback.take(0.0, 1.0)
    payback.restart()
    assert not payback.converged and payback.gain is None and payback.take(0.0, 1.0)
    assert payback.take(None, 1.0)


def test_the_expected_gain_forgets() -> None:
    payback = Payback()
    for gain in (0.1, 0.1, 0.1, float("nan"), 0.0, 0.0, 0.0, 0.0, 0.0, 0.0):
        payback.measured(gain)
    assert payback.gain is not None and 0 < payback.gain < 0.03
