"""From a `RoundResult` to the public `Token`s: text, source, probabilities."""

from __future__ import annotations

import codecs
import math
from collections.abc import Iterator, Sequence

from omnidemo.core.records import Source, Token
from omnidemo.decoding.backend import RoundResult, Slot
from omnidemo.vocabulary.ngram_cache import NgramCache
from omnidemo.vocabulary.vocabulary_map import VocabularyMap


def emitted_tokens(
    result: RoundResult, vocabulary: VocabularyMap, decoder: codecs.IncrementalDecoder, greedy: bool,
    plain: bool,
) -> list[Token]:  # fmt: skip
    """The tokens that a round emits. `plain`: it was planned without a draft."""
    tokens, texts, whole = [], vocabulary.target.shown, not decoder.getstate()[0]
    for position, token_id in enumerate(result.ids):
        text = texts[token_id]
        if not whole or "\ufffd" in text:  # a part of a character
            text = decoder.decode(vocabulary.target.writes(token_id))
            whole = not decoder.getstate()[0]
        if position < result.accepted:
            tokens.append(_proposed(result, position, text, vocabulary, greedy))
            continue
        pieces = vocabulary.spelling(token_id) or ()
        source: Source = "plain" if plain else "corrected" if result.rejected or not result.slots else "bonus"
        tokens.append(
            Token(
                token_id,
                text,
                source,
                result.target_probs[-1],
                None,
                None,
                pieces,
                _piece_texts(pieces, vocabulary),
            )
        )
    return tokens


def discarded_tokens(result: RoundResult, vocabulary: VocabularyMap, greedy: bool) -> Iterator[Token]:
    """The draft tokens after the accepted ones: the rejected one, then those that were never judged."""
    for position in range(result.accepted, len(result.slots)):
        token_id = result.slots[position].target_id
        if token_id >= 0:
            yield _proposed(result, position, vocabulary.target.shown[token_id], vocabulary, greedy)


def _proposed(
    result: RoundResult, position: int, text: str, vocabulary: VocabularyMap, greedy: bool
) -> Token:
    slot = result.slots[position]
    source: Source = "direct" if len(slot.draft_ids) == 1 else "ngram"
    if slot.match is not None:
        source = "forced" if slot.match.origin == "form" else "copied"
    accept = result.accept_probs[position] if position < len(result.accept_probs) else None
    p, q, pieces = result.target_probs[position], _shown_q(slot, greedy), slot.draft_ids
    return Token(
        slot.target_id, text, source, p, q, accept, pieces, _piece_texts(pieces, vocabulary), slot.match
    )


def _shown_q(slot: Slot, greedy: bool) -> float | None:
    """The drafter's probability of a slot that its own tokens spell; 1 for a copied or forced one."""
    if slot.match is not None:
        return 1.0
    if greedy:  # q is 1 then; the probability at temperature 1 says more
        return math.prod(slot.draft_probs) if slot.draft_probs else None
    return slot.q if slot.draft_ids else None


def _piece_texts(pieces: Sequence[int], vocabulary: VocabularyMap) -> tuple[str, ...]:
    shown = vocabulary.drafter.shown
    return tuple([shown[piece] for piece in pieces])


def new_ngrams(
    token_id: int | None, vocabulary: VocabularyMap, ngrams: NgramCache
) -> tuple[tuple[int, tuple[int, ...]], ...]:
    """The n-gram of a token that the target wrote itself, unless the cache has it (OmniDraft 3.1)."""
    if token_id is None or token_id in ngrams:
        return ()
    spelled = vocabulary.ngram(token_id)
    return ((token_id, spelled),) if spelled else ()
