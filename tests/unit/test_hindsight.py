"""Before a pair that loses drafts again, it sees how its drafts would have done on what the target wrote."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from omnidemo.decoding.cost_model import BLIND_EVERY, LONGEST_WAIT, CostModel
from omnidemo.decoding.draft_policy import ENOUGH, CostPolicy
from omnidemo.decoding.engine import Limits, decode
from omnidemo.decoding.randomness import Sampler
from omnidemo.decoding.round_times import ReplayedAcceptance
from omnidemo.decoding.sampling import SamplingParams
from omnidemo.methods import TokenIntersection
from tests.support.cost_models import known, simulate
from tests.support.worlds import NESTED, SAME


@pytest.mark.parametrize("greedy", [False, True])
def test_hindsight_tells_what_the_drafter_would_have_said_in_the_pass_that_a_draft_needs(
    greedy: bool,
) -> None:
    ids = [0, 1, 2, 3, 4, 4, 5, 0, 2, 1] * 3  # a, b, ab, aba, bab, and x, which the drafter cannot spell
    state = NESTED.conversation(NESTED.prompt)
    drafter = state.drafter
    assert drafter is not None
    state.target.append(ids)
    drafter.commit(len(drafter.ids), [], ids)
    assert drafter.score_history(32, 40, greedy) == [] and drafter.cache.passes == 0, "there are fewer"
    found = drafter.score_history(10, 20, greedy)
    assert drafter.cache.passes == 1 and len(found) == 20
    at = len(drafter.ids)
    for pieces, token in zip(found[::-1], ids[::-1], strict=False):
        spelled = NESTED.map.spelling(token)
        assert len(pieces) == len(spelled or ())
        at -= len(pieces)
        for depth, piece in enumerate(spelled or ()):
            row = drafter.cache.row(drafter.ids[: at + depth]).softmax(-1)
            assert pieces[depth] == pytest.approx(
                float(int(row.argmax()) == piece) if greedy else float(row[piece])
            )
    drafter.logits()
    assert drafter.cache.passes == 1, "what comes next was in the same pass"


def test_a_promise_is_a_fixed_length_that_would_have_won() -> None:
    assert known(draft=0.2, first=1.0, plain=1.0).promises([(1, 1.0)] * 30)
    assert not known(draft=0.2, first=1.0, plain=1.0).promises([(1, 0.1)] * 30)
    # One drafter token at 0.2 s brings 0.5 tokens of 1 s each; ten times as dear it would not pay.
    assert known(draft=0.2, first=1.0, plain=1.0).promises([(1, 0.5)] * 30)
    assert not known(draft=2.0, first=1.0, plain=1.0).promises([(1, 0.5)] * 30)
    # Where slots took two drafter tokens so far, tokens of two pieces cost as much as any slot, not twice as
    # much.
    paired = known(draft=0.2, first=1.0, plain=1.0)
    paired._proposed /= 2
    assert paired.promises([(2, 0.5)] * 30) == paired.promises([(1, 0.5)] * 30) and paired.promises(
        [(2, 0.6)] * 30
    )
    # The same tokens spelled by four drafter tokens each.
    assert not known(draft=0.2, first=1.0, plain=1.0).promises([(4, 0.5)] * 30)


def test_a_pair_that_loses_tries_where_it_sees_a_chance_and_now_and_then_without() -> None:
    cost_model = CostModel()
    simulate(cost_model, 405, tokens=1)
    assert not cost_model.speculating
    cost_model.wait, cost_model.left, cost_model.tries, cost_model.pause = LONGEST_WAIT, 0, 0, 0
    looks: list[ReplayedAcceptance] = []

    def budgets(seen: ReplayedAcceptance, rounds: int) -> list[int]:
        def look() -> tuple[ReplayedAcceptance, float]:
            looks.append(seen)
            return seen, 0.0

        return [CostPolicy(4, cost_model).budget(index, look) for index in range(rounds)]

    assert (
        not any(budgets([(1, 0.0)] * ENOUGH, (LONGEST_WAIT + 1) * (BLIND_EVERY - 1)))
        and len(looks) == BLIND_EVERY - 1
    )
    assert budgets([(1, 0.0)] * ENOUGH, 1) == [4], "times change, so it is not for ever"
    cost_model.tries = 2
    cost_model.time(4, 1, 1, 1, 0.3, 1.4)
    cost_model.tries = 0
    cost_model.left = cost_model.refused = 0
    assert budgets([(1, 1.0)] * ENOUGH, 1) == [4]
    # Answers that are too short to tell keep it waiting, but not for ever either.
    cost_model.left = 0
    assert budgets([], LONGEST_WAIT + 1) == [0] * LONGEST_WAIT + [4]


@pytest.mark.parametrize("right", [True, False])
def test_a_generation_drafts_again_where_the_drafter_would_have_been_right(right: bool) -> None:
    world = replace(SAME, seed=7)  # other tests change the seed
    state = world.conversation(world.prompt)
    assert state.drafter is not None
    target, drafter = state.target.cache, state.drafter.cache
    drafter.row = lambda ids: torch.cat([target.row(ids) * (1 if right else -1), torch.tensor([-30.0])])
    cost_model = known()
    cost_model.speculating, cost_model.left = False, 0
    rounds = decode(
        state,
        TokenIntersection(),
        world.map,
        world.cache(),
        SamplingParams(0.0),
        Sampler(1),
        Limits(40),
        CostPolicy(4, cost_model),
    )
    drafted = [r.drafted for r in rounds]
    assert len(drafted) > ENOUGH and not any(drafted[:ENOUGH]) and any(drafted) is right
