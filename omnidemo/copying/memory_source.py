"""Drafts from memory, in one chain: id by id what is likeliest by the copies of the conversation, those of
earlier answers, and the continuations of these."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from omnidemo.copying.agreement import Features, features_of
from omnidemo.copying.continuations import Continuations
from omnidemo.copying.copier import LEAST, LONGEST_COPY, CopiedDraft, Copier, class_of_continuation
from omnidemo.copying.ngram_table import LONGEST, MEETINGS
from omnidemo.records import Match


class Source(Protocol):
    """Proposes ids for the target, each with a chance, and hears what was written in their place.

    Whatever it proposes depends on what came before alone, so each proposal is a point mass and the law of
    the text stays the target's. The drafter, whose tokens are drawn, is the other source: `Method.draft`
    proposes, and the draft policy has the chances and hears.
    """

    def draft(self, ids: Sequence[int], most: int) -> CopiedDraft | None:
        """At most `most` ids after the text `ids`; None for none."""
        ...

    def learn(self, draft: CopiedDraft, written: Sequence[int]) -> None:
        """Take what was written where the draft was proposed, or would have been."""
        ...


@dataclass(slots=True)
class _Place:
    """What was offered for one place: (source, class, id) of each, and the features of each id."""

    offered: list[tuple[int, int, int]]
    candidates: list[tuple[int, Features]]


@dataclass(slots=True)
class _Chain(CopiedDraft):
    places: list[_Place] = field(default_factory=list)


class MemorySource(Copier):
    """What `Copier` copies, and what is `known` of earlier answers, which an answer does not change. Each
    source has chances of its own by class; `CopyChances.agreement` makes one of them for each id."""

    known: Continuations | None = None

    def draft(self, ids: Sequence[int], most: int) -> CopiedDraft | None:
        most, tail, made = min(most, LONGEST_COPY), [*ids[-LONGEST:]], _Chain()
        both = enumerate(self.drafts(ids, most), 1)
        copies = [(source, copied) for source, copied in both if copied is not None]
        known = self.known
        found, first = known.follow(tail, most) if known is not None else [], 0
        whole = 1.0
        while (step := len(made.ids)) < most:
            offers = [(source, copied.offer(step)) for source, copied in copies if step < len(copied.ids)]
            if step - first < len(found):
                token, share, kind = found[step - first]
                own = class_of_continuation(kind, share)
                match = Match(kind // MEETINGS + 1, "earlier")
                offers.append((0, (token, own, self.chances(own), match)))
            if not offers:
                break
            offered = [(source, token, chance) for source, (token, _, chance, _) in offers]
            candidates = [
                (token, features_of(token, offered, step > 0))
                for token in dict.fromkeys(token for _, token, _ in offered)
            ]
            chances = [self.chances.agreement.chance(features) for _, features in candidates]
            best = max(range(len(chances)), key=chances.__getitem__)
            token, whole = candidates[best][0], whole * chances[best]
            if whole < LEAST:
                break
            match = max((offer[3] for _, offer in offers if offer[0] == token), key=lambda one: one.length)
            made.ids.append(token)
            made.matches.append(match)
            made.chances.append(whole)
            made.places.append(_Place([(at, kind, token) for at, (token, kind, *_) in offers], candidates))
            if token in self.ends:
                break
            copies = [(at, copied) for at, copied in copies if copied.ids[step : step + 1] == [token]]
            if known is not None and not (step - first < len(found) and found[step - first][0] == token):
                found, first = known.follow(tail + made.ids, most - step - 1), step + 1
        return made if made.ids else None

    def learn(self, draft: CopiedDraft, written: Sequence[int]) -> None:
        assert isinstance(draft, _Chain)
        for place, token, wanted in zip(draft.places, draft.ids, written, strict=False):
            for _, kind, other in place.offered:
                self.chances.learn(kind, float(other == wanted))
            for other, features in place.candidates:
                self.chances.agreement.learn(features, other == wanted)
            if token != wanted:
                break
