"""Union of the vocabularies (Timor et al., algorithm 1): a yardstick."""

from __future__ import annotations

from torch import Tensor

from omnidemo.decoding.rollout import ProposalRule, min_limit, token_by_token
from omnidemo.methods.base import RoundContext
from omnidemo.methods.token_intersection import TokenIntersection
from omnidemo.vocab.vocabulary_map import VocabularyMap


class Union(TokenIntersection):
    """The drafter draws freely; a token that the target's vocabulary lacks has p = 0 and is always rejected.

    Lossless. Expected acceptance Σ_{T∩D} min(p, q), never above token intersection's (theorem 4.1). Cost: one drafter pass per token.
    """

    name = "union"
    title = "Union (yardstick)"
    help = "The drafter draws freely and tokens that the target does not have are rejected (Timor et al. 2025). Exact, rarely the fastest."

    def __init__(self) -> None:
        self._known: tuple[VocabularyMap, ProposalRule] | None = None  # a map, and how draws go on with it

    def proposal_rule(self, context: RoundContext) -> ProposalRule:
        if self._known is None or self._known[0] is not context.map:
            mask = self.logit_mask(context)
            limits = min_limit(mask)
            self._known = context.map, ProposalRule(limits, limits, context.map.to_target >= 0, token_by_token(mask).trie)
        return self._known[1]

    def logit_mask(self, context: RoundContext) -> Tensor:
        return context.map.readable_logit_mask
