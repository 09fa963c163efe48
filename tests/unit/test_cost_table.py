"""The cost table on times that are made up: what it says, and how rounds correct it."""

from __future__ import annotations

import json
import pickle
import random
from itertools import accumulate
from types import SimpleNamespace

import pytest

from omnidemo.core.records import Match
from omnidemo.decoding.cost_model import MARGIN, CostModel
from omnidemo.decoding.cost_table import ENOUGH, FEW, ROWS, CostTable, RoundTimes
from omnidemo.decoding.draft_policy import AdaptivePolicy
from omnidemo.decoding.sources.copy_chances import CopiedDraft
from omnidemo.pair.drafting_line import DraftingLine

PASSES = {1: 1.0, 2: 1.05, 4: 1.2, 6: 1.6, 8: 2.0, 16: 3.6}
TRUE = CostTable(PASSES, 0.1, attention=1e-4, origin="measured", at=1.0)


def answer(machine: CostTable, seed: int, pace: float = 1.0, rounds: int = 24) -> list[RoundTimes]:
    """An answer's rounds on a machine that takes these prices, a tenth up or down, one in twelve far more."""
    chance, made = random.Random(seed), list[RoundTimes]()
    for number in range(rounds):
        rows, drafts = chance.choice([(1, 0), (3, 2), (5, 4), (9, 0), (17, 0)])
        spell = pace * chance.uniform(0.9, 1.1) * (8.0 if chance.random() < 1 / 12 else 1.0)
        at = 50 + number
        made.append(
            RoundTimes(
                rows, drafts, spell * drafts * machine.step, spell * machine.price(rows, at, drafts), at
            )
        )
    return made


def told(known: CostTable, *answers: list[RoundTimes]) -> CostTable:
    for rounds in answers:
        for one in rounds:
            known.note(one)
        known.settle()
    return known


def ratios(known: CostTable) -> list[float]:
    """What decides: the price of each round in plain ones."""
    plain = known.price(1)
    return [known.price(rows) / plain for rows in (2, 4, 8, 12, 16)] + [known.step / plain]


def choices(prices: CostTable, clear: float) -> list[str | None]:
    """What the policy "cost" takes by a list in 300 situations of any kind; None where, by the true prices,
    the best is not better than the next by a factor `clear`."""
    chance, made = random.Random(9), list[str | None]()
    for _ in range(300):
        model = CostModel(prices)
        model.first.prior, model.later.prior = chance.random() ** 3, chance.random()
        chances = [chance.random() ** 4]
        while len(chances) < 6:
            chances.append(chances[-1] * chance.random() ** 0.3)
        copied = CopiedDraft([*range(6)], [Match(2, "prompt")] * 6, chances)
        policy = AdaptivePolicy(5, model)
        policy.begin_round(0, 0, 0)
        count, length = policy.plan(copied, True)
        took = "copy" if count else "drafter" if length else "plain"
        true, ours = model.fused_prices(TRUE, 5, 0), model.draft_chances(5)
        behind = [0.0, *accumulate(model.draft_chances(5, behind=True))]
        every = [
            max((1.0 + sum(ours[:n])) / true[0, n] for n in range(1, 6)),
            max(
                (1.0 + sum(chances[:m]) + chances[m - 1] * behind[n]) / true[m, n]
                for m in range(1, 7)
                for n in range(6)
            ),
        ]
        *_, second, first = sorted([*every, 1.0 + MARGIN])
        made.append(took if first > clear * second else None)
    return made


def test_prices_lie_on_lines_between_those_that_are_known() -> None:
    assert [TRUE.price(rows) for rows in ROWS] == [1.0, 1.05, 1.2, 1.6, 2.0, 3.6]
    assert TRUE.price(3) == pytest.approx(1.125) and TRUE.price(12) == pytest.approx(2.8)
    assert TRUE.price(18) == pytest.approx(4.0), "further on as the last line goes"
    assert TRUE.price(4, 1000, 3) == pytest.approx(1.2 + 0.1 + 0.3)
    assert CostTable({1: 2.0}, 0.1).price(9) == 2.0


@pytest.mark.parametrize("pace", [0.5, 1.5, 3.0])
def test_a_machine_that_changes_its_pace_changes_no_comparison(pace: float) -> None:
    known = TRUE.fixed()
    before = ratios(known)
    told(known, answer(TRUE, 1, pace), answer(TRUE, 2, pace))
    assert known.price(1) == pytest.approx(pace, rel=0.1)
    assert ratios(known) == pytest.approx(before, rel=0.1)
    taken = choices(TRUE, 1.08)
    assert choices(known, 1.08) == taken
    assert min(taken.count(name) for name in ("copy", "drafter", "plain")) > 20, "of each there are many"


@pytest.mark.parametrize("pace", [0.5, 1.0, 2.0])
@pytest.mark.parametrize(
    ("reading", "computing", "step"), [(2.0, 1.0, 1.0), (1.0, 3.0, 1.0), (1.0, 0.4, 2.5), (0.6, 2.0, 0.5)]
)
def test_a_list_that_was_measured_on_a_busy_machine_is_corrected_within_three_answers(
    reading: float, computing: float, step: float, pace: float
) -> None:
    wrong = CostTable(
        {rows: reading + computing * (seconds - 1.0) for rows, seconds in TRUE.passes.items()},
        step * TRUE.step, origin="measured", at=1.0,
    )  # fmt: skip
    found = told(wrong, *(answer(TRUE, seed, pace) for seed in range(3)))
    assert ratios(found) == pytest.approx(ratios(TRUE), rel=0.15)
    assert choices(found, 1.15) == choices(TRUE, 1.15)


def test_a_guess_is_known_after_enough_rounds() -> None:
    guess = CostTable.linear(1.0, 0.5, 0.4)
    told(guess, answer(TRUE, 5, rounds=ENOUGH - 1))
    assert not guess.known
    told(guess, answer(TRUE, 6, rounds=FEW))
    assert guess.known and guess.price(9) / guess.price(1) < 3.0, "it was 5, and is 2.2"


def test_single_slow_rounds_and_wrong_times_change_nothing() -> None:
    known = TRUE.fixed()
    for number in range(20):
        known.note(RoundTimes(3, 2, 0.2, TRUE.price(3, 0, 2) * (90.0 if number % 5 == 0 else 1.0)))
    for seconds in (0.0, -1.0, float("nan"), float("inf")):
        known.note(RoundTimes(1, 0, 0.0, seconds))
    known.settle()
    assert ratios(known) == pytest.approx(ratios(TRUE), rel=1e-6)


def test_nothing_is_corrected_within_an_answer_nor_by_a_round_or_two() -> None:
    known = TRUE.fixed()
    for _ in range(3):
        known.note(RoundTimes(1, 0, 0.0, 30.0))
    known.settle()
    assert known.price(1) == 1.0 and known.taken() == {(1, False): (3, 30.0)}
    known.note(RoundTimes(1, 0, 0.0, 30.0))
    assert known.price(1) == 1.0
    known.settle()
    assert known.price(1) > 2.0 and known.heard == 4


def test_what_a_draft_costs_besides_is_found() -> None:
    found = TRUE.fixed()
    found.beside = found.step
    for seed in range(6):
        dearer = [
            one._replace(draft=one.draft + 0.4, seconds=one.seconds + 0.4) if one.drafted else one
            for one in answer(TRUE, seed, rounds=40)
        ]
        told(found, dearer)
    for drafted in (2, 4):
        draft = found.price(1, 0, drafted) - found.price(1)
        assert draft == pytest.approx(0.4 + drafted * TRUE.step, rel=0.2)
    assert ratios(found)[:-1] == pytest.approx(ratios(TRUE)[:-1], rel=0.15)


def test_the_plain_pace_that_is_shown_is_that_of_the_answer() -> None:
    assert CostTable.linear().plain_beside(answer(TRUE, 1)) is None
    assert TRUE.plain_beside(answer(TRUE, 1, pace=2.0)) == pytest.approx(2.0, rel=0.1)
    assert TRUE.plain_beside([]) == 1.0


def test_guessing_is_tried_again_after_a_busy_machine_made_it_dear() -> None:
    """The copy at hand is right with 0.9, so it pays where a row costs up to 0.8 plain rounds."""
    found = CostTable.linear(1.0, 4.0, 0.01, origin="measured", at=1.0)
    tried = list[bool]()
    for _ in range(40):
        tried.append(1.9 / (found.price(2) / found.price(1)) >= 1.0 + MARGIN)
        for number in range(24):
            rows = 1 + number % 2 if tried[-1] else 1
            found.note(RoundTimes(rows, 0, 0.0, 1.0 + (rows - 1) * 0.4))
        found.settle()
    assert not tried[0] and all(tried[20:])
    assert found.price(2) / found.price(1) == pytest.approx(1.4, rel=0.03)


def test_where_rows_are_dear_guessing_is_hardly_tried() -> None:
    found, tried = CostTable.linear(1.0, 1.5, 0.01, origin="measured", at=1.0), 0
    for _ in range(40):
        pays = 1.9 / (found.price(2) / found.price(1)) >= 1.0 + MARGIN
        tried += pays
        for number in range(24):
            rows = 2 + number % 3 if pays else 1
            found.note(RoundTimes(rows, 0, 0.0, 1.0 + (rows - 1) * 1.5))
        found.settle()
    assert 0 < tried < 9


def test_a_list_comes_back_from_its_file_and_what_is_none_does_not() -> None:
    known = told(TRUE.fixed(), answer(TRUE, 3))
    kept = json.loads(json.dumps(known.to_file()))
    back = CostTable.from_file(kept)
    assert back is not None and back.origin == "stored" and back.known and back.heard == known.heard
    assert all(back.price(rows, 9, 2) == known.price(rows, 9, 2) for rows in range(1, 18))
    assert back.taken() == known.taken() != {}
    for wrong in (
        None, [], {}, kept | {"passes": {}}, kept | {"passes": {"2": 1.0}}, kept | {"step": -1.0},
        kept | {"passes": {"1": float("nan")}}, kept | {"step": "fast"}, kept | {"at": None},
        kept | {"took": [[1, False, [0.0]]]}, kept | {"took": 3},
    ):  # fmt: skip
        assert CostTable.from_file(wrong) is None


def test_a_state_goes_whole_from_process_to_process() -> None:
    known = CostModel(TRUE.fixed())
    known.learn([(0.9,)], [1.0])
    again: CostModel = pickle.loads(pickle.dumps(known))
    assert again.prices == known.prices and again.acceptance(0.9) == known.acceptance(0.9)


def test_a_line_tells_what_rounds_cost_once_that_was_measured() -> None:
    def costs(table: CostTable) -> list[float]:
        return DraftingLine(SimpleNamespace(), cost_model=CostModel(table)).drafting("cost", 4).costs  # type: ignore[arg-type]

    assert costs(CostTable.linear()) == []
    measured = costs(CostTable.linear(1.0, 0.15, 0.1, origin="measured"))
    assert measured == pytest.approx([1 + 0.25 * guesses for guesses in range(13)])
