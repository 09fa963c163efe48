"""What is said of a version by its guesses on new answers and on earlier ones."""

from __future__ import annotations

import numpy as np
import pytest

from omnidemo.learning.distill.evaluation import EARLIER, Measured, verdict_of_both


def measured(change: float, answers: int = EARLIER, positions: int = 400) -> list[Measured]:
    """A version that guesses better by `change`, with noise of a mean of 0."""
    noise = np.random.default_rng(3).normal(0, 0.1, positions)
    trusted = np.full(positions, 0.5)
    return [Measured(trusted + change + noise - noise.mean(), trusted, answers)]


@pytest.mark.parametrize(
    ("new", "earlier", "verdict"),
    [
        (0.05, 0.0, "better"),
        (0.05, -0.004, "better"),  # within one standard error, 0.005
        (0.05, -0.01, "open"),
        (0.05, -0.05, "worse"),  # it learned what came last and forgot the rest
        (0.0, 0.05, "open"),  # earlier answers, of which it may have learned, do not speak for it
        (-0.05, 0.05, "worse"),
    ],
)
def test_a_version_has_to_hold_on_earlier_answers(new: float, earlier: float, verdict: str) -> None:
    assert verdict_of_both(measured(new), new, measured(earlier)) == verdict


def test_without_earlier_answers_the_new_ones_decide() -> None:
    assert [verdict_of_both(measured(change), change, []) for change in (0.05, 0.0, -0.05)] == [
        "better", "open", "worse",
    ]  # fmt: skip
