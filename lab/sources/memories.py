"""What could be proposed from what was written before: n-grams of target ids, and copies.

A memory says for a text which ids may follow, and in which situation it says so (`kind`): how often ids of a
kind are right is learned by kind.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple

from omnidemo.decoding.sources.copier import AGREEING, FIRST_CHANCES, LENGTHS
from omnidemo.decoding.sources.text_index import BREAK, LONGEST_MATCH, TextIndex
from omnidemo.pair.copy_memory import TAIL

LEAST = 0.01  # probability of an id that is learned
KINDS = 100  # of a memory at most


class Look(NamedTuple):
    """What may follow a text. `probs`: by id, nothing where nothing is known."""

    kind: int
    probs: dict[int, float]


NOTHING = Look(0, {})


class Written(NamedTuple):
    """Ids that a round has written: `begin`, the place of the first in the text; `rows`, what the target said
    at each, as (id, probability) from the likeliest down."""

    begin: int
    rows: Sequence[Sequence[tuple[int, float]]]


class Memory:
    """What sources have in common. `prior`: how often an id of a kind is right, as far as one can say
    beforehand; None: as often as its probability says."""

    def begin(self, prompt: Sequence[int]) -> None:
        """A new answer begins."""

    def look(self, text: Sequence[int]) -> Look:
        """What may follow a text, which begins with what was written; what stands behind is a draft."""
        raise NotImplementedError

    def learn(self, text: Sequence[int], written: Written) -> None:
        """A round has written the end of `text`."""

    def end(self, prompt: Sequence[int], ids: Sequence[int]) -> None:
        """The answer has ended."""

    def prior(self, kind: int) -> float | None:
        return None


class Ngrams(Memory):
    """What followed the newest 1 to `orders` ids: for each context sums of the target's probabilities of its
    `most` likeliest ids. An entry fades by `decay` each time that it is met again; a longer context counts
    against the shorter ones as its weight against `trust`. `soft` False: what was written counts alone.
    `prompts`: the weight with which the prompt's ids are learned, of contexts of two ids or more."""

    def __init__(
        self, orders: int = 4, most: int = 8, decay: float = 0.8, trust: float = 0.4, soft: bool = True,
        prompts: float = 0.0,
    ) -> None:  # fmt: skip
        self.orders, self.most, self.decay, self.trust = orders, most, decay, trust
        self.soft, self.prompts = soft, prompts
        self.weights: dict[tuple[int, ...], float] = {}
        self.sums: dict[tuple[int, ...], dict[int, float]] = {}

    def begin(self, prompt: Sequence[int]) -> None:
        if self.prompts:
            for place in range(2, len(prompt)):
                self._add(prompt, place, [(prompt[place], 1.0)], self.prompts, 2)

    def learn(self, text: Sequence[int], written: Written) -> None:
        for place, row in enumerate(written.rows, written.begin):
            kept = [one for one in row[: self.most] if one[1] > LEAST]
            self._add(text, place, kept if self.soft else [(text[place], 1.0)], 1.0, 1)

    def _add(
        self, text: Sequence[int], place: int, row: Sequence[tuple[int, float]], weight: float, least: int
    ) -> None:
        for order in range(least, min(self.orders, place) + 1):
            key = tuple(text[place - order : place])
            known = self.sums.get(key)
            if known is None:
                self.weights[key], self.sums[key] = weight, {token: weight * p for token, p in row}
                continue
            self.weights[key] = self.decay * self.weights[key] + weight
            for token in known:
                known[token] *= self.decay
            for token, p in row:
                known[token] = known.get(token, 0.0) + weight * p
            if len(known) > self.most:
                for token in sorted(known, key=known.__getitem__)[: len(known) - self.most]:
                    del known[token]

    def look(self, text: Sequence[int]) -> Look:
        probs, longest, seen, size = dict[int, float](), 0, 0.0, len(text)
        for order in range(1, min(self.orders, size) + 1):
            key = tuple(text[size - order :])
            known = self.sums.get(key)
            if known is None:
                if order == 1 and self.prompts:
                    continue  # prompts are learned from two ids on
                break
            longest, seen = order, self.weights[key]
            whole = seen + self.trust
            probs = {token: p * self.trust / whole for token, p in probs.items()}
            for token, p in known.items():
                probs[token] = probs.get(token, 0.0) + p / whole
        # the longest known context, and how often it was met: once, a few times, often
        return Look(3 * longest + (seen > 1.2) + (seen > 2.4), probs)

    @property
    def size(self) -> tuple[int, int]:
        """(contexts, ids with a probability)."""
        return len(self.sums), sum(map(len, self.sums.values()))


class Recycling(Ngrams):
    """Token Recycling (2408.08696): what the target said the last time after the newest id."""

    def __init__(self) -> None:
        super().__init__(orders=1, decay=0.0)


class Copies(Memory):
    """What stands behind places that agree with the newest ids, as `Copier` finds them; asked for each id
    anew. `earlier`: from the answers before with the ends of their prompts, not from the chat."""

    def __init__(self, earlier: bool) -> None:
        self.earlier, self.index = earlier, TextIndex()

    def begin(self, prompt: Sequence[int]) -> None:
        if not self.earlier:
            self.index = TextIndex()
            self.index.extend(prompt)

    def learn(self, text: Sequence[int], written: Written) -> None:
        if not self.earlier:
            self.index.extend(text[written.begin :])

    def end(self, prompt: Sequence[int], ids: Sequence[int]) -> None:
        if self.earlier:
            self.index.extend([*prompt[-TAIL:], *ids, BREAK])

    def look(self, text: Sequence[int]) -> Look:
        places = self.index.places(text[-LONGEST_MATCH:], False)
        if not places:
            return NOTHING
        longest = max(places)[0]
        follows = [self.index.ids[at] for length, at in places if length == longest]
        counts: dict[int, int] = {}
        for token in follows:
            counts[token] = counts.get(token, 0) + 1
        counts.pop(BREAK, None)
        if not counts:
            return NOTHING
        every, best = len(follows), max(counts.values())
        agreeing = 0 if every == 1 else 1 if best == every else 2 if 2 * best > every else 3
        return Look(
            AGREEING * bisect_right(LENGTHS, longest) + agreeing,
            {token: count / every for token, count in counts.items()},
        )

    def prior(self, kind: int) -> float | None:
        return FIRST_CHANCES[self.earlier][kind // AGREEING][kind % AGREEING]
