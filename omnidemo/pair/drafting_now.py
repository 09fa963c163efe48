"""How a pair drafts now, for the page."""

from __future__ import annotations

from dataclasses import dataclass

from omnidemo.core.config.answer_options import Policy
from omnidemo.decoding.cost_model import CostModel

USUAL_DRAFT = 8  # slots of a draft, where no request says


@dataclass(frozen=True, slots=True)
class Drafting:
    """How a pair drafts now. `length`: drafter tokens. `calibration`: (predicted, observed, observations) of
    P(accepted) by classes."""

    policy: Policy
    length: float
    speculating: bool
    sentence: str
    calibration: list[tuple[float, float, float]]


def describe(policy: Policy, costs: CostModel, has_head: bool, draft_length: int = 4) -> Drafting:
    alone = policy == "cost" and not costs.pays(costs.best_draft(USUAL_DRAFT))
    if alone:
        sentence = "Guessing would not have been faster here, so the big model wrote alone."
    elif policy == "fixed" and draft_length == 0:
        sentence = "Guessing is switched off: the draft length is 0."
    elif policy == "head" and not has_head:
        sentence = (
            "The acceptance head has no training so far; the drafter's own probabilities stand in for it."
        )
    elif costs.length:
        sentence = f"The newest drafts had {costs.length:.1f} drafter tokens."
    else:
        sentence = "Nothing has been drafted so far."
    length = float(draft_length) if policy == "fixed" else costs.length
    return Drafting(policy, length, not alone, sentence, costs.acceptance.rows())
