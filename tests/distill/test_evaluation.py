"""What is said of a version by its guesses on new answers and on earlier ones, against hand-computed values;
how fast a line learns, and what people are told."""

from __future__ import annotations

import numpy as np
import pytest

from omnidemo.core.config import Settings
from omnidemo.learning.distill.evaluation import (
    EARLIER,
    EVIDENCE_DECAY,
    UNSEEN,
    Evaluation,
    PairedAcceptance,
    difference,
    effect,
    verdict_of_both,
    verdict_on,
)
from omnidemo.learning.distill.trainer_status import State, explain
from omnidemo.learning.distill.worker import paced, plan_of
from tests.support.learning import make_trace


def measured(change: float, answers: int = EARLIER, positions: int = 400) -> list[PairedAcceptance]:
    """A version that guesses better by `change`, with noise of a mean of 0."""
    noise = np.random.default_rng(3).normal(0, 0.1, positions)
    trusted = np.full(positions, 0.5)
    return [PairedAcceptance(trusted + change + noise - noise.mean(), trusted, answers)]


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


def test_evidence_is_the_paired_mean_and_its_standard_error() -> None:
    draw = np.random.default_rng(0)
    tried, trusted = draw.random(200), draw.random(200)
    evidence = [PairedAcceptance(tried[:120], trusted[:120], 3)]
    assert verdict_on(evidence, 1.0) == "open"  # three answers are too few, whatever they say
    evidence.append(PairedAcceptance(tried[120:], trusted[120:], 3))
    differences, weights = tried - trusted, np.repeat([EVIDENCE_DECAY, 1.0], [120, 80])
    mean = np.average(differences, weights=weights)
    variance = np.average((differences - mean) ** 2, weights=weights) / (
        1 - (weights**2).sum() / weights.sum() ** 2
    )
    assert difference(evidence) == pytest.approx(
        (mean, np.sqrt(variance * (weights**2).sum()) / weights.sum())
    )
    once = difference([PairedAcceptance(tried, trusted, 4)])
    assert once == pytest.approx((differences.mean(), differences.std(ddof=1) / np.sqrt(200)))


def test_a_version_that_goes_wrong_is_not_hidden_by_the_good_of_those_before_it() -> None:
    draw = np.random.default_rng(0)
    good = [
        PairedAcceptance(0.5 + draw.choice([-0.5, 0.5], 150, p=[0.5, 0.5]), np.full(150, 0.495), 4)
        for _ in range(30)
    ]
    assert verdict_on(good, 0.005) != "worse"
    assert verdict_on([*good, PairedAcceptance(np.full(300, 0.2), np.full(300, 0.495), 4)], -0.295) == "worse"


@pytest.mark.parametrize(
    ("shift", "wanted"), [(0.3, "better"), (0.0, "open"), (-0.3, "open"), (-0.4, "worse")]
)
def test_a_version_is_trusted_soon_and_rolled_back_only_when_it_is_sure(shift: float, wanted: str) -> None:
    evidence = [
        PairedAcceptance(shift + np.array([-1.0, 1.0] * 50), np.zeros(100), 5)
    ]  # standard error 0.1005
    assert verdict_on(evidence, shift) == wanted
    # the published version alone says the opposite of the evidence on all
    assert verdict_on(evidence, -np.sign(shift)) == "open"
    assert (
        verdict_on([PairedAcceptance(np.ones(50), np.ones(50), 9)], 0.0)
        == verdict_on([PairedAcceptance(np.ones(1), np.zeros(1), 9)], 1.0)
        == "open"
    )


def test_what_is_not_finite_is_left_out() -> None:
    evaluation = Evaluation()
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
            PairedAcceptance(np.array([1.0, 0.0]), np.array([0.0, 0.0]), 1),
            PairedAcceptance(np.array([1.0, 1.0]), np.array([1.0, 0.0]), 2),
        ]
    )
    assert found == {"acceptance_before": 0.25, "acceptance_after": 0.75, "requests": 3.0}


def judged(difference: float, count: int = 200) -> list[np.ndarray]:
    """Acceptance of a version and of the trusted one, with some noise in the difference."""
    before = np.full(count, 0.5)
    return [before + difference + np.tile([-0.1, 0.1], count // 2), before]


def test_clear_gains_quicken_a_line_and_a_rollback_ends_that() -> None:
    evaluation = Evaluation()
    for version, pace in enumerate((2.0, 4.0, 8.0, 8.0), 1):
        assert evaluation.conclude(judged(0.3), 4, version, version - 1)[0] == "better"
        assert evaluation.pace == pace
    assert evaluation.conclude(judged(0.011), 4, 5, 4)[0] == "better"
    assert evaluation.pace == 8.0
    assert evaluation.conclude(judged(-0.3), 4, 6, 5)[0] == "worse"
    evaluation.note_rollback(6, 5)
    assert (evaluation.pace, evaluation.rolled_back) == (1.0, 1)
    assert "Version 6 guessed worse than version 5" in evaluation.remark
    assert evaluation.conclude(judged(0.011), 4, 7, 5)[0] == "better"
    assert evaluation.pace == 1.0 and not evaluation.remark, "within two standard errors it may be chance"
    evaluation.conclude(judged(0.3), 4, 8, 7)
    evaluation.chosen(0)
    assert evaluation.pace == 1.0, "a version that somebody chose begins again"


def test_an_update_takes_the_newest_answers_once() -> None:
    evaluation = Evaluation()
    for seed in range(30):
        evaluation.answer(make_trace(seed))
    assert evaluation.requests == evaluation.waiting == 30
    assert len(evaluation.take()) == UNSEEN and evaluation.waiting == 0 and evaluation.take() == []


def test_the_pace_ends_at_the_quick_one_or_at_the_settings() -> None:
    careful = Settings(learning_rate=1e-4, steps_per_update=2)
    assert [paced(careful, pace) for pace in (1, 2, 4, 8)] == [
        (1e-4, 2), (2e-4, 4), (4e-4, 8), (5e-4, 12),
    ]  # fmt: skip
    quicker = Settings(learning_rate=2e-3, steps_per_update=30)
    assert paced(quicker, 8) == (2e-3, 30)
    plan = plan_of(careful, 2)
    assert (plan.learning_rate, plan.steps, plan.warmup) == (2e-4, 4, 8)


def test_a_version_answers_for_itself_not_for_its_forerunners() -> None:
    evaluation = Evaluation()
    # too few answers
    assert (
        evaluation.conclude(judged(0.3), 1, 1, 0)[0] == evaluation.conclude(judged(0.3), 2, 2, 0)[0] == "open"
    )
    assert evaluation.conclude(judged(-0.05), 1, 3, 0)[0] == "open"  # all together better, this one worse
    evaluation = Evaluation()
    evaluation.conclude(judged(-0.3), 3, 1, 0)
    assert evaluation.conclude(judged(0.05), 1, 2, 0)[0] == "open"  # all together worse, this one better


@pytest.mark.parametrize(
    ("state", "left", "mode", "words"),
    [
        ("idle", 3, "idle", "The small model learns after 3 more answers."),
        ("idle", 1, "idle", "one more answer."),
        ("idle", 0, "idle", "starts at once"),
        ("idle", 0, "inline", "starts with the next answer"),
        ("waiting", 0, "idle", "waits while an answer"),
    ],
)
def test_people_are_told_what_happens(state: State, left: int, mode: str, words: str) -> None:
    told = explain(state, left, "A remark.", mode)
    assert words in told and told.endswith(" A remark.")
    said = "Learning is switched off in the settings, or the drafter is a GGUF file, which cannot be trained."
    assert explain("off", 0, "A remark.") == said
