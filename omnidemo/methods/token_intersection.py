"""Token-level intersection (Timor et al., algorithm 4; OmniDraft's SpD_DM)."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor

from omnidemo.core.ahead import Course, token_by_token
from omnidemo.core.sampling import Law, as_tensor
from omnidemo.methods.base import Draft, Hand, Method, Slot, subtract


class TokenIntersection(Method):
    """q'(t) = q(t) / Σ_{T∩D} q on the directly mapped tokens, 0 elsewhere.

    Lossless. Expected acceptance Σ min(p, q'), never below the union's (theorem 4.1). Cost: one drafter pass per token.
    """

    name = "token-intersection"
    title = "Token intersection (TLI)"
    lossless = True
    help = "The drafter may only propose tokens that both vocabularies contain (Timor et al. 2025). Exact at every temperature."

    def bars(self, hand: Hand) -> Tensor:
        """[D]: 0 for what the drafter may draw, −∞ for the rest."""
        return hand.map.draftable_bars

    def _course(self, hand: Hand) -> Course:
        return token_by_token(self.bars(hand))

    def draft(self, hand: Hand, budget: int) -> Draft:
        draft = Draft()
        for left in range(budget, 0, -1):
            base = len(hand.drafter.ids)
            hand.look_ahead(self._course, left)
            drawn, q, law = hand.draw(partial(self.bars, hand))
            draft.drafted += 1
            target_id = hand.map.targets[drawn]
            draft.slots.append(Slot(target_id, (drawn,), q, base, laws={(): law}, sure=(q,)))
            hand.drafter.push(drawn)
            if target_id < 0 or target_id in hand.end_ids or not hand.goes_on(draft.slots[-1]):
                break
        return draft

    def residual(self, hand: Hand, slot: Slot, law: Law) -> int:
        p = as_tensor(law)
        proposed = torch.zeros_like(p)
        proposed[hand.map.mapped_targets] = as_tensor(slot.laws[()])[hand.map.mapped_drafters]
        return subtract(hand.chooser, p, proposed)
