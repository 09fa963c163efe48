"""Speculative decoding with one vocabulary (Leviathan et al. 2023; Chen et al. 2023; Timor et al., algorithm
5)."""

from __future__ import annotations

from omnidemo.decoding.methods.token_intersection import TokenIntersection
from omnidemo.vocabulary.vocabulary_map import VocabularyMap


class Speculative(TokenIntersection):
    """Accept a drafted token with min(1, p/q), correct the first rejection from norm(max(0, p − q)).

    It is token intersection where the intersection is the whole vocabulary, so that q' = q. Lossless.
    Expected acceptance Σ min(p, q). Cost: one drafter pass per token. Only for a target and a drafter of the
    same vocabulary.
    """

    name = "speculative"
    title = "Speculative (one vocabulary)"
    help = (
        "The original method (Leviathan et al. 2023), for a drafter that shares the target's vocabulary."
        " Exact at every temperature."
    )

    @classmethod
    def refusal(cls, vocabulary: VocabularyMap) -> str | None:
        if vocabulary.target.tokens == vocabulary.drafter.tokens:
            return None
        sizes = f"{len(vocabulary.target):,} and {len(vocabulary.drafter):,} tokens"
        return f"target and drafter have different vocabularies ({sizes})"
