"""OmniDraft's own method (algorithm 1 with equations 1 and 2)."""

from __future__ import annotations

import numpy as np

from omnidemo.decoding.backend import Draft, Slot
from omnidemo.decoding.engine import RoundContext
from omnidemo.decoding.method import Method, slot_of, subtract
from omnidemo.decoding.sampling import Probs


class NgramMerge(Method):
    """Draft freely, then merge runs of drafter tokens that the cache knows, with q'(t) = Π q(dⱼ).

    Exact at temperature 0 only: the merged token's distribution is not Π q (the run could also have been two
    direct tokens), and equation 2 repairs it for the n-gram at context alone. Kept, as the paper's, for
    comparison. Cost: one drafter pass per token.
    """

    name = "ngram-merge"
    title = "n-gram merge (OmniDraft)"
    lossless = False
    coupled = False
    help = (
        "The paper's method: drafter tokens that together spell one target token are merged. Exact at"
        " temperature 0, approximate above."
    )

    def draft(self, context: RoundContext, budget: int) -> Draft:
        draft = Draft()
        start = len(context.drafter.ids)
        drawn, q, distributions = context.draw_freely(budget)
        draft.drafted = len(drawn)
        position = 0
        while position < len(drawn):
            merged = context.ngrams.longest(drawn, position)
            target_id, n = merged if merged else (context.map.targets[drawn[position]], 1)
            if target_id < 0:
                break
            draft.slots.append(slot_of(target_id, start, drawn, q, distributions, position, position + n))
            position += n
        context.drafter.rollback(start + position)
        return draft

    def residual(self, context: RoundContext, slot: Slot, probs: Probs) -> int:
        proposed = np.zeros_like(probs)
        proposed[context.map.mapped_targets] = slot.distributions[()][context.map.mapped_drafters]
        if len(slot.draft_ids) > 1:
            first = context.map.targets[slot.draft_ids[0]]
            if first >= 0:
                proposed[first] -= slot.q
            proposed[slot.target_id] = slot.q
        return subtract(context.rng, probs, proposed)
