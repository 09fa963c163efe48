"""Drafts from memory as one chain: id by id the likeliest, by copies from the conversation, copies from
earlier answers, and continuations."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from omnidemo.core.records import Match
from omnidemo.decoding.sources import compiled
from omnidemo.decoding.sources.continuations import Continuations
from omnidemo.decoding.sources.copier import (
    LEAST,
    LONGEST_COPY,
    SOURCES,
    CopiedDraft,
    Copier,
    class_of_continuation,
)
from omnidemo.decoding.sources.ngram_table import LONGEST, MEETINGS
from omnidemo.decoding.sources.text_index import LONGEST_MATCH, TextIndex

NOWHERE = Match(0, "earlier")
ORIGINS: tuple[Literal["prompt", "answer", "earlier"], ...] = ("prompt", "answer", "earlier")
NO_TEXT, NOTHING_KNOWN = TextIndex(), Continuations(0)
Offers = list[tuple[int, int, float]]  # (id, class, chance)


class Source(Protocol):
    """Proposes ids for the target, each with a chance, and learns from the ids that were written instead.

    A proposal depends on earlier ids alone, so it is a point mass and the law of the text stays the target's.
    The drafter, whose tokens are drawn, is the other source: `Method.draft` proposes, and the draft policy
    has the chances and learns.
    """

    def draft(self, ids: Sequence[int], most: int) -> CopiedDraft | None:
        """At most `most` ids after the text `ids`; None for none."""
        ...

    def learn(self, draft: CopiedDraft, written: Sequence[int]) -> None:
        """Learn from the ids that were written in the draft's place."""
        ...


@dataclass(slots=True)
class _Chain(CopiedDraft):
    """A draft with the offers for each of its places."""

    offers: list[Offers] = field(default_factory=list)


@dataclass(slots=True)
class _CompiledChain(CopiedDraft):
    """A draft of compiled code, with its rows."""

    made: NDArray[np.int64] = field(default_factory=lambda: np.zeros((0, 3 + 2 * SOURCES), np.int64))


class MemorySource(Copier):
    """`Copier`, and what is `known` of earlier answers, which an answer does not change. Each source has its
    own chances by class; an id that several propose has a better chance."""

    known: Continuations | None = None

    @cached_property
    def _ends(self) -> NDArray[np.int64]:
        return np.array([*self.ends], np.int64)

    def draft(self, ids: Sequence[int], most: int) -> CopiedDraft | None:
        most = min(most, LONGEST_COPY)
        return self._chain(ids, most) if compiled.functions is None or most < 1 else self._call(ids, most)

    def _call(self, ids: Sequence[int], most: int) -> CopiedDraft | None:
        """`_chain` by compiled code."""
        if len(self.text) < len(ids):
            self.text.extend(ids[len(self.text) :])
        earlier, known, chances = self.earlier or NO_TEXT, self.known or NOTHING_KNOWN, self.chances
        made, wholes = np.empty((most, 3 + 2 * SOURCES), np.int64), np.empty(most)
        count = compiled.functions.chain(
            self.text.arrays, earlier.arrays, known.table, (chances.weight, chances.accepted),
            np.array(ids[-LONGEST_MATCH:], np.int64), self.prompt, self._ends, made, wholes,
        )  # fmt: skip
        if not count:
            return None
        made = made[:count]
        rows = made[:, :3].tolist()
        return _CompiledChain(
            [token for token, *_ in rows], [Match(length, ORIGINS[origin]) for _, length, origin in rows],
            [], wholes[:count].tolist(), made,
        )  # fmt: skip

    def _chain(self, ids: Sequence[int], most: int) -> CopiedDraft | None:
        tail, made = [*ids[-LONGEST:]], _Chain()
        both, known = self.drafts(ids, most), self.known
        copies = [copied for copied in both if copied is not None]
        found, first, whole = known.follow(tail, most) if known is not None else [], 0, 1.0
        for step in range(most):
            offers: Offers = []
            follows, match = -1, NOWHERE
            if step - first < len(found):
                follows, share, kind = found[step - first]
                own = class_of_continuation(kind, share)
                offers.append((follows, own, self.chances(own)))
            for copied in copies:
                if step < len(copied.ids):
                    kind = copied.classes[step]
                    offers.append((copied.ids[step], kind, self.chances(kind)))
            best, token = 0.0, -1
            for each, *_ in offers:
                if each != token and (chance := _chance(each, offers)) > best:
                    best, token = chance, each
            whole *= best
            if whole < LEAST:
                break
            if token == follows:
                match = Match(found[step - first][2] // MEETINGS + 1, "earlier")
            copies = [copied for copied in copies if copied.ids[step : step + 1] == [token]]
            for copied in copies:
                if copied.matches[step].length >= match.length:
                    match = copied.matches[step]
            made.ids.append(token)
            made.matches.append(match)
            made.chances.append(whole)
            made.offers.append(offers)
            if token in self.ends:
                break
            if known is not None and token != follows:
                found, first = known.follow(tail + made.ids, most - step - 1), step + 1
        return made if made.ids else None

    def learn(self, draft: CopiedDraft, written: Sequence[int]) -> None:
        if isinstance(draft, _CompiledChain):
            right = self.chances.weight, self.chances.accepted
            compiled.functions.learn_chain(right, draft.made, np.array(written, np.int64))
            return
        assert isinstance(draft, _Chain)
        places = zip(draft.offers, draft.ids, written, strict=False)
        for offers, token, wanted in places:
            for other, kind, _ in offers:
                self.chances.learn(kind, float(other == wanted))
            if token != wanted:
                break


def _chance(token: int, offers: Offers) -> float:
    """The chance of an id by the surest source that proposes it, and by the others as half independent."""
    surest, all_wrong = 0.0, 1.0
    for other, _, chance in offers:
        if other == token:
            surest, all_wrong = max(surest, chance), all_wrong * (1.0 - chance)
    return 1.0 - math.sqrt(all_wrong * (1.0 - surest))
