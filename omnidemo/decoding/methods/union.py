"""Union of the vocabularies (Timor et al., algorithm 1): a yardstick."""

from __future__ import annotations

from dataclasses import replace

from omnidemo.decoding.engine import RoundContext
from omnidemo.decoding.methods.token_intersection import TokenIntersection
from omnidemo.decoding.rollout import ProposalRule, token_by_token
from omnidemo.decoding.sampling import Logits


class Union(TokenIntersection):
    """The drafter draws freely; a token that the target's vocabulary lacks has p = 0 and is always rejected.

    Lossless. Expected acceptance Σ_{T∩D} min(p, q), never above token intersection's (theorem 4.1). Cost: one
    drafter pass per token.
    """

    name = "union"
    title = "Union (yardstick)"
    help = (
        "The drafter draws freely and tokens that the target does not have are rejected (Timor et al. 2025)."
        " Exact, rarely the fastest."
    )

    def __init__(self) -> None:
        super().__init__()
        self._rule: ProposalRule | None = None  # the newest

    def drawing_rule(self, context: RoundContext) -> ProposalRule:
        if self._rule is None or self._rule.alone is not context.map.mapped:
            self._rule = replace(token_by_token(self.first_mask(context, 0)), alone=context.map.mapped)
        return self._rule

    def first_mask(self, context: RoundContext, limit: int) -> Logits:
        return context.map.readable_logit_mask
