"""Evidence, payback and the cost to a chat, against hand-computed values."""

from __future__ import annotations

import numpy as np
import pytest

from omnidemo.core.config import Settings
from omnidemo.learning.distill.evaluation import (
    EVIDENCE_DECAY,
    MOST_HALVINGS,
    SPAN,
    UNSEEN,
    Evaluation,
    Measured,
    difference,
    effect,
    verdict_on,
)
from omnidemo.learning.distill.payback import (
    HORIZON,
    POOR_UPDATES,
    SURE_UPDATES,
    TRIAL_REQUESTS,
    ChatCost,
    Payback,
    efficiency,
    seconds_saved,
    speed_gain,
)
from omnidemo.learning.distill.trainer_status import State, explain
from omnidemo.learning.distill.worker import paced, plan_of
from tests.support.learning import make_trace, noise


def test_evidence_is_the_paired_mean_and_its_standard_error() -> None:
    draw = np.random.default_rng(0)
    tried, trusted = draw.random(200), draw.random(200)
    evidence = [Measured(tried[:120], trusted[:120], 3)]
    assert verdict_on(evidence, 1.0) == "open"  # three answers are too few, whatever they say
    evidence.append(Measured(tried[120:], trusted[120:], 3))
    differences, weights = tried - trusted, np.repeat([EVIDENCE_DECAY, 1.0], [120, 80])
    mean = np.average(differences, weights=weights)
    variance = np.average((differences - mean) ** 2, weights=weights) / (
        1 - (weights**2).sum() / weights.sum() ** 2
    )
    assert difference(evidence) == pytest.approx(
        (mean, np.sqrt(variance * (weights**2).sum()) / weights.sum())
    )
    once = difference([Measured(tried, trusted, 4)])
    assert once == pytest.approx((differences.mean(), differences.std(ddof=1) / np.sqrt(200)))


def test_a_version_that_goes_wrong_is_not_hidden_by_the_good_of_those_before_it() -> None:
    draw = np.random.default_rng(0)
    good = [
        Measured(0.5 + draw.choice([-0.5, 0.5], 150, p=[0.5, 0.5]), np.full(150, 0.495), 4) for _ in range(30)
    ]
    assert verdict_on(good, 0.005) != "worse"
    assert verdict_on([*good, Measured(np.full(300, 0.2), np.full(300, 0.495), 4)], -0.295) == "worse"


@pytest.mark.parametrize(
    ("shift", "wanted"), [(0.3, "better"), (0.0, "open"), (-0.3, "open"), (-0.4, "worse")]
)
def test_a_version_is_trusted_soon_and_taken_back_only_when_it_is_sure(shift: float, wanted: str) -> None:
    evidence = [Measured(shift + np.array([-1.0, 1.0] * 50), np.zeros(100), 5)]  # standard error 0.1005
    assert verdict_on(evidence, shift) == wanted
    # the published version alone says the opposite of the evidence on all
    assert verdict_on(evidence, -np.sign(shift)) == "open"
    assert (
        verdict_on([Measured(np.ones(50), np.ones(50), 9)], 0.0)
        == verdict_on([Measured(np.ones(1), np.zeros(1), 9)], 1.0)
        == "open"
    )


def test_what_is_not_finite_is_left_out() -> None:
    evaluation = Evaluation(None)
    assert (
        evaluation.conclude([np.full(9, np.nan), np.ones(9)], 9, 1, 0) == ("open", {})
        and not evaluation.evidence
    )
    found, measured = evaluation.conclude(
        [np.array([1.0, np.nan, 1.0]), np.array([0.0, 0.0, np.inf])], 9, 1, 0
    )
    assert (
        measured == {"acceptance_before": 0.0, "acceptance_after": 1.0, "requests": 9.0} and found == "open"
    )


def test_effect_is_the_mean_of_both() -> None:
    assert effect([]) == {}
    found = effect(
        [
            Measured(np.array([1.0, 0.0]), np.array([0.0, 0.0]), 1),
            Measured(np.array([1.0, 1.0]), np.array([1.0, 0.0]), 2),
        ]
    )
    assert found == {"acceptance_before": 0.25, "acceptance_after": 0.75, "requests": 3.0}


def test_speed_follows_leviathans_formula() -> None:
    assert (
        efficiency(0.5, 4) == pytest.approx(1.9375)
        and efficiency(0.0, 4) == 1
        and efficiency(1.0, 4) == pytest.approx(5, rel=0.01)
    )
    assert (
        speed_gain(0.5, 0.1, 4) == pytest.approx(efficiency(0.6, 4) / 1.9375 - 1)
        and speed_gain(0.5, -0.1, 4) < 0
    )
    # seconds of an answer of 100 tokens
    before, after = 100 / efficiency(0.5, 4) * 0.02, 100 / efficiency(0.6, 4) * 0.02
    assert seconds_saved(0.5, 0.1, 4, 100, 0.02) == pytest.approx(HORIZON * (before - after))


def test_learning_rests_after_three_estimates_that_do_not_pay_and_tries_again() -> None:
    payback = Payback()
    assert payback.gain is None
    assert all(payback.take(0.0, 1.0) for _ in range(SURE_UPDATES))
    assert [payback.take(saved, 1.0) for saved in (0.0, 0.0, 2.0, 0.0, 0.0)] == [True] * 5
    assert not payback.take(0.0, 1.0) and payback.converged and payback.answers_left == TRIAL_REQUESTS
    for _ in range(TRIAL_REQUESTS):
        payback.request()
    assert payback.answers_left == 0 and payback.take(0.0, 1.0) and not payback.converged
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


def judged(difference: float, count: int = 200) -> list[np.ndarray]:
    """Acceptance of a version and of the trusted one, with some noise in the difference."""
    before = np.full(count, 0.5)
    return [before + difference + np.tile([-0.1, 0.1], count // 2), before]


def test_setbacks_slow_learning_down_within_limits_and_a_better_version_ends_them() -> None:
    evaluation = Evaluation(None)
    for version in range(1, 9):
        assert evaluation.conclude(judged(-0.3), 4, version, 0)[0] == "worse"
        evaluation.note_rollback(version, 0, None)
    assert (
        evaluation.pace == 0.5**MOST_HALVINGS
        and evaluation.skip == 2**MOST_HALVINGS
        and evaluation.rolled_back == 8
    )
    assert "Version 8 guessed worse than the base drafter" in evaluation.remark
    skipped = 0
    while not evaluation.wanted(False, ChatCost(), 1.0, None):
        skipped += 1
    assert skipped == 2**MOST_HALVINGS
    found, measured = evaluation.conclude(judged(0.3), 4, 9, 0)
    assert found == "better" and evaluation.pace == 1.0 and evaluation.remark == ""
    assert measured == pytest.approx({"acceptance_before": 0.5, "acceptance_after": 0.8, "requests": 4})


def test_clear_gains_quicken_a_line_and_what_gets_worse_slows_it_down() -> None:
    evaluation = Evaluation(None)
    for version, pace in enumerate((2.0, 4.0, 8.0, 8.0), 1):
        assert evaluation.conclude(judged(0.3), 4, version, version - 1)[0] == "better"
        assert evaluation.pace == pace
    assert evaluation.conclude(judged(0.011), 4, 5, 4)[0] == "better"
    assert evaluation.pace == 8.0, "within two standard errors it may be chance"
    assert evaluation.conclude(judged(0.3), 4, 6, 5, judged(-0.02))[0] == "open"
    assert evaluation.pace == 4.0, "earlier answers got worse"
    assert evaluation.conclude(judged(-0.3), 4, 7, 6)[0] == "worse"
    evaluation.note_rollback(7, 6, None)
    assert evaluation.pace == 0.5
    assert evaluation.conclude(judged(0.3), 4, 8, 6)[0] == "better"
    assert evaluation.pace == 1.0, "first it is back where it began"
    evaluation.chosen(0, None)
    evaluation.conclude(judged(0.3), 4, 9, 8)
    evaluation.chosen(0, None)
    assert evaluation.pace == 1.0, "a version that somebody chose begins again"


def test_the_pace_ends_at_the_quick_one_or_at_the_settings() -> None:
    careful = Settings(learning_rate=1e-4, steps_per_update=2)
    assert [paced(careful, pace) for pace in (0.5, 1, 2, 4, 8)] == [
        (5e-5, 2), (1e-4, 2), (2e-4, 4), (4e-4, 8), (5e-4, 12),
    ]  # fmt: skip
    quicker = Settings(learning_rate=2e-3, steps_per_update=30)
    assert paced(quicker, 8) == (2e-3, 30) and paced(quicker, 0.5) == (1e-3, 30)
    plan = plan_of(careful, 2)
    assert (plan.learning_rate, plan.steps, plan.warmup) == (2e-4, 4, 8)


def test_a_version_answers_for_itself_not_for_its_forerunners() -> None:
    evaluation = Evaluation(None)
    # too few answers
    assert (
        evaluation.conclude(judged(0.3), 1, 1, 0)[0] == evaluation.conclude(judged(0.3), 2, 2, 0)[0] == "open"
    )
    assert evaluation.conclude(judged(-0.05), 1, 3, 0)[0] == "open"  # all together better, this one worse
    evaluation = Evaluation(None)
    evaluation.conclude(judged(-0.3), 3, 1, 0)
    assert evaluation.conclude(judged(0.05), 1, 2, 0)[0] == "open"  # all together worse, this one better


def test_a_new_topic_starts_afresh() -> None:
    evaluation = Evaluation(None)
    evaluation.conclude(judged(-0.3), 4, 1, 0)
    evaluation.note_rollback(1, 0, None)
    evaluation.payback.converged = True
    for seed in range(30):
        evaluation.answer(make_trace(seed, accepted=0.8))
    assert (
        evaluation.shifts == 0 and evaluation.pace == 0.5 and evaluation.requests == evaluation.waiting == 30
    )
    assert len(evaluation.take()) == UNSEEN and evaluation.waiting == 0
    for seed in range(12):
        evaluation.answer(make_trace(seed, accepted=0.2))
    assert (
        evaluation.shifts == 1
        and evaluation.pace == 1.0
        and not evaluation.skip
        and not evaluation.payback.converged
    )


def test_gains_are_measured_over_several_updates() -> None:
    evaluation = Evaluation(None)
    first = [noise(number) for number in range(14)]
    for number, adapter in enumerate(first, 1):
        evaluation.kept(adapter)
        (_, trusted, *anchor) = evaluation.states(adapter, adapter)
        assert trusted is adapter and anchor == ([None] if number < 2 * SPAN else [first[SPAN - 1]])
    earlier, now = np.zeros(50), np.full(50, 0.08)
    evaluation.conclude([now, now, earlier], 4, 14, 13)
    assert evaluation.payback.gain == pytest.approx(0.01)  # eight updates since the anchor
    evaluation.conclude([now, now, np.full(50, np.nan)], 4, 14, 13)
    assert evaluation.payback.gain == pytest.approx(0.01)


@pytest.mark.parametrize(
    ("state", "left", "mode", "words"),
    [
        ("idle", 3, "idle", "The small model learns after 3 more answers."),
        ("idle", 1, "idle", "one more answer."),
        ("idle", 0, "idle", "starts at once"),
        ("idle", 0, "inline", "starts with the next answer"),
        ("converged", 40, "idle", "trains again when its guesses get worse, or after 40 more answers"),
        ("waiting", 0, "idle", "waits while an answer"),
    ],
)
def test_people_are_told_what_happens(state: State, left: int, mode: str, words: str) -> None:
    told = explain(state, left, "A remark.", mode)
    assert words in told and told.endswith(" A remark.")
    said = "Learning is switched off in the settings, or the drafter is a GGUF file, which cannot be trained."
    assert explain("off", 0, "A remark.") == said
