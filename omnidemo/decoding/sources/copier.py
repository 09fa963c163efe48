"""Copied drafts: the ids that followed the newest ids of the text at an earlier place.

Nothing here depends on the target's next draw, so a proposal is a point mass.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from omnidemo.core.records import Match
from omnidemo.decoding.sources.text_index import BREAK, TextIndex

LONGEST_COPY = 16  # ids of a draft
Origin = Literal["prompt", "answer", "earlier"]
SOURCES = 3  # of ids: continuations, the conversation, earlier answers
LEVELS = 2  # longest match lengths for which a draft is made
LEAST = 0.1  # a draft ends where the chance that all its ids are accepted falls below
LENGTHS = (3, 4, 5, 7, 9, 13, 20)  # borders of the classes of match lengths
AGREEING = 4  # classes of agreement: one place; all of several; more than half; fewer
CLASSES = AGREEING * (len(LENGTHS) + 1)  # of a copied id, of each source
# borders of the classes of a continuation's share
SHARES = (0.35, 0.5, 0.65, 0.8, 0.9, 0.95, 0.98)
BELIEF = 8.0  # observations that a prior chance is worth
FORGET = 0.995  # decay of a class's older observations with each new one
# Prior P(accepted) of a copied id, by match length (rows) and agreement, from the conversation and from
# earlier answers: measured on SmolLM2's greedy answers, rounded.
FIRST_CHANCES = (
    ((0.6, 0.6, 0.5, 0.3), (0.63, 0.78, 0.5, 0.33), (0.72, 0.78, 0.55, 0.25), (0.78, 0.79, 0.55, 0.3),
        (0.83, 0.82, 0.55, 0.35),
     (0.85, 0.88, 0.6, 0.35), (0.91, 0.92, 0.65, 0.35), (0.95, 0.96, 0.7, 0.35)),
    ((0.35, 0.45, 0.4, 0.25), (0.45, 0.6, 0.45, 0.3), (0.55, 0.67, 0.5, 0.27), (0.5, 0.65, 0.5, 0.25),
        (0.5, 0.73, 0.5, 0.35),
     (0.57, 0.9, 0.5, 0.3), (0.62, 0.88, 0.5, 0.25), (0.75, 0.9, 0.5, 0.3)),
)  # fmt: skip
# Prior P(accepted) of a continuation, by kind (rows: a context of one id that was met once, twice, more
# often; of two ids …) and share: measured on answers of the 1.5B and SmolLM2 to tasks.
FIRST_OF_CONTINUATIONS = (
    (0.33, 0.33, 0.33, 0.33, 0.33, 0.33, 0.33, 0.33), (0.1, 0.15, 0.2, 0.3, 0.5, 0.6, 0.7, 0.7),
    (0.1, 0.18, 0.25, 0.38, 0.55, 0.75, 0.85, 0.9),
    (0.3, 0.3, 0.3, 0.35, 0.45, 0.6, 0.7, 0.7), (0.12, 0.15, 0.2, 0.3, 0.45, 0.6, 0.8, 0.85),
    (0.2, 0.28, 0.35, 0.5, 0.65, 0.75, 0.85, 0.95),
    (0.35, 0.4, 0.45, 0.5, 0.55, 0.6, 0.65, 0.7), (0.1, 0.12, 0.2, 0.3, 0.45, 0.55, 0.7, 0.75),
    (0.2, 0.28, 0.35, 0.5, 0.65, 0.75, 0.85, 0.95),
    (0.5, 0.5, 0.5, 0.58, 0.66, 0.66, 0.74, 0.81), (0.2, 0.25, 0.4, 0.5, 0.65, 0.8, 0.9, 0.92),
    (0.12, 0.27, 0.43, 0.63, 0.78, 0.88, 0.93, 0.98),
)  # fmt: skip


class CopyChances:
    """How often ids from memory are accepted, by class. The class of a copied id: the source, the number of
    newest ids that agree with the place (earlier ids of the same draft included), and how far several places
    agree. The class of a continuation: its kind and its share."""

    def __init__(self) -> None:
        first = [chance for source in FIRST_CHANCES for row in source for chance in row]
        first += [chance for kind in FIRST_OF_CONTINUATIONS for chance in kind]
        self.weight = np.full(len(first), BELIEF)
        self.accepted = BELIEF * np.array(first)

    def __call__(self, at: int) -> float:
        return self.accepted.item(at) / self.weight.item(at)

    def learn(self, at: int, accepted: float) -> None:
        """Note an acceptance (0 or 1, or its probability)."""
        self.weight[at] = FORGET * self.weight[at] + 1.0
        self.accepted[at] = FORGET * self.accepted[at] + accepted


def _class_of(length: int, places: int, all_places: int, earlier: bool) -> int:
    agreeing = 0 if all_places == 1 else 1 if places == all_places else 2 if 2 * places > all_places else 3
    return (CLASSES if earlier else 0) + AGREEING * bisect_right(LENGTHS, length) + agreeing


def class_of_continuation(kind: int, share: float) -> int:
    """The class of an id from `Continuations`."""
    return 2 * CLASSES + kind * (len(SHARES) + 1) + bisect_right(SHARES, share)


@dataclass(slots=True)
class CopiedDraft:
    """Target ids that may be proposed: for each its origin, its class, and the chance that it and all before
    it are accepted."""

    ids: list[int] = field(default_factory=list)
    matches: list[Match] = field(default_factory=list)
    classes: list[int] = field(default_factory=list)
    chances: list[float] = field(default_factory=list)


class Copier:
    """Copied drafts of one generation, from the conversation (`text`, whose first `prompt` ids are the
    prompt) and from `earlier` answers. Neither changes within a round."""

    def __init__(
        self,
        text: TextIndex,
        chances: CopyChances,
        ends: Collection[int],
        prompt: int,
        earlier: TextIndex | None = None,
    ) -> None:
        self.text, self.chances, self.ends, self.prompt, self.earlier = text, chances, ends, prompt, earlier

    def draft(self, ids: Sequence[int], most: int) -> CopiedDraft | None:
        """The draft of at most `most` ids after the text `ids` with the largest expected length; None for
        none."""
        own, other = self.drafts(ids, most)
        better = other is not None and (own is None or sum(other.chances) > sum(own.chances))
        return other if better else own

    def drafts(self, ids: Sequence[int], most: int) -> tuple[CopiedDraft | None, CopiedDraft | None]:
        """(the best draft from the conversation, the best draft from earlier answers)."""
        if len(self.text) < len(ids):
            self.text.extend(ids[len(self.text) :])
        own = self._from(self.text, ids, most, False)
        return own, self._from(self.earlier, ids, most, True) if self.earlier is not None else None

    def _from(self, text: TextIndex, tail: Sequence[int], most: int, earlier: bool) -> CopiedDraft | None:
        places = text.places(tail, not earlier)
        if not places or most < 1:
            return None
        best, expected, most = None, 0.0, min(most, LONGEST_COPY)
        lengths = {length for length, _ in places}
        for shortest in sorted(lengths, reverse=True)[:LEVELS] if len(lengths) > 1 else lengths:
            found = self._follow(text, [place for place in places if place[0] >= shortest], most, earlier)
            if (length := sum(found.chances)) > expected:
                best, expected = found, length
        return best

    def _follow(
        self, text: TextIndex, places: list[tuple[int, int]], most: int, earlier: bool
    ) -> CopiedDraft:
        """The ids that follow most of the places, one by one; the newest place decides among equals."""
        draft, ids, chance, longest, size = CopiedDraft(), text.ids, 1.0, max(places)[0], len(text.ids)
        for step in range(most):
            while places and places[0][1] + step >= size:
                places = places[1:]
            if not places:
                break
            following = [ids[at + step] for _, at in places]
            every, token = len(following), following[0]
            if every > 1 and following.count(token) != every:
                token = max(dict.fromkeys(following), key=following.count)
                places = [place for place, other in zip(places, following, strict=True) if other == token]
                longest = max(places)[0]
            if token == BREAK:
                break
            kind = _class_of(longest + step, len(places), every, earlier)
            chance *= self.chances(kind)
            if chance < LEAST:
                break
            origin: Origin = (
                "earlier" if earlier else "prompt" if places[0][1] + step < self.prompt else "answer"
            )
            draft.ids.append(token)
            draft.matches.append(Match(longest + step, origin))
            draft.classes.append(kind)
            draft.chances.append(chance)
            if token in self.ends:
                break
        return draft

    def learn(self, draft: CopiedDraft, written: Sequence[int]) -> None:
        """Learn from the ids that were written in the draft's place."""
        for kind, token, wanted in zip(draft.classes, draft.ids, written, strict=False):
            self.chances.learn(kind, float(token == wanted))
            if token != wanted:
                break
