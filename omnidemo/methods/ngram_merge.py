"""OmniDraft's own method (algorithm 1 with equations 1 and 2)."""

from __future__ import annotations

import math

import torch

from omnidemo.core.sampling import Law, as_tensor
from omnidemo.methods.base import Draft, Hand, Method, Slot, subtract


class NgramMerge(Method):
    """Draft freely, then merge runs of drafter tokens that the cache knows, with q'(t) = Π q(dⱼ).

    Exact at temperature 0 only: the merged token's law is not Π q (the run could also have been two direct tokens), and
    equation 2 repairs it for the n-gram at hand alone. Kept, as the paper's, for comparison. Cost: one drafter pass per token.
    """

    name = "ngram-merge"
    title = "n-gram merge (OmniDraft)"
    lossless = False
    help = "The paper's method: drafter tokens that together spell one target token are merged. Exact at temperature 0, approximate above."

    def draft(self, hand: Hand, budget: int) -> Draft:
        draft = Draft()
        start = len(hand.drafter.ids)
        drawn, q, laws = hand.draw_freely(budget)
        draft.drafted = len(drawn)
        position = 0
        while position < len(drawn):
            merged = hand.ngrams.longest(drawn, position)
            target_id, n = merged if merged else (hand.map.targets[drawn[position]], 1)
            if target_id < 0:
                break
            pieces = tuple(drawn[position : position + n])
            sure = q[position : position + n]
            paths = {pieces[:depth]: laws[position + depth] for depth in range(n)}
            draft.slots.append(Slot(target_id, pieces, math.prod(sure), start + position, laws=paths, sure=sure))
            position += n
        hand.drafter.rollback(start + position)
        return draft

    def residual(self, hand: Hand, slot: Slot, law: Law) -> int:
        p = as_tensor(law)
        proposed = torch.zeros_like(p)
        proposed[hand.map.mapped_targets] = as_tensor(slot.laws[()])[hand.map.mapped_drafters]
        if len(slot.pieces) > 1:
            first = hand.map.targets[slot.pieces[0]]
            if first >= 0:
                proposed[first] -= slot.q
            proposed[slot.target_id] = slot.q
        return subtract(hand.chooser, p, proposed)
