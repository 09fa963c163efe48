"""Drafts from memory as one chain of ids. Each is the likeliest by three sources: copies from the
conversation, copies from earlier answers, continuations of short contexts."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from omnidemo.core.records import Match
from omnidemo.decoding.sources.compiled import call
from omnidemo.decoding.sources.continuations import Continuations
from omnidemo.decoding.sources.copy_chances import LONGEST_COPY, CopiedDraft, CopyChances
from omnidemo.decoding.sources.memory_chain import ROW, chain, learn_chain
from omnidemo.decoding.sources.ngram_table import LONGEST
from omnidemo.decoding.sources.text_index import LONGEST_MATCH, TextIndex

ORIGINS: tuple[Literal["prompt", "answer", "earlier"], ...] = ("prompt", "answer", "earlier")
NO_TEXT, NOTHING_KNOWN = TextIndex(), Continuations(0)


class Source(Protocol):
    """Drafts target ids, each with an acceptance probability, and learns from the emitted ids.

    A draft depends on earlier ids alone, so it is a point mass, and the distribution of the text stays the
    target's. The drafter draws its tokens; for them `Method.draft` proposes and the draft policy learns.
    """

    def draft(self, ids: Sequence[int], most: int) -> CopiedDraft | None:
        """Draft at most `most` ids after the text `ids`; None for none."""
        ...

    def learn(self, draft: CopiedDraft, written: Sequence[int]) -> None:
        """Learn from the ids that were emitted in the draft's place."""
        ...


@dataclass(slots=True)
class _Chain(CopiedDraft):
    """A draft with the rows that `chain` has written."""

    made: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))


class MemorySource:
    """The drafts of one generation, from the conversation (`text`, whose first `prompt` ids are the prompt),
    from `earlier` answers, and from what is `known` of these. None changes within a round. Each source has
    its own chances by class; an id that several propose has a better chance."""

    def __init__(
        self, text: TextIndex, chances: CopyChances, ends: Collection[int], prompt: int,
        earlier: TextIndex | None = None, known: Continuations | None = None,
    ) -> None:  # fmt: skip
        self.text, self.chances, self.prompt = text, chances, prompt
        self.ends = np.array([*ends], np.int64)
        self.earlier = NO_TEXT if earlier is None else earlier
        self.known = NOTHING_KNOWN if known is None else known

    def draft(self, ids: Sequence[int], most: int) -> CopiedDraft | None:
        if (most := min(most, LONGEST_COPY)) < 1:
            return None
        if len(self.text) < len(ids):
            self.text.extend(ids[len(self.text) :])
        tail = np.array(ids[-LONGEST_MATCH:], np.int64)
        behind = np.full(LONGEST + most, -1, np.int64)
        behind[LONGEST - min(LONGEST, len(tail)) : LONGEST] = tail[-LONGEST:]
        made, wholes = np.empty(ROW * most, np.int64), np.empty(most)
        count = call(
            chain, self.text.arrays, self.earlier.arrays, self.known.table, self.chances.table, tail,
            self.prompt, self.ends, behind, np.empty(most), np.empty(most, np.int64), made, wholes,
        )  # fmt: skip
        if not count:
            return None
        made = made[: ROW * count]
        rows = made.reshape(count, ROW)[:, :3].tolist()
        matches = [Match(length, ORIGINS[origin]) for _, length, origin in rows]
        return _Chain([token for token, *_ in rows], matches, wholes[:count].tolist(), made)

    def learn(self, draft: CopiedDraft, written: Sequence[int]) -> None:
        assert isinstance(draft, _Chain)
        call(learn_chain, *self.chances.table, draft.made, np.array(written, np.int64))
