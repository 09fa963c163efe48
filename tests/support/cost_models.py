"""A cost model that knows a machine, and a pair whose drafts always bring the same, played to it."""

from __future__ import annotations

from omnidemo.decoding.cost_model import CostModel, Hindsight
from omnidemo.decoding.cost_policy import CostPolicy


def known(draft: float = 0.2, first: float = 1.0, plain: float = 1.0) -> CostModel:
    """Knowledge of a machine with these times."""
    knowledge = CostModel()
    for number in range(40):
        if number % 4 == 3:
            knowledge.time(0, 0, 0, 1, 0.0, plain)
        else:
            count = 1 + number % 3
            knowledge.time(4, count, count, 2, draft * count, first + draft * count)
    return knowledge


def unseen() -> tuple[Hindsight, float]:
    """What is seen where the answer is too short to tell anything."""
    return [], 0.0


def simulate(knowledge: CostModel, rounds: int, tokens: int, rule: CostPolicy | None = None) -> int:
    """Rounds in which a draft was tried, when each brings so many tokens and lasts 1 + 0.4 s against 1 s of a plain one."""
    rule = rule or CostPolicy(4, knowledge)
    tries = 0
    for index in range(rounds):
        budget = rule.budget(index, unseen)
        if budget:
            tries += 1
            rule.goes_on([0.5], [])
            rule.learn([(0.5,)], [float(tokens > 1)])
            knowledge.time(budget, 2, 1, tokens, 0.3, 1.4)
        else:
            knowledge.time(0, 0, 0, 1, 0.0, 1.0)
    return tries
