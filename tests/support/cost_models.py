"""A cost model that knows a machine, and a pair whose drafts always bring the same, played to it."""

from __future__ import annotations

from omnidemo.decoding.cost_model import CostModel
from omnidemo.decoding.draft_policy import CostPolicy
from omnidemo.decoding.round_times import ReplayedAcceptance


def known(draft: float = 0.2, first: float = 1.0, plain: float = 1.0) -> CostModel:
    """Knowledge of a machine with these times."""
    cost_model = CostModel()
    for number in range(40):
        if number % 4 == 3:
            cost_model.time(0, 0, 0, 1, 0.0, plain)
        else:
            count = 1 + number % 3
            cost_model.time(4, count, count, 2, draft * count, first + draft * count)
    return cost_model


def unseen() -> tuple[ReplayedAcceptance, float]:
    """What is seen where the answer is too short to tell anything."""
    return [], 0.0


def simulate(cost_model: CostModel, rounds: int, tokens: int, rule: CostPolicy | None = None) -> int:
    """Rounds in which a draft was tried, when each brings so many tokens and lasts 1 + 0.4 s against 1 s of a
    plain one."""
    rule = rule or CostPolicy(4, cost_model)
    tries = 0
    for index in range(rounds):
        budget = rule.budget(index, unseen)
        if budget:
            tries += 1
            rule.keep_drafting([0.5], [])
            rule.learn([(0.5,)], [float(tokens > 1)])
            cost_model.time(budget, 2, 1, tokens, 0.3, 1.4)
        else:
            cost_model.time(0, 0, 0, 1, 0.0, 1.0)
    return tries
