"""String-level rejection sampling (Timor et al., algorithm 3, SLRS)."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from functools import cached_property
from weakref import WeakKeyDictionary, proxy

import numpy as np

from omnidemo.decoding.backend import Draft, Slot
from omnidemo.decoding.engine import NotFinite, RoundContext
from omnidemo.decoding.method import Method
from omnidemo.decoding.sampling import Probs
from omnidemo.vocabulary.vocabulary_map import VocabularyMap

CAP = 64  # spellings of one target token, at most: the proposal's distribution is a sum over all of them
Path = tuple[int, ...]


class StringRejection(Method):
    """Draft until the first target token of the text is settled; accept it with min(1, p(t)/ψ(t)).

    ψ(t) is the probability that drafting stops with a string whose first target token is t: a sum over every
    sequence that stops so, not only over the spellings of t. A rejection is corrected from norm(p − min(p,
    ψ)); what was drawn beyond t is discarded. Lossless. Expected acceptance Σ min(p, ψ). Cost: a drafter pass
    for every unsettled beginning of each proposed token, up to 2^(bytes − 1) of them, so it is for drafters
    of short tokens only: a pair with a token of more than 64 spellings is refused.
    """

    name = "string-rejection"
    title = "String rejection (SLRS)"
    lossless = True
    help = (
        "Judges strings by the probability of all their spellings (Timor et al. 2025). Exact; only for"
        " drafters of very short tokens."
    )

    def __init__(self, attempts: int = 4096) -> None:
        self.attempts = attempts  # residual draws before the residual is enumerated

    @classmethod
    def refusal(cls, vocabulary: VocabularyMap) -> str | None:
        token_id = strings_of(vocabulary).past_cap
        if token_id is None:
            return None
        text = vocabulary.target.writes(token_id).decode("utf-8", "replace")
        return (
            f"the drafter has more than {CAP} spellings of the target's token {text!r}, and each would have"
            " to be added up"
        )

    def draft(self, context: RoundContext, budget: int) -> Draft:
        draft = Draft()
        strings = strings_of(context.map)
        left = budget
        while left > 0:
            slot = Slot(-1, (), 1.0, len(context.drafter.ids), left)
            path: Path = ()
            draft_probs: list[float] = []
            whole = True
            while not strings.stopped(path, left):
                try:
                    drawn, prob, slot.distributions[path] = context.draw(
                        context.readable_logit_mask, len(draft.slots), path
                    )
                except NotFinite:
                    whole = False
                    break
                draft_probs.append(prob)
                path = (*path, drawn)
                context.drafter.push(drawn)
            draft.drafted += len(path)
            left -= len(path)
            if not path:
                break
            slot.target_id = strings.first(path) if whole else -1
            draft.slots.append(slot)
            if slot.target_id < 0:
                break
            if not context.sampling.greedy and not context.rng.shared:
                slot.q = self._psi(context, slot, slot.target_id)
            spelled = context.map.target.writes(slot.target_id) == strings.text(path)
            slot.draft_ids = path if spelled else context.map.spelling(slot.target_id) or ()
            slot.draft_probs = (
                draft_probs[: len(slot.draft_ids)] if slot.draft_ids == path[: len(slot.draft_ids)] else ()
            )
            context.drafter.rollback(slot.base)
            if not slot.draft_ids or slot.target_id in context.end_ids:
                break
            context.drafter.push(*slot.draft_ids)
            if not context.keep_drafting(slot.base, slot.draft_probs):
                break
        return draft

    def residual(self, context: RoundContext, slot: Slot, probs: Probs) -> int:
        """A token from norm(p − min(p, ψ)) by rejection: draw t ~ p, and discard it with probability
        min(1, ψ(t)/p(t))."""

        def attempt() -> int | None:
            token = context.rng.draw(probs)
            return (
                None
                if context.rng.accept(min(1.0, self._psi(context, slot, token) / float(probs[token])))
                else token
            )

        token = context.rng.first(attempt, self.attempts)
        if token is None:
            rest = probs.astype(np.float64)
            for other in np.flatnonzero(probs).tolist():
                rest[other] -= min(float(rest[other]), self._psi(context, slot, other))
            mass = float(rest.sum())
            token = context.rng.draw(rest / mass if mass > 0 else probs)
        context.drafter.rollback(slot.base)
        return token

    def _psi(self, context: RoundContext, slot: Slot, token: int, path: Path = ()) -> float:
        """P(drafting goes on from `path` and stops with a string whose first target token is `token`)."""
        strings = strings_of(context.map)
        probs: Probs | None = None
        total = 0.0
        for drawn in strings.towards(token, path):
            probs = context.probs_after(slot, path) if probs is None else probs
            prob = float(probs[drawn])
            longer = (*path, drawn)
            if prob > 0.0 and strings.stopped(longer, slot.limit):
                total += prob * (strings.first(longer) == token)
            elif prob > 0.0:
                total += prob * self._psi(context, slot, token, longer)
        return total


class Strings:
    """Strings over a pair's tokens: the first target token of a drafted string, and whether more text could
    change it."""

    def __init__(self, vocabulary: VocabularyMap) -> None:
        self.map: VocabularyMap = proxy(vocabulary)  # which `_known` must not keep
        self._firsts: dict[bytes, tuple[int, bool]] = {}
        readable = np.flatnonzero(vocabulary.readable).tolist()
        texts = sorted((vocabulary.drafter.writes(drafter_id), drafter_id) for drafter_id in readable)
        self._texts, self._ids = [text for text, _ in texts], [drafter_id for _, drafter_id in texts]

    @cached_property
    def past_cap(self) -> int | None:
        """A target token with more than `CAP` spellings, or None."""
        lengths = {text: 0 for text in self._texts if text}
        longest = max(map(len, lengths), default=0)
        for token_id, token in enumerate(self.map.target.tokens):
            ways = [1] + [0] * len(token or b"")
            for stop in range(1, len(ways)):
                ways[stop] = sum(
                    ways[start]
                    for start in range(max(0, stop - longest), stop)
                    if (token or b"")[start:stop] in lengths
                )
            if token and ways[-1] > CAP:
                return token_id
        return None

    @cached_property
    def _beginnings(self) -> frozenset[bytes]:
        """Every proper beginning of a target token."""
        return frozenset(
            token[:stop] for token in self.map.target.tokens if token for stop in range(1, len(token))
        )

    def text(self, path: Path) -> bytes:
        return b"".join(map(self.map.drafter.writes, path))

    def stopped(self, path: Path, limit: int) -> bool:
        """Whether drafting stops after `path`: its first target token is settled, or the budget is used up. A
        function of path and budget alone, which is all that the proof needs."""
        return bool(path) and (
            len(path) >= limit or self._is_role(path[-1]) or self._first(self.text(path))[1]
        )

    def first(self, path: Path) -> int:
        """The first target token of a drafted string; −1 where the target cannot spell it."""
        if self._is_role(path[0]):
            return self.map.targets[path[0]]
        return self._first(self.text(path))[0]

    def towards(self, token: int, path: Path) -> Iterator[int]:
        """Drafter tokens after which the first target token can still be `token`."""
        wanted = self.map.target.writes(token)
        if not wanted:
            direct = self.map.drafters[token]
            if not path and direct >= 0 and bool(self.map.readable[direct]):
                yield direct
            return
        rest = wanted[len(self.text(path)) :]
        low = bisect_left(self._texts, rest)
        high = bisect_right(self._texts, rest, key=lambda text: text[: len(rest)])
        yield from self._ids[low:high]  # those that reach the end of the token
        # those that do not; the empty ones are role tokens, which end a string
        for length in range(len(rest)):
            start = bisect_left(self._texts, rest[:length])
            while rest and start < len(self._texts) and self._texts[start] == rest[:length]:
                if length or path:
                    yield self._ids[start]
                start += 1

    def _is_role(self, drafter_id: int) -> bool:
        return not self.map.drafter.writes(drafter_id)

    def _first(self, text: bytes) -> tuple[int, bool]:
        """(first target token; whether more text can no longer change it, as far as this rule looks)."""
        if text not in self._firsts:
            spelled = self.map.target.spell(text)
            settled = spelled is None or len(spelled) > 1 or text not in self._beginnings
            self._firsts[text] = (spelled[0] if spelled else -1, settled)
        return self._firsts[text]


_known: WeakKeyDictionary[VocabularyMap, Strings] = WeakKeyDictionary()


def strings_of(vocabulary: VocabularyMap) -> Strings:
    """The strings of a pair, made once."""
    if vocabulary not in _known:
        _known[vocabulary] = Strings(vocabulary)
    return _known[vocabulary]
