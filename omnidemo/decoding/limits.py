"""When a generation ends."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from omnidemo.records import FinishReason
from omnidemo.vocab.vocabulary_map import VocabularyMap


@dataclass(slots=True)
class Limits:
    """`stop` strings end a generation after the token that completes one; the text keeps them. `cancelled` is called after each round.
    `begun`: ids of the answer that were written before, at the end of the prompt: a stop string or a character may begin in them."""

    max_new_tokens: int
    stop: tuple[str, ...] = ()
    cancelled: Callable[[], bool] = lambda: False
    begun: Sequence[int] = ()

    def until_stop(self, ids: list[int], text: str, vocabulary: VocabularyMap, decoder: codecs.IncrementalDecoder) -> int:
        """How many of the ids that follow `text` stay: up to the one that completes a stop string. The decoder is left as it was."""
        state = decoder.getstate()
        count = len(ids)
        for position, token_id in enumerate(ids):
            text += decoder.decode(vocabulary.target.writes(token_id))
            if any(stop in text for stop in self.stop):
                count = position + 1
                break
        decoder.setstate(state)
        return count

    def finish_reason(self, text: str, emitted: int, free_positions: int) -> FinishReason | None:
        """Why the generation ends after `emitted` tokens with this text; None while it goes on. `free_positions`: what the target's
        window still holds."""
        if self.stop and any(stop in text for stop in self.stop):
            return "stop"
        return "length" if emitted >= self.max_new_tokens else self.reached(emitted, free_positions)

    def reached(self, emitted: int, free_positions: int) -> FinishReason | None:
        """As `finish_reason`, by the counts alone."""
        if free_positions < 1:
            return "context"
        return "length" if emitted >= self.max_new_tokens else None
