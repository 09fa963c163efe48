"""Drafts what an answer's form forces, and after that what memory proposes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from omnidemo.core.records import Match
from omnidemo.decoding.constraint import Constraint
from omnidemo.decoding.sources.copy_chances import LONGEST_COPY, CopiedDraft
from omnidemo.decoding.sources.memory_source import MemorySource
from omnidemo.decoding.sources.phrase_source import PhraseSource

FORCED = Match(0, "form")


@dataclass(slots=True)
class _FormDraft(CopiedDraft):
    """Forced ids, then those of `behind` up to the first that is not allowed."""

    forced: int = 0
    behind: CopiedDraft | None = None


class FormSource:
    """A `Source`: the ids that a form forces, then those of memory. Forced ids are drafted and verified like
    others, so the distribution stays the target's under the masks."""

    def __init__(self, constraint: Constraint, memory: MemorySource | PhraseSource | None) -> None:
        self._constraint, self._memory = constraint, memory

    def draft(self, ids: Sequence[int], most: int) -> CopiedDraft | None:
        most = min(most, LONGEST_COPY)
        made = _FormDraft(forced=len(ids_forced := self._constraint.forced(most)))
        made.ids += ids_forced
        made.matches += [FORCED] * made.forced
        made.chances += [1.0] * made.forced
        ended = made.ids[-1:] == [self._constraint.end]
        if self._memory is not None and made.forced < most and not ended:
            behind = self._memory.draft([*ids, *ids_forced], most - made.forced)
            self._memory.text.trim(len(ids))  # forced ids are not yet written
            if behind is not None:
                made.behind = behind
                count = max(0, self._constraint.legal([*ids_forced, *behind.ids]) - made.forced)
                made.ids += behind.ids[:count]
                made.matches += behind.matches[:count]
                made.chances += behind.chances[:count]
        return made if made.ids else None

    def learn(self, draft: CopiedDraft, written: Sequence[int]) -> None:
        """Memory learns if all forced ids were emitted, also of its ids that the form has cut."""
        assert isinstance(draft, _FormDraft)
        forced, later = draft.ids[: draft.forced], written[draft.forced :]
        if self._memory is None or draft.behind is None or not later:
            return
        if list(written[: draft.forced]) == forced:
            self._memory.learn(draft.behind, later)
