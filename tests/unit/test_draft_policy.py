"""The rules of draft length: what they learn from outcomes and times. That they leave the law alone is in
`law/test_early_stop.py`."""

from __future__ import annotations

import random
from itertools import product

import pytest

from omnidemo.core.config import GenerationConfig
from omnidemo.core.config.answer_options import Policy
from omnidemo.core.records import Match
from omnidemo.decoding.calibration import TRUST, Calibration
from omnidemo.decoding.cost_model import FIRST, MARGIN, PLAIN, READING, CostModel, best_draft
from omnidemo.decoding.cost_table import CostTable
from omnidemo.decoding.draft_policy import (
    CAUTION,
    HOLD,
    LEAST_CHANCE,
    AdaptivePolicy,
    DraftPolicy,
    make_policy,
)
from omnidemo.decoding.sources.copy_chances import CopiedDraft
from tests.support.cost_models import known


def test_a_calibration_begins_with_a_part_of_the_prediction_and_ends_with_what_happened() -> None:
    table = Calibration()
    assert table(0.85) == pytest.approx(0.85 * TRUST)
    for number in range(400):
        table.learn((0.85, float(number % 4 == 0)))
    assert table(0.85) == pytest.approx(0.25, abs=0.04)


def test_a_drafter_that_is_too_sure_is_believed_less_in_every_class() -> None:
    sure, right = Calibration(), Calibration()
    for _ in range(20):
        sure.learn((0.85, 0.0))
        right.learn((0.85, 1.0))
    assert sure(0.35) < 0.2 * 0.35 and right(0.35) == pytest.approx(0.35, abs=0.01)
    later = Calibration(prior=0.6)
    later.learn(*[(0.85, 0.0)] * 20)
    assert later(0.35) < 0.2


def drafted(rule: DraftPolicy, sure: float) -> int:
    """How many slots the rule drafts when the drafter is as sure of each."""
    rule.begin_round(0, 50, 0)
    count = rule.plan(None, True)[1]
    for slot in range(count):
        if not rule.keep_drafting([sure], []):
            return slot + 1
    return count


def copied(*chances: float) -> CopiedDraft:
    count = len(chances)
    return CopiedDraft([7] * count, [Match(3, "earlier")] * count, list(chances))


def as_right_as(first: float, later: float, model: CostModel) -> CostModel:
    """The model, after many drafts of which so many slots were right."""
    for _ in range(400):
        model.first.learn(first)
        model.later.learn(later)
    return model


def test_cost_drafts_further_the_surer_the_drafter_and_the_cheaper_a_token() -> None:
    def far(sure: float, **prices: float) -> int:
        cost_model = as_right_as(sure, sure, known(**prices))
        for _ in range(200):  # as sure as it is right
            cost_model.acceptance.learn((sure, sure))
            cost_model.next_acceptance.learn((sure, sure))
        return drafted(AdaptivePolicy(12, cost_model), sure)

    assert far(0.2) == 0 < far(0.5) < far(0.75) < far(0.97)
    assert far(0.8, step=0.05) > far(0.8, step=0.4)


def test_the_best_draft_is_the_one_that_all_of_them_compared_find() -> None:
    chance = random.Random(3)
    found = set()
    for _ in range(500):
        chances, prices, left = [], [1.0], 1.0
        for _ in range(chance.randrange(17)):
            left *= chance.random() ** 0.2
            chances.append(left)
            prices.append(prices[-1] + chance.choice((0.0, 0.05, 0.3)) * chance.random())
        every = [(1.0 + sum(chances[:n])) / prices[n] for n in range(len(prices))]
        best = best_draft(chances, prices)
        assert best.rate == pytest.approx(max(every)) and best.length == every.index(max(every))
        assert best.tokens == pytest.approx(1.0 + sum(chances[: best.length]))
        found.add(best.length)
    assert len(found) > 8 and best_draft([], [1.0]) == PLAIN == best_draft([0.0], [1.0, 1.2])


def test_of_copies_drafter_both_and_neither_the_policy_takes_what_brings_most_for_its_price() -> None:
    """Against all of them compared, at prices and chances of any kind."""
    chance = random.Random(4)
    took = {"copy": 0, "fused": 0, "drafter": 0, "plain": 0}
    for _ in range(400):
        row, step = chance.choice((0.02, 0.1, 0.3)), chance.choice((0.02, 0.1, 0.4))
        first, later = chance.random(), chance.random()
        model = as_right_as(first, later, known(step=step, row=row))
        model.behind.prior = chance.random() ** 0.3
        first, later = model.first(), model.later()
        chances = [chance.random()]
        while len(chances) < 6:
            chances.append(chances[-1] * chance.random() ** 0.3)
        policy = AdaptivePolicy(5, model)
        policy.begin_round(0, 0, 0)
        count, length = policy.plan(copied(*chances), True)
        source = ("fused" if length else "copy") if count else "drafter" if length else "plain"
        drafted = [sum(first * later**k for k in range(n)) for n in range(6)]
        behind_copies = [sum(model.behind() * later**k for k in range(n)) for n in range(6)]
        drafts = max((1 + drafted[n]) / (1 + n * (row + step)) for n in range(1, 6))
        best, rate, cautious = ("plain", 0), 1.0, 1.0
        for m, chance_of_all in enumerate(chances, 1):
            for n in range(6):
                more = (m + n) * row + n * step + (m * READING * step if n else 0.0)
                tokens = 1 + sum(chances[:m]) + chance_of_all * behind_copies[n]
                if m == 1 == n + 1 or tokens / (1 + CAUTION * more) > cautious:
                    cautious, rate = tokens / (1 + CAUTION * more), tokens / (1 + more)
                    best = ("fused" if n else "copy", m)
        if drafts >= rate or (rate < 1.0 + MARGIN <= drafts):
            best, rate = ("drafter", 0), drafts
        if rate < 1.0 + MARGIN:
            assert source == "plain"
        else:
            assert (source, count) == best
        took[source] += 1
        (taken,) = [offer for offer in policy.offers() if offer.taken]
        assert taken.source == source
        if source != "plain":
            assert taken.tokens / taken.price == pytest.approx(rate)
    assert min(took.values()) > 10


def test_the_margin_is_wider_where_prices_are_guessed() -> None:
    for origin, pays in (("guessed", False), ("measured", True)):
        model = CostModel(CostTable.linear(1.0, 0.6, 0.1, origin=origin))
        policy = AdaptivePolicy(4, model)
        policy.begin_round(0, 0, 0)
        assert (policy.plan(copied(0.76), False)[0] > 0) is pays


def test_a_plain_round_says_what_each_source_lacks() -> None:
    policy = AdaptivePolicy(4, known(step=0.3, row=0.6))
    policy.begin_round(0, 0, 0)
    assert policy.plan(copied(0.4, 0.1), True) == (0, 0)
    plain, draft, copy = policy.offers()
    assert plain.taken and plain.rate == plain.needed == 1.0
    assert (draft.source, draft.length, draft.taken) == ("drafter", 1, False)
    assert draft.rate == pytest.approx(1.5 / 1.9) and draft.needed == copy.needed == 1.0 + MARGIN
    assert (copy.source, copy.length, copy.chance) == ("copy", 1, 0.4) and copy.rate == pytest.approx(
        1.4 / 1.6
    )
    policy.begin_round(1, 1, 0)
    assert not policy.plan(None, True)[1]
    assert [offer.source for offer in policy.offers()] == ["plain", "drafter"], "memory had nothing"


def test_a_machine_that_gets_slower_by_half_decides_alike() -> None:
    for row, step, right in product((0.05, 0.2, 0.4), (0.05, 0.2), (0.3, 0.6, 0.9)):
        policies = [
            AdaptivePolicy(9, as_right_as(right, right, known(step * pace, pace, row * pace)))
            for pace in (1.0, 1.5)
        ]
        chances = [0.9 * right**n for n in range(9)]
        for policy in policies:
            policy.begin_round(0, 0, 0)
        one, other = (policy.plan(copied(*chances), True) for policy in policies)
        assert one == other and policies[0].stop_rule().price == pytest.approx(policies[1].stop_rule().price)


def test_a_long_prompt_that_the_drafter_has_not_read_counts() -> None:
    policy = AdaptivePolicy(4, as_right_as(0.6, 0.4, known(step=0.3, row=0.1)))
    policy.begin_round(0, 4000, 0)
    assert policy.plan(None, True)[1] == 4
    policy.begin_round(0, 4000, 4000)
    assert policy.plan(None, True)[1] == 4, "it has drafted, so it has read"
    other = AdaptivePolicy(4, as_right_as(0.6, 0.4, known(step=0.3, row=0.1)))
    other.begin_round(0, 4000, 4000)
    assert other.plan(None, True)[1] == 0


def test_a_drafter_that_was_wrong_is_asked_again_when_what_is_known_has_faded() -> None:
    """No rounds are made for it: the draft is again the best one that is known."""
    model = known(step=0.1, row=0.1)
    policy, drafts = AdaptivePolicy(4, model), list[bool]()
    for index in range(2000):
        policy.begin_round(index, 50, 0)
        drafts.append(policy.plan(None, True)[1] > 0)
        if drafts[-1]:
            policy.learn([(0.5,)], [0.0])
        policy.count(int(drafts[-1]), int(drafts[-1]))
    assert drafts[0] and not all(drafts[:24]) and 0 < sum(drafts[200:]) < 150
    wrong = as_right_as(0.0, 0.0, known())
    assert not wrong.pays(wrong.best_draft(8))
    model.renew()
    assert model.first() == FIRST and model.pays(model.best_draft(8))


def test_the_rule_is_held_for_some_rounds() -> None:
    model = known()
    policy, rules = AdaptivePolicy(8, model), list[float]()
    for index in range(3 * HOLD):
        policy.begin_round(index, 50 + index, 0)
        assert policy.plan(None, True)[1] == 8
        rules.append(policy.stop_rule().price)
        policy.learn([(0.9,), (0.9,)], [1.0, 1.0])
        policy.count(2, 2)
    assert [rules[0]] * HOLD == rules[:HOLD] and len(set(rules)) == 3


def test_an_answer_that_has_begun_goes_by_the_prices_that_it_began_with() -> None:
    model = known()
    policy = AdaptivePolicy(8, model)
    model.prices.become(CostTable.linear(1.0, 9.0, 9.0))
    policy.begin_round(0, 50, 0)
    assert policy.plan(None, True)[1] == 8
    other = AdaptivePolicy(8, model)
    other.begin_round(0, 50, 0)
    assert other.plan(None, True)[1] == 0


def likely(longest: int, model: CostModel) -> AdaptivePolicy:
    policy = AdaptivePolicy(longest, model, LEAST_CHANCE)
    policy.begin_round(0, 0, 0)
    return policy


def test_chance_drafts_while_the_whole_draft_is_likely_and_knows_no_time() -> None:
    def far(right: float, **times: float) -> int:
        cost_model = known(**times)
        for number in range(2000):  # guesses that the drafter gives 0.9, of which so many are right
            cost_model.learn([(0.9,), (0.9,)], [1.0, float(number % 20 < 20 * right)])
            cost_model.learn([(0.9,)], [float(number % 20 < 20 * right)])
        return drafted(AdaptivePolicy(12, cost_model, LEAST_CHANCE), 0.9)

    assert far(0.05) == 1 < far(0.75) < far(0.95) <= 12
    assert far(0.75) == far(0.75, step=5.0, plain=9.0)


def test_chance_copies_what_is_likely_where_that_is_more_than_a_draft() -> None:
    rule = likely(8, CostModel())
    assert rule.plan(copied(0.9, 0.8, 0.31, 0.29, 0.2), False)[0] == 3
    # half of the drafter's guesses are right, as far as is known: behind the second copy one is likelier than
    # the third
    assert rule.plan(copied(0.9, 0.8, 0.31, 0.29, 0.2), True) == (2, 8)
    assert rule.stop_rule().cumulative == 0.8
    assert rule.plan(copied(0.9, 0.8, 0.6, 0.4, 0.2), True) == (4, 0)
    assert rule.plan(copied(0.25), False)[0] == 0
    assert rule.plan(copied(0.45), True)[0] == 0, "half of its guesses are right, as far as is known"
    right = likely(8, as_right_as(1.0, 1.0, CostModel()))
    assert right.plan(copied(0.35), True)[0] == 0, "a draft brings more"


def test_chance_says_what_was_offered_at_the_length_that_it_would_have_and_for_what_price() -> None:
    model = as_right_as(0.8, 0.5, known(step=0.2, row=0.1))
    rule = likely(4, model)
    assert rule.plan(None, True)[1] == 4
    plain, draft = rule.offers()
    first, later = model.first(), model.later()
    assert plain == ("plain", 0, 1.0, 1.0, 1.0, False, 0.0)
    assert draft.source == "drafter" and draft.taken and draft.length == 2, "a third would be too unlikely"
    assert draft.tokens == pytest.approx(1 + first + first * later) and draft.price == pytest.approx(1.6)
    assert draft.chance == pytest.approx(first * later) and draft.needed == 0.0
    rule.begin_round(1, 3, 0)
    assert rule.plan(copied(0.9, 0.8, 0.29), True) == (2, 4)
    offers = {offer.source: offer for offer in rule.offers()}
    assert offers["fused"].length == 3 and offers["fused"].tokens == pytest.approx(2.7 + 0.8 * model.behind())
    assert offers["fused"].chance == 0.8 and offers["fused"].taken and not offers["drafter"].taken
    rule.begin_round(2, 5, 0)
    assert rule.plan(copied(0.2), False)[0] == 0
    assert [(offer.source, offer.taken) for offer in rule.offers()] == [("plain", True), ("copy", False)]


def test_the_head_stops_at_its_threshold() -> None:
    def far(name: Policy, **numbers: float) -> int:
        asked = GenerationConfig.of(draft_policy=name, longest_draft=10, **numbers)
        return drafted(make_policy(asked, CostModel(), None), 0.9)

    # 0.9³ = 0.73, 0.9⁴ = 0.66: a rejection is likelier than 0.3
    assert far("head", gamma=0.3) == 4 and far("head", gamma=0.9) == 10
    assert far("confidence", confidence=0.95) == 1 and far("fixed") == 4
