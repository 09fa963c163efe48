"""Token-level intersection (Timor et al., algorithm 4; OmniDraft's SpD_DM)."""

from __future__ import annotations

from omnidemo.decoding.engine import RoundContext
from omnidemo.decoding.methods.ngram_exact import NgramExact
from omnidemo.decoding.rollout import ProposalRule, token_by_token
from omnidemo.decoding.sampling import Logits
from omnidemo.vocabulary.ngram_cache import NgramCache, no_ngrams

# draws of a correction from p; where all are discarded, p − q itself is drawn from: see `Residual._closer`
ATTEMPTS = 256


class TokenIntersection(NgramExact):
    """q'(t) = q(t) / Σ_{T∩D} q on the directly mapped tokens, 0 elsewhere: merging without n-grams.

    Lossless. Expected acceptance Σ min(p, q'), never below the union's (theorem 4.1). Cost: one drafter pass
    per token.
    """

    name = "token-intersection"
    title = "Token intersection (TLI)"
    help = (
        "The drafter may only propose tokens that both vocabularies contain (Timor et al. 2025). Exact at"
        " every temperature."
    )

    def __init__(self) -> None:
        super().__init__(overrun=0, attempts=ATTEMPTS)

    def ngrams(self, context: RoundContext) -> NgramCache:
        return no_ngrams(len(context.map.targets))

    def drawing_rule(self, context: RoundContext) -> ProposalRule:
        return token_by_token(self.first_mask(context, 0))

    def first_mask(self, context: RoundContext, limit: int) -> Logits:
        return context.map.draftable_logit_mask
