"""Ways that the product does not have, on answers where one can count."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch

from lab.drafters.ceilings import Prices
from lab.drafters.shards import Recorded
from lab.ways.candidates import DRAWS, WIDTH, Candidates, bounds_of
from lab.ways.way_rounds import Rounds, chain, full, likeliest
from lab.ways.windows import seen
from omnidemo.learning.distill.losses import Positions
from tests.support.cli import Cli

ROUNDS = Rounds(Prices({1: 4.0, 2: 5.0, 4: 7.0}, step=0.1))


def answer(place: list[int], share: float = 0.0, given: float = 0.0, heat: float = 0.0) -> Candidates:
    count = len(place)
    recorded = Recorded("s", "t/s/0", "t", heat, "end", [1], [5] * count)
    sure = np.tile([0.6, 0.2, 0.1], (count, 1))
    bounds = np.zeros((count, 3 * WIDTH))
    return Candidates(
        recorded, np.array(place), sure, 1.0, np.full(count, given), np.full(count, share), bounds
    )


def test_shapes_of_trees() -> None:
    assert chain(3) == {(1,), (1, 1), (1, 1, 1)}
    assert chain(2, 3) == {(1,), (2,), (3,), (1, 1), (2, 1), (3, 1)}
    assert len(full(3, 2)) == 14 and len(full(2, 3)) == 12
    # seven in ten first candidates are right, two in ten second ones: .7, .49, .343, .24, .2, …
    trees = list(likeliest([answer([1] * 7 + [2] * 2 + [0])], 5))
    assert trees[3] == chain(4) and trees[4] == chain(4) | {(2,)}


def test_a_tree_takes_what_its_nodes_have() -> None:
    one = answer([1, 2, 1, 0, 1])
    plain = ROUNDS.of_tree(one, chain(2))  # 1 | 2 | 1 0 | 1
    assert (plain.tokens, plain.rounds) == (5, 3)
    assert plain.milliseconds == pytest.approx(3 * (6.0 + 2 * 0.1))
    wide = ROUNDS.of_tree(one, full(2, 2))  # 1 2 and 1 of the target | 0 | 1
    assert wide.rounds == 3 and wide.milliseconds == pytest.approx(3 * (10.0 + 3 * 0.1))
    # of the first token alone two: 1 and 2 | 1 and 0 | 1
    assert ROUNDS.of_tree(one, chain(1, 2)).rounds == 3
    block = ROUNDS.of_tree(one, chain(2), 1)
    assert block.rounds == 3 and block.milliseconds == pytest.approx(3 * 6.1)


def test_overlap_saves_the_drafting_of_rounds_that_are_right() -> None:
    one = answer([1] * 9)
    apart, beside = ROUNDS.overlapped(one, 2, None), ROUNDS.overlapped(one, 2, 2)
    assert apart.rounds == beside.rounds == 3
    assert apart.milliseconds == pytest.approx(0.2 + 3 * 6.0)  # all but the first draft are hidden
    assert beside.milliseconds == pytest.approx(0.2 + 3 * (6.0 + 0.15))
    wrong = ROUNDS.overlapped(answer([0, 0]), 2, 2)
    assert wrong.milliseconds == pytest.approx(2 * (0.2 + 6.0 + 0.15))  # every draft ahead was in vain


def test_a_judge_lets_others_pass_and_says_how_far_it_is_away() -> None:
    strict, lenient = (ROUNDS.judged(answer([1, 0, 1, 0], 0.4), 4, least) for least in (0.5, 0.4))
    assert strict.variation == 0 and strict.rounds == 2
    assert lenient.rounds == 1 and lenient.variation == 2  # two tokens that the target would not have written
    drawn = ROUNDS.judged(answer([1, 0, 1, 0], 0.4, given=0.25, heat=0.7), 4, 0.4)
    assert drawn.variation == pytest.approx(4 * 0.75)


def test_the_policy_drafts_what_pays_and_other_candidates_where_they_do() -> None:
    right, second = [answer([1] * 60)] * 4, [answer([2, 1] * 40)] * 6
    assert list(ROUNDS.adaptive(right, 1))[-1].rounds <= 8
    one, two = (sum(spent.rounds for spent in ROUNDS.adaptive(second, width)) for width in (1, 2))
    assert two < one
    wrong = list(ROUNDS.adaptive([answer([0] * 60)] * 4, 1))[-1]
    assert wrong.rounds == 60 and wrong.milliseconds < 60 * 4.2  # nothing is proposed any more


def test_bounds_of_one_place() -> None:
    q, p = torch.tensor([0.6, 0.3, 0.1]), [0.2, 0.5, 0.3]
    at = Positions(
        rows=torch.tensor([[0, 0]]), ids=torch.tensor([1]), owner=torch.tensor([0]), first=torch.tensor([0]),
        top_ids=torch.tensor([[0, 1, 2]]), top_p=torch.tensor([p]), ngram_p=torch.zeros(1),
        temperature=torch.zeros(1), direct=1,
    )  # fmt: skip
    (found,) = bounds_of(q.log()[None], at)
    best, top, drawn = found.view(3, WIDTH).tolist()
    # sets: the first token, which q has too often; of three candidates the first two
    assert best == pytest.approx([0.2 + 0.3 + 0.1, 1 + 0.2 - 0.36, 1 + 0.7 - 0.729])
    assert top == pytest.approx([0.2, 0.7, 1.0])
    assert drawn[2] == pytest.approx(1.0) and all(math.isclose(one * DRAWS % 1, 0) for one in drawn)


def test_a_window_sees_the_newest_and_the_first() -> None:
    mask = seen(6, 2, 1)[0, 0] == 0
    assert mask.int().tolist()[4] == [1, 0, 0, 1, 1, 0]
    assert mask.int().tolist()[0] == [1, 0, 0, 0, 0, 0]


def test_the_command_prints_every_way(lab_cli: Cli, answers: Path) -> None:
    said = lab_cli(
        "ways", "--target", "t=bundled/large", "--shards", answers, "--windows", "8", "--behind", 20
    )
    assert said.code == 0, said.err
    for way in (
        "a chain of 4",
        "3 candidates of every token",
        "overlap, the same two cores",
        "judged",
        "oracle",
    ):
        assert said.out.count(f"| {way}") + said.out.count(f": {way}") >= 2, way
    assert "2 greedy answers" in said.out and "1 drawn answers" in said.out
    assert "| 8 | 4 |" in said.out and "| all | 0 |" in said.out
