"""Rounds of recorded answers at given prices, in ways that the product does not have: trees of candidates,
drafting while the target checks, and guesses that are kept though the target would have written another
token.

Each answer begins anew, and nothing is copied. A pass of so many rows costs what the list says, whatever
their mask. Whoever drafts behind a wrong guess is charged as on the right way.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise

from lab.drafters.ceilings import Prices, Sums, leading
from lab.ways.candidates import WIDTH, Candidates
from omnidemo.decoding.calibration import Calibration

LONGEST = 8  # guesses one behind another
MOST_ROWS = 24  # of a pass, the target's own token included
Tree = frozenset[tuple[int, ...]]  # each node by the places of the candidates on the way to it, from 1


@dataclass(frozen=True, slots=True)
class Spent:
    """What an answer took. `variation`: over its tokens, the summed total variation of the law by which each
    was written from the target's."""

    tokens: int
    rounds: int
    milliseconds: float
    variation: float = 0.0


def chain(length: int, width: int = 1) -> Tree:
    """`width` candidates of the first token, each followed by the likeliest ones, `length` in all."""
    return frozenset((first, *(1,) * more) for first in range(1, width + 1) for more in range(length))


def full(depth: int, width: int) -> Tree:
    """`width` candidates behind every node."""
    nodes, last = set[tuple[int, ...]](), list[tuple[int, ...]]([()])
    for _ in range(depth):
        last = [(*path, place) for path in last for place in range(1, width + 1)]
        nodes.update(last)
    return frozenset(nodes)


def likeliest(found: Sequence[Candidates], most: int) -> Iterator[Tree]:
    """Trees of 1, 2, … `most` nodes, each with those that are the likeliest where a candidate of a place is
    right as often as in these answers (Sequoia)."""
    count = sum(len(one.place) for one in found)
    often = [sum(int((one.place == place).sum()) for one in found) / count for place in range(1, WIDTH + 1)]
    waiting = list[tuple[float, tuple[int, ...]]](
        (-chance, (place,)) for place, chance in enumerate(often, 1)
    )
    nodes = set[tuple[int, ...]]()
    heapq.heapify(waiting)
    while len(nodes) < most:
        chance, path = heapq.heappop(waiting)
        nodes.add(path)
        if len(path) < LONGEST:
            for place, more in enumerate(often, 1):
                heapq.heappush(waiting, (chance * more, (*path, place)))
        yield frozenset(nodes)


@dataclass(slots=True)
class Rounds:
    """Rounds at prices."""

    prices: Prices
    rows: list[float] = field(init=False)

    def __post_init__(self) -> None:
        self.rows = self.prices.of_rows(MOST_ROWS)

    def of_tree(self, one: Candidates, tree: Tree, steps: int | None = None) -> Spent:
        """Every round drafts the same tree. `steps` of the drafter, each of one row: where nothing is said,
        one for each node that others follow, and the first."""
        inner = {path[:-1] for path in tree} if steps is None else ()
        price = self.rows[len(tree) + 1] + self.prices.step * one.steps * (steps or len(inner))
        places, at, rounds = one.place.tolist(), 0, 0
        while at < len(places):
            path: tuple[int, ...] = ()
            while at + len(path) < len(places) and (*path, places[at + len(path)]) in tree:
                path = (*path, places[at + len(path)])
            at, rounds = at + len(path) + 1, rounds + 1
        return Spent(len(places), rounds, rounds * price)

    def overlapped(self, one: Candidates, length: int, cores: int | None) -> Spent:
        """The next draft is made while the target checks this one, as if all of it were accepted and the
        guess behind it right; else it is made anew. `cores`: those that target and drafter share; None: the
        drafter has one of its own (PEARL)."""
        step, places = self.prices.step * one.steps, one.place.tolist()
        check, ahead = self.rows[length + 1], step * (length + 1)
        together = max(check, ahead) if cores is None else check + ahead / cores
        at, rounds, spent, ready = 0, 0, 0.0, False
        while at < len(places):
            spent += together + (0.0 if ready else step * length)
            right = leading([place == 1 for place in places[at : at + length + 1]])
            at, rounds, ready = at + min(right, length) + 1, rounds + 1, right > length
        return Spent(len(places), rounds, spent)

    def judged(self, one: Candidates, length: int, tolerance: float) -> Spent:
        """A guess is kept, too, where the target gives it `tolerance` of what it gives its likeliest token;
        then the recorded text goes on as if nothing had changed. At temperature 0 the target's law of a token
        has one point, so that another token is a total variation of 1."""
        right = one.place == 1
        passes = one.share >= tolerance
        kept = (right | passes).tolist()
        apart = (~right).astype(float) if one.answer.temperature <= 0 else 1 - one.given
        apart[~passes] = 0.0
        at, rounds, variation = 0, 0, 0.0
        while at < len(kept):
            count = leading(kept[at : at + length])
            variation += float(apart[at : at + count].sum())
            at, rounds = at + count + 1, rounds + 1
        price = self.rows[length + 1] + self.prices.step * one.steps * length
        return Spent(len(kept), rounds, rounds * price, variation)

    def adaptive(self, found: Iterable[Candidates], width: int) -> Iterator[Spent]:
        """Each round drafts what is expected to save the most, by chances that are learned of each candidate
        from what became of earlier ones: a chain of guesses and, with `width` above 1, the next candidates
        beside each of them, which nothing follows."""
        chances, sums = [Calibration() for _ in range(width)], Sums()
        for one in found:
            worth = min(self.rows[1], sums.milliseconds / sums.tokens) if sums.tokens else self.rows[1]
            at, rounds, spent, places = 0, 0, 0.0, one.place.tolist()
            while at < len(places):
                sure = one.sure[at : at + LONGEST, :width].tolist()
                nodes, depth = self._planned(sure, chances, worth, self.prices.step * one.steps)
                right = 0
                while at + right < len(places) and (right, places[at + right]) in nodes:
                    right += 1
                    if places[at + right - 1] > 1:
                        break
                for probs, place in zip(sure[:depth], places[at:], strict=False):
                    for number, (chance, prob) in enumerate(zip(chances, probs, strict=True), 1):
                        chance.learn((prob, float(place == number)))
                    if place != 1:
                        break
                spent += self.rows[len(nodes) + 1] + self.prices.step * one.steps * depth
                at, rounds = at + right + 1, rounds + 1
            sums.add(Sums(len(places), rounds, spent))
            yield Spent(len(places), rounds, spent)

    def _planned(
        self, sure: Sequence[Sequence[float]], chances: Sequence[Calibration], worth: float, step: float
    ) -> tuple[set[tuple[int, int]], int]:
        """(the nodes of a round, each by depth and place; how many guesses were drafted for it)."""
        more = [after - before for before, after in pairwise(self.rows[1:])]  # of one row more
        nodes, path, depth = list[tuple[float, int, int]](), 1.0, 0
        for probs in sure:
            if path * worth < min(more[depth:]) + step:
                break
            believed = [path * chance(prob) for chance, prob in zip(chances, probs, strict=True)]
            nodes += [(-one, depth, place) for place, one in enumerate(believed, 1)]
            path, depth = believed[0], depth + 1
        if not nodes:
            return set(), depth
        nodes = sorted(nodes)[: MOST_ROWS - 1]  # no node is likelier than the one that it follows
        saved = [
            total * worth - price + self.rows[1]
            for total, price in zip(accumulate(-node[0] for node in nodes), self.rows[2:], strict=False)
        ]
        best = max(range(len(saved)), key=saved.__getitem__)
        return ({node[1:] for node in nodes[: best + 1]} if saved[best] > 0 else set()), depth
