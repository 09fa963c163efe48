"""Token-level intersection (Timor et al., algorithm 4; OmniDraft's SpD_DM)."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor

from omnidemo.decoding.backend import Draft, Slot
from omnidemo.decoding.method import Method, subtract
from omnidemo.decoding.randomness import BatchedSampler
from omnidemo.decoding.rollout import ProposalRule, token_by_token
from omnidemo.decoding.round import NotFinite, RoundContext
from omnidemo.decoding.sampling import Probs, as_tensor

ATTEMPTS = 256  # draws of a correction before it is computed in full: that takes as long as ten


class TokenIntersection(Method):
    """q'(t) = q(t) / Σ_{T∩D} q on the directly mapped tokens, 0 elsewhere.

    Lossless. Expected acceptance Σ min(p, q'), never below the union's (theorem 4.1). Cost: one drafter pass per token.
    """

    name = "token-intersection"
    title = "Token intersection (TLI)"
    lossless = True
    help = "The drafter may only propose tokens that both vocabularies contain (Timor et al. 2025). Exact at every temperature."

    def logit_mask(self, context: RoundContext) -> Tensor:
        """[D]: 0 for what the drafter may draw, −∞ for the rest."""
        return context.map.draftable_logit_mask

    def proposal_rule(self, context: RoundContext) -> ProposalRule:
        return token_by_token(self.logit_mask(context))

    def draft(self, context: RoundContext, budget: int) -> Draft:
        draft = Draft()
        for left in range(budget, 0, -1):
            base = len(context.drafter.ids)
            context.begin_slot(self.proposal_rule, left)
            try:
                drawn, q, probs = context.draw(partial(self.logit_mask, context))
            except NotFinite:
                break
            draft.drafted += 1
            target_id = context.map.targets[drawn]
            draft.slots.append(Slot(target_id, (drawn,), q, base, distributions={(): probs}, draft_probs=(q,)))
            context.drafter.push(drawn)
            if target_id < 0 or target_id in context.end_ids or not context.keep_drafting(draft.slots[-1]):
                break
        return draft

    def residual(self, context: RoundContext, slot: Slot, probs: Probs) -> int:
        """By rejection: draw t ~ p, and throw it away with probability q'(t)/p(t). In full only where that would take too long."""
        vocabulary, proposed = context.map, slot.distributions[()]
        draws = BatchedSampler(context.rng, probs, lambda: as_tensor(proposed)[vocabulary.to_drafter.clamp(min=0)])

        def attempt() -> int | None:
            token, p, q = draws.draw()
            drafter_id = vocabulary.drafters[token]
            if drafter_id < 0 or not vocabulary.may_draft[drafter_id]:
                return token
            q = float(proposed[drafter_id]) if q is None else q
            return None if q > 0.0 and context.rng.accept(min(1.0, q / p)) else token

        token = context.rng.first(attempt, ATTEMPTS)
        if token is not None:
            return token
        rest, taken = as_tensor(probs), torch.zeros_like(as_tensor(probs))
        taken[vocabulary.mapped_targets] = as_tensor(proposed)[vocabulary.mapped_drafters]
        return subtract(context.rng, rest, taken)
