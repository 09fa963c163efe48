"""Known phrases: what the target wrote most often after one to four ids. They are drafted beside memory,
which knows this chat and earlier answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from omnidemo.decoding.sources.continuations import Continuations
from omnidemo.decoding.sources.copy_chances import BELIEF, CopiedDraft, CopyChances
from omnidemo.decoding.sources.memory_chain import class_of_continuation
from omnidemo.decoding.sources.memory_source import MemorySource
from omnidemo.decoding.sources.ngram_table import LONGEST, MEETINGS

# Prior P(accepted) by the ids of the context (rows) and the share: measured on a tenth of the 1.5B's recorded
# answers, with phrases of the others.
FIRST_OF_PHRASES = np.array([
    (0.11, 0.18, 0.22, 0.38, 0.38, 0.44, 0.69, 0.93), (0.12, 0.25, 0.35, 0.5, 0.5, 0.69, 0.85, 0.97),
    (0.13, 0.21, 0.39, 0.52, 0.54, 0.71, 0.77, 0.9), (0.15, 0.28, 0.5, 0.62, 0.75, 0.86, 0.87, 0.95),
])  # fmt: skip


@dataclass(slots=True)
class _Either(CopiedDraft):
    """The better of two drafts. Both sources learn what became of theirs."""

    memory: CopiedDraft | None = None
    phrases: CopiedDraft | None = None


class PhraseSource:
    """A `Source`: memory's ids, or the conversation's and known phrases' where more of them are expected to
    be right. Phrases do not change."""

    def __init__(self, memory: MemorySource, phrases: Continuations) -> None:
        self.text, self._memory = memory.text, memory
        chances = CopyChances()
        for depth in range(LONGEST):  # each context was met more often than twice
            at = class_of_continuation(MEETINGS * depth + MEETINGS - 1, 0.0)
            chances.accepted[at : at + len(FIRST_OF_PHRASES[depth])] = BELIEF * FIRST_OF_PHRASES[depth]
        self._phrases = MemorySource(memory.text, chances, memory.ends, memory.prompt, known=phrases)

    def draft(self, ids: Sequence[int], most: int) -> CopiedDraft | None:
        memory, phrases = self._memory.draft(ids, most), self._phrases.draft(ids, most)
        if memory is None and phrases is None:
            return None
        made = _Either(memory=memory, phrases=phrases)
        if phrases is not None and (memory is None or sum(phrases.chances) > sum(memory.chances)):
            made.ids, made.chances = phrases.ids, phrases.chances
            made.matches = [
                match._replace(origin="phrase") if match.origin == "earlier" else match
                for match in phrases.matches
            ]
        elif memory is not None:
            made.ids, made.matches, made.chances = memory.ids, memory.matches, memory.chances
        return made

    def learn(self, draft: CopiedDraft, written: Sequence[int]) -> None:
        assert isinstance(draft, _Either)
        for source, made in ((self._memory, draft.memory), (self._phrases, draft.phrases)):
            if made is not None:
                source.learn(made, written)
