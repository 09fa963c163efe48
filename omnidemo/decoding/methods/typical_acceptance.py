"""Typical acceptance (Medusa, 2401.10774): not lossless, faster for another text."""

from __future__ import annotations

import math

import numpy as np

from omnidemo.decoding.backend import Acceptance, Draft, Slot
from omnidemo.decoding.engine import RoundContext
from omnidemo.decoding.method import target_rows
from omnidemo.decoding.methods.token_intersection import TokenIntersection
from omnidemo.decoding.sampling import Logits, Probs

EPSILON, DELTA = 0.09, 0.3  # as Medusa's code has them


class TypicalAcceptance(TokenIntersection):
    """Drafts as token intersection does, and keeps each token to which the target gives p(x) > min(ε, δ ·
    exp(−H(p))), where H is the entropy of p in nats; the first other one is replaced by a draw from p. Copied
    tokens are judged alike.

    Not lossless above temperature 0: with r = Σ q of what is not kept, a position follows e(x) = q(x)·[x is
    kept] + r·p(x). Each round says how far that is from p, ½ Σ |e − p| summed over its judged positions
    (`Acceptance.variation`); the target's own tokens are 0 away.
    """

    name = "typical-acceptance"
    title = "Typical acceptance (not lossless)"
    lossless = False
    coupled = False
    help = (
        "Not lossless: keeps any guess that the big model finds likely enough (Medusa's rule), so above"
        " temperature 0 it writes another text than the big model would. The measured distance stands with"
        " the figures. The same text at temperature 0."
    )

    def accept(self, context: RoundContext, draft: Draft, logits: Logits) -> Acceptance:
        if context.sampling.greedy or context.rng.shared:
            return super().accept(context, draft, logits)
        row, p = target_rows(context, draft.proposal, logits)
        accepts: list[float] = []
        variation = 0.0
        for index, slot in enumerate(draft.slots):
            probs = row(index)
            border = threshold(probs)
            variation += distance(context, slot, probs, border)
            accepts.append(float(p[index] > border))
            if not accepts[-1]:
                return Acceptance(index, context.rng.draw(row(index)), True, accepts, variation)
            if slot.target_id in context.end_ids:
                return Acceptance(index + 1, None, False, accepts, variation)
        count = len(draft.slots)
        return Acceptance(
            count, context.rng.draw(row(count), context.place(count)), False, accepts, variation
        )


def threshold(probs: Probs) -> float:
    """min(ε, δ · exp(−H)) of a distribution [T]."""
    likely = probs[probs > 0.0]
    return min(EPSILON, DELTA * math.exp(float((likely * np.log(likely)).sum())))


def distance(context: RoundContext, slot: Slot, probs: Probs, border: float) -> float:
    """The total variation between p, `probs` [T], and the law of the rule with the slot's own
    distribution."""
    proposed = np.zeros_like(probs)
    if slot.match is not None:
        proposed[slot.target_id] = 1.0
    else:
        proposed[context.map.mapped_targets] = slot.distributions[()][context.map.mapped_drafters]
    kept = np.where(probs > border, proposed, 0.0)
    return 0.5 * float(np.abs(kept + (proposed.sum() - kept.sum()) * probs - probs).sum())
