"""The rules of draft length: what they learn from outcomes and times. That they leave the law alone is in
`law/test_early_stop.py`."""

from __future__ import annotations

from itertools import pairwise

import pytest

from omnidemo.copying.copier import CopiedDraft
from omnidemo.decoding.calibration import Calibration
from omnidemo.decoding.cost_model import (
    BLIND_EVERY,
    BLOCK,
    EARLY,
    ENOUGH_DRAFTS,
    FIRST_WAIT,
    LONGEST_WAIT,
    PLAIN_EVERY,
    CostModel,
)
from omnidemo.decoding.draft_policy import (
    ENOUGH,
    ChancePolicy,
    ConfidencePolicy,
    CostPolicy,
    DraftPolicy,
    FixedPolicy,
    HeadPolicy,
    describe,
)
from omnidemo.decoding.round_times import FIRST_ROW, FITTED_EVERY, MIN_SLOPE, SETTLE, STRETCH, TRY
from omnidemo.records import Match
from tests.support.cost_models import known, simulate, unseen

LONGEST = 3


def test_a_calibration_begins_with_the_prediction_and_ends_with_what_happened() -> None:
    table = Calibration()
    assert table(0.85) == pytest.approx(0.85)
    for number in range(400):
        table.learn(0.85, float(number % 4 == 0))
    assert table(0.85) == pytest.approx(0.25, abs=0.04) and table(0.35) == pytest.approx(0.35)
    (predicted, observed, weight), *rest = table.rows()
    assert (
        predicted == pytest.approx(0.85)
        and observed == pytest.approx(0.25, abs=0.03)
        and weight > 90
        and not rest
    )


def test_times_become_costs_and_one_slow_round_changes_nothing() -> None:
    cost_model = known(draft=0.2, first=1.0, plain=1.1)
    cost_model.time(4, 2, 2, 2, 50.0, 90.0)
    cost_model.time(0, 0, 0, 1, 0.0, 90.0)
    cost_model._fit()
    assert cost_model.draft_seconds == pytest.approx(0.2, abs=0.01)
    assert cost_model.first_seconds == pytest.approx(1.0, abs=0.02)
    assert cost_model.plain_seconds == pytest.approx(1.1)


def test_a_busy_machine_cannot_make_a_drafter_token_look_dear_or_free() -> None:
    """At most it costs its own time and a plain round, at least half of its own time."""
    cost_model = CostModel()
    for number in range(64):
        count = 1 + number % 2
        cost_model.time(4, count, count, 2, 0.2 * count, 1.0 + (3.0 if count == 2 else 0.0))
        cost_model.time(0, 0, 0, 1, 0.0, 1.0)
    assert cost_model.draft_seconds == pytest.approx(0.2 + 1.0)
    for _ in range(64):
        cost_model.time(4, 4, 4, 3, 0.8, 0.9)
    assert cost_model.draft_seconds == pytest.approx(MIN_SLOPE * 0.2)


@pytest.mark.parametrize("length", [1, 4, 10])
def test_a_row_of_a_model_with_packed_weights_is_not_taken_for_free(length: int) -> None:
    """Drafts of one length say nothing about a slot by themselves; a plain round beside them does. Before
    there is one, a row is believed to cost a part of it."""
    plain, row, own = 4.0, 1.6, 0.1
    cost_model = CostModel()
    for _ in range(8):
        cost_model.time(length, length, length, 2, own * length, plain + (row + own) * length)
    believed = own + FIRST_ROW * (plain + row * length) / (1.0 + FIRST_ROW * length)
    assert cost_model.draft_seconds == pytest.approx(believed)
    for _ in range(STRETCH):
        cost_model.time(0, 0, 0, 1, 0.0, plain)
    for _ in range(8):
        cost_model.time(length, length, length, 2, own * length, plain + (row + own) * length)
    assert cost_model.draft_seconds == pytest.approx(row + own)
    assert cost_model.plain_seconds == pytest.approx(plain)


def test_a_burst_of_load_on_plain_rounds_does_not_inflate_the_speedup() -> None:
    cost_model = known(draft=0.2, first=1.2, plain=1.0)
    for _ in range(15):
        cost_model.time(0, 0, 0, 1, 0.0, 40.0)
    assert cost_model.plain_seconds == pytest.approx(1.4, abs=0.01)
    assert cost_model.speedup is not None and cost_model.speedup < 2.0


def test_a_plain_round_lasts_as_long_as_on_average_over_a_stretch() -> None:
    """The first one of a stretch takes longer: behind it the host has everything at hand."""
    cost_model = CostModel()
    for _ in range(3):
        for place in range(STRETCH):
            cost_model.time(0, 0, 0, 1, 0.0, 2.0 if place == 0 else 1.0)
    assert (
        cost_model.plain_seconds == pytest.approx(1.0 + 1.0 / STRETCH)
        and cost_model.plain_rounds == 3 * STRETCH
    )


def test_plain_rounds_close_behind_a_draft_count_only_while_there_are_no_others() -> None:
    """They are slower than plain decoding is where nothing is drafted; a copied draft changes nothing."""
    cost_model = CostModel()

    def rounds() -> None:
        for _ in range(8):
            cost_model.time(4, 2, 2, 2, 0.2, 1.9)
        for place in range(SETTLE):
            cost_model.time(0, 0, 0, 1, 0.0, 1.3)
            if place % 5 == 0:
                cost_model.time(4, 0, 3, 2, 0.0, 1.5)

    rounds()
    assert cost_model.plain_seconds == pytest.approx(1.3) and cost_model.plain_rounds == SETTLE
    for _ in range(STRETCH):
        cost_model.time(0, 0, 0, 1, 0.0, 1.0)
    assert cost_model.plain_seconds == pytest.approx(1.0) and cost_model.plain_rounds == STRETCH
    rounds()
    assert cost_model.plain_seconds == pytest.approx(1.0) and cost_model.plain_rounds == STRETCH


@pytest.mark.parametrize("pace", [0.5, 1.0, 3.0])
def test_a_machine_that_changes_its_pace_changes_no_comparison(pace: float) -> None:
    """While nothing is drafted only plain times are new; drafts are held against those of their own time."""
    cost_model = known(draft=0.2, first=1.0, plain=1.1)
    before = cost_model.speedup
    for _ in range(30 * STRETCH):
        cost_model.time(0, 0, 0, 1, 0.0, 1.1 * pace)
    assert cost_model.plain_seconds == pytest.approx(min(1.2, 1.1 * pace), abs=0.01)
    assert cost_model.speedup == before
    # One token more for 1.2 s is 1.83 times as fast as plain rounds of 1.1 s were; a tenth of one is as fast.
    assert cost_model.promises([(1, 1.0)] * 30) and not cost_model.promises([(1, 0.1)] * 30)


def drafted(rule: DraftPolicy, sure: float) -> int:
    """How many slots the rule drafts when the drafter is as sure of each."""
    count = rule.budget(0, unseen)
    for slot in range(count):
        if not rule.keep_drafting([sure], []):
            return slot + 1
    return count


def test_cost_drafts_further_the_surer_the_drafter_and_the_cheaper_a_token() -> None:
    def far(sure: float, **times: float) -> int:
        cost_model = known(**times)
        for _ in range(200):  # as sure as it is right
            cost_model.acceptance.learn(sure, sure)
            cost_model.next_acceptance.learn(sure, sure)
        return drafted(CostPolicy(12, cost_model), sure)

    assert far(0.2) == 1 and 1 < far(0.75) < far(0.97)
    assert far(0.8, draft=0.05) > far(0.8, draft=0.4)


def test_chance_drafts_while_the_whole_draft_is_likely_and_knows_no_time() -> None:
    def far(right: float, **times: float) -> int:
        cost_model = known(**times)
        for number in range(2000):  # guesses that the drafter gives 0.9, of which so many are right
            cost_model.learn([(0.9,), (0.9,)], [1.0, float(number % 20 < 20 * right)])
            cost_model.learn([(0.9,)], [float(number % 20 < 20 * right)])
        return drafted(ChancePolicy(12, cost_model), 0.9)

    assert far(0.05) == 1 < far(0.75) < far(0.95) <= 12
    assert far(0.75) == far(0.75, draft=5.0, first=9.0)


def test_chance_copies_what_is_likely_where_that_is_more_than_a_draft() -> None:
    def found(*chances: float) -> CopiedDraft:
        count = len(chances)
        return CopiedDraft([7] * count, [Match(3, "earlier")] * count, [0] * count, list(chances))

    rule = ChancePolicy(8, CostModel())
    assert rule.copies(0, found(0.9, 0.8, 0.31, 0.29, 0.2), drafts=False) == 3
    assert rule.copies(0, found(0.9, 0.8, 0.31, 0.29, 0.2), drafts=True) == 3
    assert rule.copies(0, found(0.25), drafts=False) == 0
    assert rule.copies(0, found(0.45), drafts=True) == 0, "half of its guesses are right, as far as is known"
    for _ in range(50):
        rule.learn([(0.9,)] * 4, [1.0] * 4)
    assert rule.copies(0, found(0.9, 0.8, 0.7), drafts=True) == 0, "a draft brings more than two"
    assert rule.draft_lookahead() == 0
    assert ChancePolicy(8, CostModel(), 2).copies(1, found(0.9), drafts=False) == 0, "a plain round"


def test_the_head_stops_at_its_threshold() -> None:
    # 0.9³ = 0.73, 0.9⁴ = 0.66: a rejection is likelier than 0.3
    assert drafted(HeadPolicy(10, CostModel(), 0.3, None), 0.9) == 4
    assert drafted(HeadPolicy(10, CostModel(), 0.9, None), 0.9) == 10
    assert drafted(ConfidencePolicy(10, CostModel(), 0.95), 0.9) == 1


def test_a_pair_that_loses_falls_back_says_so_and_finds_out_when_it_can_win() -> None:
    cost_model = CostModel()
    simulate(cost_model, 200, tokens=1)
    assert (
        not cost_model.speculating
        and "cost more time than they saved" in describe("cost", cost_model, False).sentence
    )
    assert simulate(cost_model, 400, tokens=1) < 60  # it tries ever less often
    assert cost_model.wait == LONGEST_WAIT
    simulate(cost_model, 700, tokens=3)
    drafting = describe("cost", cost_model, False)
    assert (
        drafting.speculating
        and cost_model.speedup == pytest.approx(3 / 1.4, rel=0.1)
        and cost_model.wait == FIRST_WAIT
    )


@pytest.mark.parametrize("slow", [1.5, 2.0])
def test_a_slow_spell_at_the_start_does_not_decide_for_long(slow: float) -> None:
    """Drafts that last longer for a while, as they do while code is compiled beside them, and would win by
    1.4 otherwise."""
    cost_model = CostModel()
    rule = CostPolicy(4, cost_model)
    drafts = []
    for index in range(700):
        drafts.append(rule.budget(index, lambda: ([(1, 0.5)] * ENOUGH, 0.0)) > 0)
        if drafts[-1]:
            rule.keep_drafting([0.5], [])
            rule.learn([(0.5,)], [0.5])
            pace = slow if len(drafts) < 80 else 1.0
            cost_model.time(4, 1, 1, 1 + index % 2, 0.1 * pace, 1.07 * pace)
        else:
            cost_model.time(0, 0, 0, 1, 0.0, 1.0)
    assert not all(drafts[40:80]) and sum(drafts[-300:]) > 280 and cost_model.speculating
    assert cost_model.speedup == pytest.approx(1.5 / 1.07, rel=0.05)


@pytest.mark.parametrize("pace", [0.4, 1.0, 3.0])
def test_the_plain_pace_that_is_shown_follows_the_machines(pace: float) -> None:
    """It takes until the next plain rounds, and many drafts, before the times are those of the new pace."""
    cost_model = CostModel()
    assert cost_model.plain_beside([(1, 1.0)]) is None
    rule = CostPolicy(4, cost_model)
    for index in range(300):
        now = 1.0 if index < 150 else pace
        budget = rule.budget(index, unseen)
        if budget:
            drafted = 1 + index % 3
            cost_model.time(4, drafted, 1, 2, 0.1 * drafted * now, (1.0 + 0.1 * drafted) * now)
        else:
            cost_model.time(0, 0, 0, 1, 0.0, now)
        if index > 150 + STRETCH:
            assert cost_model.plain_beside(
                [(1, 1.1 * pace), (3, 1.3 * pace), (2, 1.2 * pace)]
            ) == pytest.approx(pace, rel=0.02)
    assert cost_model.plain_beside([]) == cost_model.plain_seconds


def test_the_states_follow_each_other() -> None:
    """A try that is lost, then answers that are too short to tell, then a try that is won."""
    cost_model, states = CostModel(), []
    for number in range(500):
        states.append(cost_model.state)
        simulate(cost_model, 1, tokens=1 if number < 200 else 3)
    assert list(dict.fromkeys(states)) == ["drafting", "resting", "looking", "trying", "waiting"]
    after = {(before, state) for before, state in pairwise(states) if before != state}
    assert after == {
        ("drafting", "resting"),
        ("resting", "looking"),
        ("looking", "trying"),
        ("trying", "resting"),
        ("looking", "waiting"),
        ("waiting", "looking"),
        ("trying", "drafting"),
    }


def test_a_pair_is_not_given_up_after_a_few_drafts() -> None:
    cost_model = CostModel()
    tries = simulate(cost_model, FITTED_EVERY + BLOCK - 1, tokens=1)
    assert tries == FITTED_EVERY - 1 and cost_model.plain_rounds == STRETCH and cost_model.speculating
    # The first verdict is thrown away with the times it came from; the second one counts.
    assert simulate(cost_model, FITTED_EVERY, tokens=1) == FITTED_EVERY and cost_model.speculating
    simulate(cost_model, FITTED_EVERY, tokens=1)
    assert not cost_model.speculating


def test_a_pair_that_began_slowly_is_tried_again_soon() -> None:
    """Rounds that last twice as long until some are made lose, and win from then on."""
    cost_model = CostModel()
    rule, drafts = CostPolicy(4, cost_model), 0
    for index in range(300):
        budget = rule.budget(index, unseen)
        if budget:
            drafts += 1
            rule.keep_drafting([0.5], [])
            rule.learn([(0.5,)], [0.5])
            cost_model.time(budget, 1, 1, 1 + index % 2, 0.1, 2.2 if drafts <= ENOUGH_DRAFTS else 1.1)
        else:
            cost_model.time(0, 0, 0, 1, 0.0, 1.0)
    plain = 3 * BLOCK  # two to time them, and a rest
    assert drafts == 300 - plain and cost_model.speedup == pytest.approx(1.5 / 1.1, rel=0.05)


def test_the_first_round_of_a_try_is_not_timed() -> None:
    """It reads what was written meanwhile, too."""
    cost_model = CostModel()
    simulate(cost_model, 200, tokens=1)
    assert not cost_model.speculating
    cost_model.left, cost_model.tries, cost_model.refused = 0, 0, BLIND_EVERY - 1
    rule = CostPolicy(4, cost_model)
    for index in range(TRY):
        assert rule.budget(index, unseen) == 4
        rule.keep_drafting([0.5], [])
        rule.learn([(0.5,)], [1.0])
        cost_model.time(4, 2, 1, 3, 0.3, 40.0 if index == 0 else 1.4)
    assert (
        cost_model.speculating
        and cost_model.first_seconds + 2 * cost_model.draft_seconds == pytest.approx(1.4)
    )


def test_a_gain_that_is_small_is_held_against_new_plain_rounds() -> None:
    """The machine has become half as fast again since it was last known what a plain round takes."""
    cost_model = known(draft=0.1, first=1.0, plain=1.2)
    rule, drafts = CostPolicy(4, cost_model), 0
    for index in range(1000):
        budget = rule.budget(index, unseen)
        drafts += budget > 0
        if budget:
            rule.keep_drafting([0.5], [])
            rule.learn([(0.5,)], [0.0])
        cost_model.time(budget, *((1, 1, 1, 0.1, 1.1) if budget else (0, 0, 1, 0.0, 0.8)))
    assert not cost_model.speculating and drafts < 250


def test_a_pair_that_loses_looks_at_a_new_drafter_at_once() -> None:
    cost_model = CostModel()
    simulate(cost_model, 405, tokens=1)
    rule = CostPolicy(4, cost_model)
    assert not cost_model.speculating and rule.budget(0, unseen) == 0
    cost_model.renew()
    assert rule.budget(1, lambda: ([(1, 1.0)] * 20, 0.0)) == 4
    cost_model = CostModel()
    while cost_model.speculating:
        simulate(cost_model, 1, tokens=1)
    cost_model.renew()
    assert simulate(cost_model, BLOCK, tokens=1) == 0 and simulate(cost_model, 1, tokens=1) == 1


def test_a_pair_that_wins_drafts_nearly_always() -> None:
    cost_model = CostModel()
    assert simulate(cost_model, 3200, tokens=3) >= 3200 - 4 * BLOCK


def test_plain_rounds_among_drafts_come_in_a_row() -> None:
    """As many as one in so many, and the rule says how many follow."""
    for rule in (
        FixedPolicy(4, 12),
        ConfidencePolicy(4, CostModel(), 0.5, 12),
        HeadPolicy(4, CostModel(), 0.5, None, 12),
    ):
        plain = [index for index in range(12 * STRETCH * 3) if rule.budget(index, unseen) == 0]
        assert len(plain) == 3 * STRETCH and plain[:STRETCH] == list(range(11, 11 + STRETCH))
        rests = []
        for index in range(40):
            rule.budget(index, unseen)
            rests.append(rule.plain_lookahead())
        assert rests[11 : 11 + STRETCH] == [*range(STRETCH - 1, -1, -1)] and sum(rests) == sum(range(STRETCH))
    assert all(FixedPolicy(4).budget(index, unseen) == 4 for index in range(200))


def test_cost_looks_for_plain_times_early_and_then_seldom() -> None:
    """Over all answers: of rounds that draft and win, one in so many is plain."""
    cost_model, plain, rests = CostModel(), [], 0
    for answer in range(400):
        rule = CostPolicy(8, cost_model)
        for index in range(30):
            budget = rule.budget(index, unseen)
            if budget == 0:
                plain.append(30 * answer + index)
                rests += rule.plain_lookahead() > 0
            cost_model.time(budget, budget, budget, 5 if budget else 1, 0.001, 0.002)
    # in a row over the ends of answers, or none would be far enough from a draft
    assert plain[:BLOCK] == list(range(EARLY - 1, EARLY - 1 + BLOCK))
    later = [place for place in plain if place > 700]
    assert PLAIN_EVERY - 20 < (12_000 - 700) / len(later) < PLAIN_EVERY + 20
    assert rests > len(plain) // 2


def test_an_untrained_head_is_told() -> None:
    assert "not trained" in describe("head", CostModel(), False).sentence
